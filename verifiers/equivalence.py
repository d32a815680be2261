"""The verifiers by name: how an answer is compared with the gold answer. `Problem.verifier` is one of these names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter

from verifiers import countdown, maths, questions
from verifiers.questions import Question
from verifiers.score import Judgement, Verdict


@dataclass(frozen=True, slots=True)
class Verifier:
    """How answers are compared: with a gold answer, and with each other."""

    equivalent: Callable[[str, str], Judgement]  # (gold, answer)
    same: Callable[[str, str], bool]  # two predictions, for a vote


def _same_text(left: str, right: str) -> bool:
    return left.split() == right.split()


def _judge_text(gold: str, answer: str) -> Judgement:
    return Judgement(Verdict.CORRECT if _same_text(gold, answer) else Verdict.WRONG, "text", gold, answer)


VERIFIERS: dict[str, Verifier] = {
    "maths": Verifier(maths.equivalent, maths.same),
    "countdown": Verifier(countdown.equivalent, countdown.same),
    # Where only two texts are known. VerifierPool.score asks the environment itself.
    "environment": Verifier(_judge_text, _same_text),
}


def judge(prediction: str, gold: str, verifier: str = "maths", question: Question | None = None) -> Judgement:
    """Judge one answer text in this process and without a time limit: use verifiers.grade elsewhere.

    Verifier "maths" uses what the question says about the answer; the others do not.
    ValueError for an unknown verifier, and for a gold that it cannot use.
    """
    start = perf_counter()
    if question and verifier == "maths":
        judgement = questions.equivalent(gold, prediction, question)
    else:
        judgement = VERIFIERS[check_verifier(verifier)].equivalent(gold, prediction)
    return replace(judgement, seconds=perf_counter() - start)


def same_answer(left: str, right: str, verifier: str = "maths") -> bool:
    """Whether two predictions count as one answer in a vote. Symmetric, unlike grading."""
    return VERIFIERS[check_verifier(verifier)].same(left, right)


def check_verifier(verifier: str) -> str:
    """Return the name of a known verifier unchanged. ValueError for an unknown one."""
    if verifier not in VERIFIERS:
        raise ValueError(f"unknown verifier {verifier!r}; known are {', '.join(VERIFIERS)}")
    return verifier
