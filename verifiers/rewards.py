"""The reward of a response: extraction, verdict, named parts, and their weighted sum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from time import perf_counter

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
    "tool": Reward(lambda reward_input: float(reward_input.tool_calls > 0), 0, 1),
}


def _weight(default: float, help: str, needs: str = "") -> float:
    """Declare a weight with its help text, which `reasoner train --help` shows, and what it needs to have an effect."""
    return field(default=default, metadata={"help": help, "needs": needs})


# fmt: off
@dataclass(frozen=True, slots=True)
class RewardWeights:
    """The weight of each part of the reward, any finite number. A part of weight 0 is not computed."""

    correct: float = _weight(1.0, "Weight of the correctness reward: 1 for a correct answer in the required form, else "
        "0. For problems of an environment (gym:, env:) it is the score of the environment's own scorer.")
    format: float = _weight(0.2, "Weight of the format reward: 1 for a well-formed response (the form that "
        "prompt.style requires), else 0.")
    length: float = _weight(0.0, "Weight of the cosine length reward, from -1 to 1 (Yeo et al. 2025): highest for "
        "short correct responses, lowest for short wrong ones and for those that reach sampling.max_tokens. 0: off.")
    overlong: float = _weight(0.0, "Weight of DAPO's soft overlong penalty: 0 up to 80 % of sampling.max_tokens, then "
        "linearly down to -1. 0: off.")
    repetition: float = _weight(0.0, "Weight of the repetition penalty, from -1 to 0: minus the share of 20-word "
        "sequences that occurred before. 0: off.")
    language: float = _weight(0.0, "Weight of the language consistency reward, from 0 to 1: the share of the think "
        "block's letters that are in the main script of the question. 0: off.")
    steps: float = _weight(0.0, "Weight of the process reward, from -1 to 1: correct minus wrong equations in the "
        "think block, divided by their number. 0: off.")
    tool: float = _weight(0.0, "Weight of the reward for calls of tools: 1 for a completion with a call that did not "
        "fail, else 0. 0: off.", needs="tools.names")

# fmt: on

DEFAULT_WEIGHTS = RewardWeights()


def add_reward(reward_input: RewardInput, weights: RewardWeights) -> Score:
    """Add the parts and the reward, their weighted sum, to a score.

    The parts "correct" and "format" are always computed.
    """
    weight_of = {name: getattr(weights, name) for name in REWARDS}
    parts = {
        name: row.function(reward_input)
        for name, row in REWARDS.items()
        if weight_of[name] or name in ("correct", "format")
    }
    reward = float(sum(weight_of[name] * part for name, part in parts.items()))
    return replace(reward_input.score, parts={**reward_input.score.parts, **parts}, reward=reward)


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
