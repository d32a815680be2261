"""The equivalence rules by name. `Problem.verifier` is one of these names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter

from verifiers import countdown, maths, questions
from verifiers.questions import Question
from verifiers.score import Judgement, Verdict


@dataclass(frozen=True, slots=True)
class Rule:
    """How answers are compared: with a gold answer, and with each other."""

    equivalent: Callable[[str, str], Judgement]  # (gold, answer)
    same: Callable[[str, str], bool]  # two predictions, for a vote


def _same_text(left: str, right: str) -> bool:
    return left.split() == right.split()


def _judge_text(gold: str, answer: str) -> Judgement:
    return Judgement(Verdict.CORRECT if _same_text(gold, answer) else Verdict.WRONG, "text", gold, answer)


RULES: dict[str, Rule] = {
    "maths": Rule(maths.equivalent, maths.same),
    "countdown": Rule(countdown.equivalent, countdown.same),
    # Where only two texts are known. VerifierPool.score asks the environment itself.
    "environment": Rule(_judge_text, _same_text),
}


def judge(prediction: str, gold: str, rule: str = "maths", question: Question | None = None) -> Judgement:
    """Judge one answer text in this process and without a time limit: use verifiers.grade elsewhere.

    Rule "maths" uses what the question says about the answer; the other rules do not.
    ValueError for an unknown rule, and for a gold that the rule cannot use.
    """
    start = perf_counter()
    if question and rule == "maths":
        judgement = questions.equivalent(gold, prediction, question)
    else:
        judgement = RULES[check_rule(rule)].equivalent(gold, prediction)
    return replace(judgement, seconds=perf_counter() - start)


def same_answer(left: str, right: str, rule: str = "maths") -> bool:
    """Whether two predictions count as one answer in a vote. Symmetric, unlike grading."""
    return RULES[check_rule(rule)].same(left, right)


def check_rule(rule: str) -> str:
    """Return the name of a known rule unchanged. ValueError for an unknown rule."""
    if rule not in RULES:
        raise ValueError(f"unknown rule {rule!r}; known are {', '.join(RULES)}")
    return rule
