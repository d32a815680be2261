"""Tables in Markdown, means over seeds with their range, and intervals over seeds: how the scripts print."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from reasoner.evals.paired import paired_difference


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1) -> str:
    """A table; all columns but the first `texts` are numbers. Cells that a row lacks at its end are empty."""
    lines = ["| " + " | ".join(heads) + " |", "|---" * texts + "|---:" * (len(heads) - texts) + "|"]
    filled = ([*row, *[""] * (len(heads) - len(row))] for row in rows)
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in filled)]) + "\n"


def mean_and_range(values: Sequence[float | None], form: str = ".1f") -> str:
    """The mean of the runs that have a value, the range where there are several, and how many have none."""
    known = [value for value in values if value is not None]
    if not known:
        return "-"
    spread = f" ({min(known):{form}} to {max(known):{form}})" if len(known) > 1 else ""
    missing = f", {len(values) - len(known)} never" if len(known) < len(values) else ""
    return f"{statistics.fmean(known):{form}}{spread}{missing}"


def over_seeds(differences: Sequence[float], digits: int = 1) -> str:
    """The mean of the seeds' differences with its 95 % interval by Student's t, which holds what two runs of the same
    settings differ by; of one seed the difference alone.
    """
    if len(differences) < 2:
        return "".join(f"{one:+.{digits}f}" for one in differences)
    own = paired_difference(differences, [0.0] * len(differences))
    mean, ends = f"{own.mean:+.{digits}f}", [f"{end:+.{digits}f}" for end in (own.low, own.high) if end is not None]
    return f"{mean} [{', '.join(ends)}]" if ends else mean
