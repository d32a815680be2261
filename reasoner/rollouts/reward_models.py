"""Reward models of a run (`reward.model`): their scores as weighted parts of the reward.

Scores come after grading and before anything that uses rewards. A control reward replaces them, as any other part.
Nothing here imports torch; reasoner.inference.reward_model computes the scores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from statistics import fmean
from typing import Protocol

from reasoner.config.learning import RewardConfig
from reasoner.rollouts.reward_functions import parse_weighted, with_parts
from reasoner.types import Completion, RolloutGroup
from verifiers import Score

PART = "model:"  # begins the name of a reward model's part of the reward


class Scorer(Protocol):
    def scores(self, groups: Sequence[RolloutGroup]) -> list[float]:
        """The score of each completion of the groups, in order."""
        ...


def parse_reward_models(setting: str) -> dict[str, float]:
    """The weights of `reward.model` by the model's name. ValueError for a faulty entry."""
    return parse_weighted("reward.model", setting, "MODEL")


def _weights_of_parts(setting: str) -> dict[str, float]:
    """The weights of `reward.model` by the name of the model's part of the reward."""
    return {f"{PART}{name}": weight for name, weight in parse_reward_models(setting).items()}


def apply_reward_models(
    groups: Sequence[RolloutGroup], scorers: Mapping[str, Scorer], reward: RewardConfig
) -> list[RolloutGroup]:
    """Add the weighted score of each reward model to the rewards; score.parts has the scores, clipped and without their
    weights, as model:NAME. A completion that ended without an end token or stop text has reward.missing_end instead,
    and with reward.model_on "correct" a wrong one 0.
    """
    if not scorers or not groups:
        return list(groups)
    weights = _weights_of_parts(reward.model)
    scores = {f"{PART}{name}": _clipped(name, scorer.scores(groups), reward.clip) for name, scorer in scorers.items()}
    rows = (dict(zip(scores, row, strict=True)) for row in zip(*scores.values(), strict=True))
    return [
        with_parts(
            group,
            [
                _counted(next(rows), completion, score, reward)
                for completion, score in zip(group.completions, group.scores, strict=True)
            ],
            weights,
        )
        for group in groups
    ]


def _counted(row: dict[str, float], completion: Completion, score: Score, reward: RewardConfig) -> dict[str, float]:
    """What counts of a completion's scores."""
    if reward.model_on == "correct" and not score.correct:
        return dict.fromkeys(row, 0.0)
    return row if completion.finish == "stop" else dict.fromkeys(row, reward.missing_end)


def _clipped(name: str, scores: Sequence[float], limit: float) -> list[float]:
    if not all(map(isfinite, scores)):
        raise ValueError(f"the reward model {name!r} gave a score that is not a finite number")
    return [min(limit, max(-limit, score)) for score in scores]


def mean_model_reward(groups: Sequence[RolloutGroup], setting: str) -> float:
    """The mean over completions of the weighted scores of all models of `reward.model`."""
    weights = _weights_of_parts(setting)
    return fmean(
        sum(weight * score.parts[name] for name, weight in weights.items())
        for group in groups
        for score in group.scores
    )
