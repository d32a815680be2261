"""From a response to its reward: extraction, verdict, named parts, and the one place where the parts are added up."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from math import isfinite
from time import perf_counter

from data.problem import Problem
from verifiers import shaping
from verifiers.extract import Extraction, extract
from verifiers.limits import too_long
from verifiers.rules import judge
from verifiers.score import Judgement, RewardInput, Score, Verdict


@dataclass(frozen=True, slots=True)
class Reward:
    """One row of REWARDS."""

    of: Callable[[RewardInput], float]
    low: float
    high: float


REWARDS: dict[str, Reward] = {
    "correct": Reward(lambda graded: float(graded.score.correct), 0, 1),
    "format": Reward(lambda graded: float(graded.score.format_ok), 0, 1),
    "length": Reward(shaping.length, -1, 1),
    "overlong": Reward(shaping.overlong, -1, 0),
    "repetition": Reward(shaping.repetition, -1, 0),
    "language": Reward(shaping.language, 0, 1),
    "steps": Reward(shaping.steps, -1, 1),
}


@dataclass(frozen=True, slots=True)
class RewardWeights:
    """What each part is worth: a field for every name in REWARDS. A part of weight 0 is not computed."""

    # weight of a right answer (0 or 1) in the reward
    correct: float = 1.0
    # weight of the strict <think>/<answer> form (0 or 1)
    format: float = 0.2
    # weight of the cosine of the length (-1 to 1): short right answers first, short wrong ones last
    length: float = 0.0
    # weight of the soft punishment of the last fifth of the room (-1 to 0)
    overlong: float = 0.0
    # weight of repeated runs of 20 words (-1 to 0)
    repetition: float = 0.0
    # weight of staying in the question's script (0 to 1)
    language: float = 0.0
    # weight of right equations less wrong ones in the think block (-1 to 1)
    steps: float = 0.0
    # functions of yours, (response, problem) -> float: module:function=weight, several with commas between
    custom: str = ""


DEFAULT_WEIGHTS = RewardWeights()


def rewarded(graded: RewardInput, weights: RewardWeights) -> Score:
    """The score with its parts and the reward: the weighted sum of the parts.

    Correctness and form are always among the parts. ValueError for a function of the user's that cannot be called or
    gives no finite number.
    """
    worth = {name: getattr(weights, name) for name in REWARDS}
    parts = {name: row.of(graded) for name, row in REWARDS.items() if worth[name] or name in ("correct", "format")}
    for name, (function, weight) in custom_rewards(weights.custom).items():
        parts[name], worth[name] = _called(name, function, graded), weight
    return replace(graded.score, parts=parts, reward=float(sum(worth[name] * part for name, part in parts.items())))


UserReward = Callable[[str, Problem], float]


@lru_cache(maxsize=16)
def custom_rewards(spec: str) -> Mapping[str, tuple[UserReward, float]]:
    """Functions and weights by name, of "module:function=0.5, module:other". ValueError for what cannot be found."""
    found: dict[str, tuple[UserReward, float]] = {}
    for part in filter(None, map(str.strip, spec.split(","))):
        path, _, weight = part.partition("=")
        module, colon, name = path.strip().partition(":")
        if not colon or not module or not name:
            raise ValueError(f"reward.custom has {part!r}; it takes module:function or module:function=weight")
        try:
            function, worth = getattr(importlib.import_module(module), name), float(weight or 1)
        except (ImportError, AttributeError, ValueError) as error:
            raise ValueError(f"reward.custom has {part!r}: {error}") from error
        if not callable(function):
            raise ValueError(f"reward.custom has {part!r}: {path} is no function")
        found[path.strip()] = function, worth
    return found


def _called(name: str, function: UserReward, graded: RewardInput) -> float:
    try:
        value = float(function(graded.response, graded.problem))
    except Exception as error:
        raise ValueError(f"reward {name} failed on problem {graded.problem.id}: {error!r}") from error
    if not isfinite(value):
        raise ValueError(f"reward {name} gave {value} on problem {graded.problem.id}; a finite number is needed")
    return value


def check_weights(weights: RewardWeights) -> None:
    """ValueError for a weight that is not finite, and for functions that cannot be found."""
    for field in fields(weights):
        value = getattr(weights, field.name)
        if field.name != "custom" and not isfinite(value):
            raise ValueError(f"reward.{field.name} is {value}; a finite number is needed")
    custom_rewards(weights.custom)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a response says and in which form, before anything is judged."""

    asked: Extraction  # under the policy asked for
    lenient: str | None  # the answer under the lenient policy
    format_ok: bool  # in the form asked for: the strict one, or an answer that the policy finds


def read(response: str, policy: str = "strict") -> Reading:
    """Extract a response's answer under a policy of EXTRACTORS and under the lenient one."""
    asked, lenient = extract(response, policy), extract(response, "lenient")
    return Reading(asked, lenient.answer, asked.well_formed if policy == "strict" else asked.answer is not None)


def assess(
    response: str, gold: str, rule: str, policy: str = "strict", *, on_read: Callable[[Reading], None] | None = None
) -> Score:
    """The verdict on a response with its evidence, not rewarded yet. `policy` (of EXTRACTORS) is the form asked for.

    Only a response in that form can be CORRECT. The answer that any other one may hold is judged too, for `lenient`.
    `on_read` is called with what was extracted before the judging begins, which can take long or end the process.
    """
    start = perf_counter()
    if reason := too_long(response):
        return Score(0.0, {}, Verdict.REFUSED, layer=reason)
    reading = read(response, policy)
    if on_read is not None:
        on_read(reading)
    answer = reading.asked.answer
    if answer is not None:
        judgement = judge(answer, gold, rule)
        is_right = bool(judgement)
    else:
        verdict = Verdict.NO_ANSWER if reading.format_ok or reading.lenient is None else Verdict.MALFORMED
        judgement = Judgement(verdict, reading.asked.reason)
        is_right = reading.lenient is not None and bool(judge(reading.lenient, gold, rule))
    return Score(
        reward=0.0,
        parts={},
        verdict=judgement.verdict,
        extracted=answer,
        layer=judgement.layer,
        format_ok=reading.format_ok,
        lenient=is_right,
        seconds=perf_counter() - start,
    )
