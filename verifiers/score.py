"""What the grader says about one response: a verdict with its evidence, and the rewards made of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from data.problem import Problem


class Verdict(StrEnum):
    """Why a response earned what it earned. Only CORRECT earns the correctness reward."""

    CORRECT = "correct"
    WRONG = "wrong"
    NO_ANSWER = "no_answer"  # nothing to extract
    MALFORMED = "malformed"  # an answer may be there, but not in the strict form
    UNPARSABLE = "unparsable"  # extracted, but not an expression we can read
    REFUSED = "refused"  # over a size limit, before any parser saw it
    TIMED_OUT = "timed_out"
    CRASHED = "crashed"


UNJUDGED = (Verdict.TIMED_OUT, Verdict.CRASHED, Verdict.REFUSED)  # nothing was found out about the answer itself


@dataclass(frozen=True, slots=True)
class Judgement:
    """Equivalence of one answer text with one gold text. True when they are equivalent."""

    verdict: Verdict
    layer: str  # which layer decided: "identical", "rational", "numeric", "structure", "math-verify", ...
    gold_form: str = ""  # normal forms, as compared
    answer_form: str = ""
    seconds: float = field(default=0.0, compare=False)

    def __bool__(self) -> bool:
        return self.verdict is Verdict.CORRECT


@dataclass(frozen=True, slots=True)
class Score:
    """One graded response. `reward` is made in verifiers.rewards and nowhere else."""

    reward: float
    parts: Mapping[str, float]  # reward by name, before weights: {"correct": 1.0, "format": 0.0}
    verdict: Verdict
    extracted: str | None = None
    layer: str = ""
    format_ok: bool = False  # the form asked for: the strict one, or an answer that the policy finds
    lenient: bool = False  # right under the last-answer-anywhere extraction, whatever the format
    seconds: float = 0.0

    @property
    def correct(self) -> bool:
        return self.verdict is Verdict.CORRECT


@dataclass(frozen=True, slots=True)
class RewardInput:
    """One graded response as a reward function sees it."""

    response: str  # with the part that the prompt prefilled
    problem: Problem
    score: Score  # verdict, form, extracted answer; no parts yet
    tokens: int = 0  # of the completion
    max_tokens: int = 0  # the most it could have had; 0 where nobody counts
