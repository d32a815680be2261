"""From a response to its reward: extraction, verdict, named parts, and the one place where the parts are added up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from time import perf_counter

from verifiers.extract import extract
from verifiers.rules import grade
from verifiers.score import Judgement, Score, Verdict


@dataclass(frozen=True, slots=True)
class RewardWeights:
    """What each part is worth; a field for every name in REWARDS."""

    correct: float = 1.0
    format: float = 0.2


DEFAULT_WEIGHTS = RewardWeights()

REWARDS: dict[str, Callable[[Score], float]] = {
    "correct": lambda score: float(score.verdict is Verdict.CORRECT),
    "format": lambda score: float(score.format_ok),
}


def total(parts: Mapping[str, float], weights: RewardWeights) -> float:
    """The reward: the weighted sum of the parts."""
    return float(sum(getattr(weights, name) * part for name, part in parts.items()))


def rewarded(score: Score, weights: RewardWeights) -> Score:
    """The score with its parts and their total."""
    parts = {name: reward(score) for name, reward in REWARDS.items()}
    return replace(score, parts=parts, reward=total(parts, weights))


def assess(response: str, gold: str, rule: str) -> Score:
    """The verdict on a response with its evidence, not rewarded yet.

    Only a well-formed response can be CORRECT. The answer that any other one may hold is judged as well, for `lenient`.
    """
    start = perf_counter()
    strict, lenient = extract(response, "strict"), extract(response, "lenient")
    if strict.answer is not None:
        judgement = grade(strict.answer, gold, rule)
        is_right = judgement.verdict is Verdict.CORRECT
    else:
        verdict = Verdict.NO_ANSWER if strict.well_formed or lenient.answer is None else Verdict.MALFORMED
        judgement = Judgement(verdict, strict.reason)
        is_right = lenient.answer is not None and bool(grade(lenient.answer, gold, rule))
    return Score(
        reward=0.0,
        parts={},
        verdict=judgement.verdict,
        extracted=strict.answer,
        layer=judgement.layer,
        format_ok=strict.well_formed,
        lenient=is_right,
        seconds=perf_counter() - start,
    )


def score_response(response: str, gold: str, rule: str = "maths", weights: RewardWeights = DEFAULT_WEIGHTS) -> Score:
    """Grade one response, prefilled `<think>` included; here and without limits (see VerifierPool for those)."""
    return rewarded(assess(response, gold, rule), weights)
