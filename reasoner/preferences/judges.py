"""Judges of completions: the verifier's rule, or a utility function of known noise; and the preference pairs of stored
rollouts, all pairs of a group's completions, that a judge labels.

A judge with a utility u and noise s prefers completion i to j with probability sigmoid((u_i - u_j) / s)
(Bradley-Terry). As u is known, so are the best accuracy that any reward model can reach, and the true value of what a
reward model chooses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby
from math import exp
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from reasoner.preferences.dataset import COLUMNS, SIDES
from reasoner.preferences.dataset import Row as PairRow
from reasoner.rollouts.prompts import load_template
from reasoner.rollouts.reward_functions import RewardFunction, load_reward_functions
from reasoner.runs.rollout_row import own_text
from reasoner.runs.row_files import write_rows
from reasoner.runs.run_dir import read_settings

if TYPE_CHECKING:
    import pyarrow as pa

Row = Mapping[str, Any]  # of a shard of rollouts (reasoner.runs.rollouts.SCHEMA)
Utilities = Callable[[Sequence[Row]], list[float]]

# The arguments that a utility function may take, each a list with one entry per completion, and the column of the
# rollouts that holds it. As for the reward functions of a run (reasoner.rollouts.reward_functions).
UTILITY_COLUMNS = {
    "prompts": "prompt", "completions": "completion", "completion_ids": "token_ids", "id": "problem_id",
    "question": "question", "answer": "gold", "extracted": "extracted", "verdict": "verdict",
    "well_formed": "well_formed", "finish": "finish", "reward": "reward",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Judge:
    """Utilities of completions, and the noise of the preferences that are made from them."""

    name: str
    utilities: Utilities
    noise: float  # 0: the higher utility always wins
    is_known: bool = True  # whether the utilities are a truth to measure a reward model by


def load_judge(spec: str, *, noise: float | None) -> Judge:
    """The judge of that name: "rule", or "utility:FILE.py:NAME" for a function in a Python file.

    `noise` in units of utility, by default 1. ValueError for an unknown judge, a noise below 0, and one for the rule.
    """
    if noise is not None and not noise >= 0:
        raise ValueError(f"--noise is {noise}; it must be at least 0")
    if spec == "rule":
        if noise is not None:
            raise ValueError("--noise is for --judge utility:FILE.py:NAME; the rule has none")
        return Judge("rule", rule_utilities, 0.0, is_known=False)
    kind, _, place = spec.partition(":")
    if kind != "utility" or ":" not in place:
        raise ValueError(f"unknown judge {spec!r}; known are rule, and utility:FILE.py:NAME")
    (function,) = load_reward_functions(place, "--judge utility")
    return Judge(spec, lambda rows: _call(function, rows), 1.0 if noise is None else noise)


def rule_utilities(rows: Sequence[Row]) -> list[float]:
    """Numbers that order completions by verdict, then by length: a right one first, of two the shorter."""
    lengths = [len(row["token_ids"] or row["completion"]) for row in rows]  # imported rollouts may have no token ids
    return [float(is_correct(row)) - length / (1 + max(lengths)) for row, length in zip(rows, lengths, strict=True)]


def is_correct(row: Row) -> bool:
    return str(row["verdict"]) == "correct"


def _call(function: RewardFunction, rows: Sequence[Row]) -> list[float]:
    columns: dict[str, list[Any]] = {name: [row[column] for row in rows] for name, column in UTILITY_COLUMNS.items()}
    columns["completions"] = [own_text(row) for row in rows]
    columns["correct"] = [is_correct(row) for row in rows]
    values = function.values(columns, len(rows))
    if None in values:
        raise ValueError(f"utility function {function.name} returned None; every completion needs a number")
    return [float(value) for value in values if value is not None]


def preference_probability(difference: float, noise: float) -> float:
    """Probability that the completion whose utility is higher by `difference` is preferred."""
    if not noise:
        return 0.5 if not difference else float(difference > 0)
    x = difference / noise
    return 1 / (1 + exp(-x)) if x > 0 else exp(x) / (1 + exp(x))


def is_preferred(probability: float, seed: int, names: Iterable[object]) -> bool:
    """Whether the first of two completions is preferred: a function of the seed and the pair's names alone."""
    return Random("/".join(map(str, [seed, *names]))).random() < probability


