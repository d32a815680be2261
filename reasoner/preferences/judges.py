"""Judges of completions: the verifier's rule, or a utility function of known noise.

A judge with a utility u and noise s prefers completion i to j with probability sigmoid((u_i - u_j) / s)
(Bradley-Terry). As u is known, so are the best accuracy that any reward model can reach, and the true value of what a
reward model chooses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp
from random import Random
from typing import Any

from reasoner.rollouts.reward_functions import RewardFunction, load_reward_functions

Row = Mapping[str, Any]  # of a shard of rollouts (reasoner.runs.rollouts.SCHEMA)
Utilities = Callable[[Sequence[Row]], list[float]]

# The arguments that a utility function may take, each a list with one entry per completion, and the column of the
# rollouts that holds it. As for the reward functions of a run (reasoner.rollouts.reward_functions).
UTILITY_COLUMNS = {
    "prompts": "prompt",
    "completions": "completion",
    "completion_ids": "token_ids",
    "id": "problem_id",
    "question": "question",
    "answer": "gold",
    "extracted": "extracted",
    "verdict": "verdict",
    "well_formed": "well_formed",
    "finish": "finish",
    "reward": "reward",
}


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
