"""The result of grading one response: verdict, evidence and reward."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from data.problem import Problem


class Verdict(StrEnum):
    """The outcome of grading. Only CORRECT earns the correctness reward."""

    CORRECT = "correct"
    WRONG = "wrong"
    NO_ANSWER = "no_answer"  # nothing to extract
    MALFORMED = "malformed"  # an answer in another form than the required one
    UNPARSABLE = "unparsable"  # extracted, but not an expression that can be parsed
    REFUSED = "refused"  # over a size limit, before any parser saw it
    TIMED_OUT = "timed_out"
    CRASHED = "crashed"


UNJUDGED = (Verdict.TIMED_OUT, Verdict.CRASHED, Verdict.REFUSED)  # the answer itself was not judged


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on one answer text against one gold text. True as a boolean if they are equivalent."""

    verdict: Verdict
    layer: str  # which layer decided: "identical", "rational", "numeric", "structure", "math-verify", ...
    gold_form: str = ""  # normal forms, as compared
    answer_form: str = ""
    seconds: float = field(default=0.0, compare=False)

    def __bool__(self) -> bool:
        return self.verdict is Verdict.CORRECT


@dataclass(frozen=True, slots=True)
class Score:
    """One graded response. `reward` is computed in verifiers.rewards only."""

    reward: float
    parts: Mapping[str, float]  # reward by name, before weights: {"correct": 1.0, "format": 0.0}
    verdict: Verdict
    extracted: str | None = None
    layer: str = ""
    well_formed: bool = False  # in the required form: the tags if strict, for any other extraction an answer
    lenient: bool = False  # correct by lenient extraction, whatever the form
    seconds: float = 0.0
    environment_score: float | None = None  # of an environment's own scorer: the reward "correct", and CORRECT from 1

    @property
    def correct(self) -> bool:
        return self.verdict is Verdict.CORRECT


@dataclass(frozen=True, slots=True)
class RewardInput:
    """One graded response as a reward function sees it."""

    response: str  # including the part that the prompt prefilled
    problem: Problem
    score: Score  # verdict, form, extracted answer; no parts yet
    tokens: int = 0  # length of the completion
    max_tokens: int = 0  # the length limit of a completion; 0 if tokens are not counted
    tool_calls: int = 0  # calls of tools that did not fail
