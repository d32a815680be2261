"""Tables in Markdown, means over seeds with their range, and intervals over seeds: how the scripts print."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

# 97.5 % points of Student's t by degrees of freedom.
_STUDENT = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26}


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
    if not differences:
        return ""
    form, mean = f"{{:+.{digits}f}}".format, statistics.fmean(differences)
    if len(differences) - 1 not in _STUDENT:
        return form(mean)
    half = _STUDENT[len(differences) - 1] * statistics.stdev(differences) / len(differences) ** 0.5
    return f"{form(mean)} [{form(mean - half)}, {form(mean + half)}]"
