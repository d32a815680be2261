"""Selection of stored rollouts to train on: by verdict and form, at most some of a problem, each answer once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reasoner.runs.parquet_files import read_table
from reasoner.runs.rollouts import shard_path, shard_steps
from verifiers import Verdict
from verifiers.score import UNJUDGED

Row = Mapping[str, Any]

# Conditions by name: what a rollout must be.
CONDITIONS: dict[str, Callable[[Row], bool]] = {
    "correct": lambda row: row["verdict"] == Verdict.CORRECT,
    "wrong": lambda row: row["verdict"] not in (Verdict.CORRECT, *UNJUDGED),
    "well-formed": lambda row: bool(row["well_formed"]),
    "ended": lambda row: row["finish"] in ("stop", None),  # imported rollouts may not say
}
DEFAULT = ("correct", "well-formed", "ended")
_COLUMNS = (
    "step", "group", "sample", "problem_id", "question", "prompt", "completion", "prompt_token_ids", "token_ids",
    "verdict", "well_formed", "finish", "reward", "observation_tokens",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Selection:
    """Which rollouts of runs to take. ValueError for a value that cannot be used."""

    where: tuple[str, ...] = DEFAULT  # names of CONDITIONS; all must hold
    per_problem: int = 0  # at most so many of a problem, the first ones; 0: all

    def __post_init__(self) -> None:
        if unknown := [name for name in self.where if name not in CONDITIONS]:
            raise ValueError(f"where is {unknown[0]!r}; known are {', '.join(CONDITIONS)}")
        if self.per_problem < 0:
            raise ValueError(f"per_problem is {self.per_problem}; it must be at least 0")


@dataclass(slots=True)
class SelectedRollouts:
    """Rollouts in the order in which they were sampled, and how many were left out for which reason."""

    rows: list[Row] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)


def parse_selection(texts: Mapping[str, str]) -> Selection:
    """The selection of texts by name: where, per_problem. ValueError for another one."""
    known = ("where", "per_problem")
    if unknown := [name for name in texts if name not in known]:
        raise ValueError(f"unknown condition {unknown[0]!r}; known are {', '.join(known)}")
    where = tuple(name for name in texts["where"].split(",") if name) if "where" in texts else DEFAULT
    most = texts.get("per_problem", "0")
    if not most.removeprefix("-").isdecimal():
        raise ValueError(f"per_problem is {most!r}; it must be a whole number")
    return Selection(where, int(most))


def select(rows: Iterable[Row], selection: Selection) -> SelectedRollouts:
    """The rollouts that the selection takes, each completion of a problem once, and only with token ids."""
    result, taken = SelectedRollouts(), Counter[tuple[str, str]]()
    seen: set[tuple[str, str, str]] = set()
    for row in rows:
        problem = (row["problem_id"], row["question"])  # runs on different files may have equal ids
        answer = (*problem, row["completion"])
        if reason := _reason_against(row, selection, answer in seen, taken[problem]):
            result.left_out[reason] += 1
            continue
        seen.add(answer)
        taken[problem] += 1
        result.rows.append({name: row[name] for name in _COLUMNS if name in row})
    return result


def read_rollouts(run_dirs: Sequence[Path]) -> Iterator[dict[str, Any]]:
    """Yield the rollouts of runs in order, with the columns that a selection needs."""
    for run_dir in run_dirs:
        steps = shard_steps(run_dir)
        if not steps:
            raise ValueError(f"run {run_dir} has no rollouts")
        for step in steps:
            yield from read_table(shard_path(run_dir, step), _COLUMNS).to_pylist()


def _reason_against(row: Row, selection: Selection, is_repeated: bool, num_taken: int) -> str:
    """Why a rollout is left out; empty if it is not."""
    if missing := [name for name in selection.where if not CONDITIONS[name](row)]:
        return f"not {missing[0]}"
    if not row["prompt_token_ids"] or not row["token_ids"]:
        return "without token ids"
    if is_repeated:
        return "repeated"
    return "more of a problem" if 0 < selection.per_problem <= num_taken else ""
