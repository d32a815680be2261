"""The end of a run: the table before against after, traces of both on the same problems, and what to do next."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from reasoner.aha import ReflectionRates, reflect
from reasoner.evaluate import Evaluation
from reasoner.metrics import Estimate
from reasoner.terminal import visible
from reasoner.types import Group

Row = tuple[str, str, str]  # what, before, after


@dataclass(frozen=True, slots=True)
class Measured:
    """One model on the held-out problems, both ways."""

    sampled: Evaluation  # at the training temperature
    greedy: Evaluation

    def figures(self) -> dict[str, object]:
        return {"sampled": self.sampled.figures(), "greedy": self.greedy.figures()}


def table(before: Measured, after: Measured) -> str:
    """The comparison as plain text."""
    return "\n".join([_heading(before), *_lines(_rows(before, after)), "", *_lines(_cell_rows(before, after))])


def _heading(measured: Measured) -> str:
    found = measured.sampled
    return (
        f"{found.problems} held-out problems x {found.samples} samples at temperature {found.temperature:g}, "
        "and greedy; 95 % intervals\n"
    )


_ROWS: dict[str, Callable[[Measured], str]] = {
    "greedy": lambda m: str(m.greedy.pass_at_1),
    "well-formed": lambda m: _percent(m.sampled.well_formed),
    "right given well-formed": lambda m: _percent(m.sampled.right_given_well_formed),
    "right, form ignored": lambda m: _percent(m.sampled.lenient),
    "response tokens": lambda m: f"{m.sampled.response_tokens:.1f}",
    "  of right responses": lambda m: f"{m.sampled.response_tokens_right:.1f}",
    "  of wrong responses": lambda m: f"{m.sampled.response_tokens_wrong:.1f}",
    "cut off at the limit": lambda m: _percent(m.sampled.truncated),
    "check their own working": lambda m: _percent(m.sampled.reflection.checks),
    'say "wait"': lambda m: _percent(m.sampled.reflection.waits),
    "wrong claims caught": lambda m: _caught(m.sampled.reflection),
    "  replaced without a word": lambda m: str(m.sampled.reflection.replaced_unsaid),
    "false alarms": lambda m: str(m.sampled.reflection.false_alarms),
    "wrong steps inside checks": lambda m: str(m.sampled.reflection.wrong_in_checks),
}


def _rows(before: Measured, after: Measured) -> list[Row]:
    both = (before, after)
    return [
        ("", "before", "after"),
        *_row_per_k("pass", *(m.sampled.pass_at for m in both)),
        *_row_per_k("cons", *(m.sampled.cons_at for m in both)),
        *((name, show(before), show(after)) for name, show in _ROWS.items()),
    ]


def _row_per_k(name: str, before: Mapping[int, Estimate], after: Mapping[int, Estimate]) -> list[Row]:
    return [(f"{name}@{k}", str(before[k]), str(after[k])) for k in before]


def _caught(found: ReflectionRates) -> str:
    share = found.caught_share
    return "none to catch" if share is None else f"{_percent(share)} ({found.caught} of {found.wrong_claims})"


def _cell_rows(before: Measured, after: Measured) -> list[Row]:
    rows = [(name, _cell(before, name), _cell(after, name)) for name in before.sampled.cells]
    return [("pass@1 / greedy by family and level", "before", "after"), *rows]


def _cell(measured: Measured, name: str) -> str:
    return " / ".join(_percent(found.cells[name].value) for found in (measured.sampled, measured.greedy))


def _lines(rows: Sequence[Row]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    return [f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}" for a, b, c in rows]


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def traces(before: Measured, after: Measured, number: int = 3) -> str:
    """Greedy answers of both on the same problems, a family each: wrong before and right after, mended slips first."""
    pairs = [
        (was, now)
        for was, now in zip(before.greedy.groups, after.greedy.groups, strict=True)
        if not was.scores[0].correct and now.scores[0].correct
    ]
    pairs.sort(key=lambda pair: -reflect(_response(pair[1])).caught)
    families: list[str] = []
    chosen = []
    for was, now in pairs:
        family = was.prompt.problem.subject or ""
        if family not in families:
            families.append(family)
            chosen.append((was, now))
    return "\n\n".join(
        f"{visible(was.prompt.problem.question)}   (gold: {visible(was.prompt.problem.answer)})\n"
        f"  before: {visible(_response(was)).strip()}\n  after:  {visible(_response(now)).strip()}"
        for was, now in chosen[:number]
    )


def _response(group: Group) -> str:
    return group.prompt.prefill + group.completions[0].text


def next_commands(run_dir: Path) -> str:
    name = run_dir.name
    return (
        "next:\n"
        f"  reasoner eval --model {name} --pass@1 --cons@16      # more problems: --problems 600\n"
        f"  reasoner train --resume {name} --steps 100           # go on\n"
        f"  rollouts of every step: {run_dir}/rollouts/*.parquet   "
        f"metrics: {run_dir}/metrics.jsonl   model: {run_dir}/checkpoints"
    )
