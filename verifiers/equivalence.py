"""The rules of equivalence by name. `Problem.verifier` is one of these names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import perf_counter

from verifiers import countdown, maths
from verifiers.score import Judgement, Verdict

RULES: dict[str, Callable[[str, str], Judgement]] = {
    "maths": maths.equivalent,
    "countdown": countdown.equivalent,
}


def judge(prediction: str, gold: str, rule: str = "maths") -> Judgement:
    """Judge one answer text in this process and without a time limit: use verifiers.grade elsewhere.

    ValueError for an unknown rule, and for a gold that the rule cannot use.
    """
    start = perf_counter()
    judgement = RULES[known(rule)](gold, prediction)
    return replace(judgement, seconds=perf_counter() - start)


def same_answer(left: str, right: str, rule: str = "maths") -> bool:
    """Whether two predictions count as one answer in a vote. Symmetric, unlike grading."""
    if known(rule) == "countdown":
        return countdown.same(left, right)
    return all(maths.equivalent(*pair).verdict is Verdict.CORRECT for pair in ((left, right), (right, left)))


def known(rule: str) -> str:
    """Return the name of a known rule unchanged. ValueError for an unknown one."""
    if rule not in RULES:
        raise ValueError(f"unknown rule {rule!r}; known are {', '.join(RULES)}")
    return rule
