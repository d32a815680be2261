"""The reward of a response: extraction, verdict, named parts, and their weighted sum."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from math import isfinite
from time import perf_counter

from data.problem import Problem
from verifiers import reward_functions
from verifiers.equivalence import judge
from verifiers.extract import Extraction, extract_answer
from verifiers.limits import too_long
from verifiers.questions import Question
from verifiers.score import Judgement, RewardInput, Score, Verdict


@dataclass(frozen=True, slots=True)
class Reward:
    """One row of REWARDS: a function of a graded response, and its range."""

    function: Callable[[RewardInput], float]
    low: float
    high: float


REWARDS: dict[str, Reward] = {
    "correct": Reward(reward_functions.correct, 0, 1),  # of an environment: the range of its scorer
    "format": Reward(lambda reward_input: float(reward_input.score.well_formed), 0, 1),
    "length": Reward(reward_functions.length, -1, 1),
    "overlong": Reward(reward_functions.overlong, -1, 0),
    "repetition": Reward(reward_functions.repetition, -1, 0),
    "language": Reward(reward_functions.language, 0, 1),
    "steps": Reward(reward_functions.steps, -1, 1),
}


@dataclass(frozen=True, slots=True)
class RewardWeights:
    """The weight of each part of the reward, any finite number. A part of weight 0 is not computed."""

    # Weight of the correctness reward: 1 for a correct answer in the required form, else 0. For problems of an
    # environment (gym:, env:) it is the score of the environment's own scorer.
    correct: float = 1.0
    # Weight of the format reward: 1 for a well-formed response (the form that prompt.style requires), else 0.
    format: float = 0.2
    # Weight of the cosine length reward, from -1 to 1 (Yeo et al. 2025): highest for short correct responses, lowest
    # for short wrong ones and for those that reach sampling.max_tokens. 0: off.
    length: float = 0.0
    # Weight of DAPO's soft overlong penalty: 0 up to 80 % of sampling.max_tokens, then linearly down to -1. 0: off.
    overlong: float = 0.0
    # Weight of the repetition penalty, from -1 to 0: minus the share of 20-word sequences that occurred before. 0: off.
    repetition: float = 0.0
    # Weight of the language consistency reward, from 0 to 1: the share of the think block's letters that are in the
    # main script of the question. 0: off.
    language: float = 0.0
    # Weight of the process reward, from -1 to 1: correct minus wrong equations in the think block, divided by their
    # number. 0: off.
    steps: float = 0.0
    # Your reward functions, (response: str, problem: Problem) -> float, as module:function=weight, separated by commas
    # (weight 1 if none is stated). Empty: none.
    custom: str = ""


DEFAULT_WEIGHTS = RewardWeights()


def add_reward(reward_input: RewardInput, weights: RewardWeights) -> Score:
    """Add the parts and the reward, their weighted sum, to a score.

    The parts "correct" and "format" are always computed. ValueError for a custom reward function that fails or returns
    no finite number.
    """
    weight_of = {name: getattr(weights, name) for name in REWARDS}
    parts = {
        name: row.function(reward_input)
        for name, row in REWARDS.items()
        if weight_of[name] or name in ("correct", "format")
    }
    for name, (function, weight) in custom_rewards(weights.custom).items():
        parts[name], weight_of[name] = _call_custom(name, function, reward_input), weight
    reward = float(sum(weight_of[name] * part for name, part in parts.items()))
    return replace(reward_input.score, parts={**reward_input.score.parts, **parts}, reward=reward)


UserReward = Callable[[str, Problem], float]


@lru_cache(maxsize=16)
def custom_rewards(spec: str) -> Mapping[str, tuple[UserReward, float]]:
    """Parse "module:function=0.5, module:other" into functions and weights by name. ValueError for a faulty part."""
    rewards: dict[str, tuple[UserReward, float]] = {}
    for part in filter(None, map(str.strip, spec.split(","))):
        path, _, weight = part.partition("=")
        module, colon, name = path.strip().partition(":")
        if not colon or not module or not name:
            raise ValueError(f"reward.custom has {part!r}; it takes module:function or module:function=weight")
        try:
            function, factor = getattr(importlib.import_module(module), name), float(weight or 1)
        except (ImportError, AttributeError, ValueError) as error:
            raise ValueError(f"reward.custom has {part!r}: {error}") from error
        if not callable(function):
            raise ValueError(f"reward.custom has {part!r}: {path} is not a function")
        rewards[path.strip()] = function, factor
    return rewards


def _call_custom(name: str, function: UserReward, reward_input: RewardInput) -> float:
    try:
        value = float(function(reward_input.response, reward_input.problem))
    except Exception as error:
        raise ValueError(f"reward {name} failed on problem {reward_input.problem.id}: {error!r}") from error
    if not isfinite(value):
        raise ValueError(f"reward {name} gave {value} on problem {reward_input.problem.id}; a finite number is needed")
    return value


def check_weights(weights: RewardWeights) -> None:
    """Raise ValueError for a weight that is not finite, and for custom functions that cannot be imported."""
    for field in fields(weights):
        value = getattr(weights, field.name)
        if not isinstance(value, str) and not isfinite(value):
            raise ValueError(f"reward.{field.name} is {value}; a finite number is needed")
    custom_rewards(weights.custom)


@dataclass(frozen=True, slots=True)
class Reading:
    """What was extracted from a response, before anything is judged."""

    extraction: Extraction  # by the required extraction
    lenient: str | None  # the answer by lenient extraction
    well_formed: bool  # in the required form: the tags for extraction strict, for any other an answer that is found


def read_response(response: str, extract: str = "strict") -> Reading:
    """Extract a response's answer by the entry `extract` of EXTRACTORS and by the lenient one."""
    extraction, lenient = extract_answer(response, extract), extract_answer(response, "lenient")
    has_form = extraction.well_formed if extract == "strict" else extraction.answer is not None
    return Reading(extraction, lenient.answer, has_form)


def judge_response(
    response: str,
    gold: str,
    verifier: str,
    extract: str = "strict",
    *,
    question: Question | None = None,
    on_read: Callable[[Reading], None] | None = None,
) -> Score:
    """Judge a response. The score has no parts and no reward yet. `extract` (of EXTRACTORS) is the required form.

    Only a response in that form can be CORRECT. For any other the answer of lenient extraction is judged, as `lenient`.
    `on_read` is called with what was extracted before judging begins, which can take long or end the process.
    """
    start = perf_counter()
    if reason := too_long(response):
        return Score(0.0, {}, Verdict.REFUSED, layer=reason)
    reading = read_response(response, extract)
    if on_read is not None:
        on_read(reading)
    answer = reading.extraction.answer
    if answer is not None:
        judgement = judge(answer, gold, verifier, question)
        is_correct = bool(judgement)
    else:
        verdict = Verdict.NO_ANSWER if reading.well_formed or reading.lenient is None else Verdict.MALFORMED
        judgement = Judgement(verdict, reading.extraction.reason)
        is_correct = reading.lenient is not None and bool(judge(reading.lenient, gold, verifier, question))
    return Score(
        reward=0.0,
        parts={},
        verdict=judgement.verdict,
        extracted=answer,
        layer=judgement.layer,
        well_formed=reading.well_formed,
        lenient=is_correct,
        seconds=perf_counter() - start,
    )
