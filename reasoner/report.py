"""The end of a run: the table before against after, traces of both on the same problems, and what to do next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from reasoner.aha import reflect
from reasoner.evaluate import Evaluation
from reasoner.journal import visible
from reasoner.types import Group


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
    s = measured.sampled
    return f"{s.problems} held-out problems x {s.samples} samples at temperature {s.temperature:g}, and greedy; 95 % intervals\n"


def _rows(before: Measured, after: Measured) -> list[tuple[str, str, str]]:
    def row(name: str, show: object) -> tuple[str, str, str]:
        return name, show(before), show(after)  # type: ignore[operator]

    rows = [("", "before", "after")]
    rows += [row(f"pass@{k}", lambda m, k=k: str(m.sampled.pass_at[k])) for k in before.sampled.pass_at]
    rows += [row(f"cons@{k}", lambda m, k=k: str(m.sampled.cons_at[k])) for k in before.sampled.cons_at]
    return [
        *rows,
        row("greedy", lambda m: str(m.greedy.pass_at_1)),
        row("well-formed", lambda m: _percent(m.sampled.well_formed)),
        row("right given well-formed", lambda m: _percent(m.sampled.right_given_well_formed)),
        row("right, form ignored", lambda m: _percent(m.sampled.lenient)),
        row("response tokens", lambda m: f"{m.sampled.response_tokens:.1f}"),
        row("  of right responses", lambda m: f"{m.sampled.response_tokens_right:.1f}"),
        row("  of wrong responses", lambda m: f"{m.sampled.response_tokens_wrong:.1f}"),
        row("cut off at the limit", lambda m: _percent(m.sampled.truncated)),
        row("check their own working", lambda m: _percent(m.sampled.reflection.checks)),
        row('say "wait"', lambda m: _percent(m.sampled.reflection.waits)),
        row("wrong claims caught", _caught),
        row("false alarms", lambda m: str(m.sampled.reflection.false_alarms)),
    ]


def _caught(measured: Measured) -> str:
    found = measured.sampled.reflection
    share = found.caught_share
    return "none to catch" if share is None else f"{_percent(share)} ({found.caught} of {found.wrong_claims})"


def _cell_rows(before: Measured, after: Measured) -> list[tuple[str, str, str]]:
    rows = [("pass@1 / greedy by family and level", "before", "after")]
    for name in before.sampled.cells:
        rows.append(
            (
                name,
                *(
                    f"{_percent(m.sampled.cells[name].value)} / {_percent(m.greedy.cells[name].value)}"
                    for m in (before, after)
                ),
            )
        )
    return rows


def _lines(rows: Sequence[tuple[str, str, str]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    return [f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}" for a, b, c in rows]


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def traces(before: Measured, after: Measured, number: int = 3) -> str:
    """Greedy answers of both on the same problems: wrong before and right after; those that mend a slip of their own first."""
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
        f"  rollouts of every step: {run_dir}/rollouts/*.parquet   metrics: {run_dir}/metrics.jsonl   model: {run_dir}/checkpoints"
    )