@dataclass(slots=True)
class ExportCounts:
    """Pairs that were written, and why others were not."""

    groups: int = 0
    pairs: int = 0
    same_text: int = 0
    same_utility: int = 0
    won_by_better: int = 0  # pairs whose completion of higher utility was preferred
    expected_by_better: float = 0.0  # their number in expectation

    def summary(self) -> str:
        total = max(1, self.pairs)
        return (
            f"{self.pairs:,} pairs of {self.groups:,} groups; left out {self.same_text:,} of identical texts and "
            f"{self.same_utility:,} of equal utility; the better one won {self.won_by_better / total:.1%} of the pairs "
            f"(expected {self.expected_by_better / total:.1%})"
        )


def preference_rows(
    rollouts: Iterable[Row], judge: Judge, *, seed: int, counts: ExportCounts, prefill: str = ""
) -> Iterator[PairRow]:
    """Yield the pairs of every group, with reasoner.preferences.dataset.COLUMNS. `rollouts` come group by group.

    Pairs of identical texts and of equal utilities are left out: nobody can tell them apart. Adds to `counts`.
    `prefill` ends every prompt and begins every completion; the pair has it in the prompt alone.
    """
    for (step, group), own in groupby(rollouts, key=lambda row: (row["step"], row["group"])):
        rows = list(own)
        utilities = judge.utilities(rows)
        counts.groups += 1
        for i, j in combinations(range(len(rows)), 2):
            if rows[i]["completion"] == rows[j]["completion"]:
                counts.same_text += 1
            elif utilities[i] == utilities[j]:
                counts.same_utility += 1
            else:
                p = preference_probability(utilities[i] - utilities[j], judge.noise)
                names = (step, group, rows[i]["sample"], rows[j]["sample"])
                order, probability = ((i, j), p) if is_preferred(p, seed, names) else ((j, i), 1 - p)
                counts.pairs += 1
                counts.won_by_better += utilities[order[0]] > utilities[order[1]]
                counts.expected_by_better += max(p, 1 - p)
                known = utilities if judge.is_known else None
                yield _pair_row([rows[k] for k in order], known and [known[k] for k in order], probability, prefill)


def _pair_row(sides: Sequence[Row], utilities: Sequence[float] | None, probability: float, prefill: str) -> PairRow:
    """A row of the file: the columns of both sides, the chosen one first."""
    first = sides[0]
    has_ids = all(own["prompt_token_ids"] and own["token_ids"] for own in sides)  # imported rollouts may have none
    row: PairRow = {
        "prompt": first["prompt"],
        "prompt_ids": list(first["prompt_token_ids"]) if has_ids else None,
        "problem_id": first["problem_id"],
        "group": f"{first['step']}.{first['group']}",
        "p": probability,
    }
    for side, own, utility in zip(SIDES, sides, utilities or (None, None), strict=True):
        row |= {
            side: own["completion"].removeprefix(prefill),
            f"{side}_ids": [*own["prompt_token_ids"], *own["token_ids"]] if has_ids else None,
            f"u_{side}": utility,
            f"correct_{side}": is_correct(own),
            f"finish_{side}": own["finish"],
        }
    return row


def schema_of(_: Sequence[Row]) -> pa.Schema:
    """The schema of a parquet file of pairs: all columns but the margin, which a judge does not know."""
    import pyarrow as pa

    ids, columns = pa.list_(pa.int32()), {"p": pa.float64()}
    columns |= dict.fromkeys(("prompt_ids", *(f"{side}_ids" for side in SIDES)), ids)
    columns |= {f"u_{side}": pa.float64() for side in SIDES} | {f"correct_{side}": pa.bool_() for side in SIDES}
    return pa.schema([(name, columns.get(name, pa.string())) for name in COLUMNS if name != "margin"])


def write_preferences(
    path: Path, run_dir: Path, rollouts: Iterable[Row], judge: Judge, *, seed: int = 0
) -> ExportCounts:
    """Write the pairs of a run's rollouts to a .jsonl or .parquet file, whole or not at all."""
    style, counts = read_settings(run_dir)["config"].get("prompt.style"), ExportCounts()
    prefill = load_template(style).prefill if style else ""
    write_rows(path, preference_rows(rollouts, judge, seed=seed, counts=counts, prefill=prefill), schema_of=schema_of)
    return counts
