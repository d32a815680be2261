"""Rule "countdown": an expression of +, -, * and / over exactly the gold's numbers, with the gold's value. No eval."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

from data.boxes import last_box
from verifiers import equations
from verifiers.score import Judgement, Verdict

MAX_CHARACTERS = 500
MAX_DIGITS = 12  # of one number
MAX_DEPTH = 20  # of brackets in brackets

_SPELLINGS = (
    (re.compile(r"\\left|\\right|\\[(),;!\[\] ]|[$`]"), ""),
    (re.compile(r"\\times|\\cdot|[×·⋅∗]"), "*"),
    (re.compile(r"\\div|[÷∕]"), "/"),
    (re.compile(r"[−–]"), "-"),
)
_OTHER = re.compile(r"[^0-9\s+\-*/()]")
_LONG_NUMBER = re.compile(rf"\d{{{MAX_DIGITS + 1}}}")


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """The value of an expression and the numbers it uses."""

    value: Fraction
    numbers: tuple[int, ...]  # sorted, repetitions kept


def equivalent(gold: str, answer: str) -> Judgement:
    """Judge an answer: correct if it uses the gold's numbers, each as often as the gold, and has the gold's value.

    A true "= value" may follow the expression. ValueError for a gold that is not an expression.
    """
    expected = evaluate(gold)
    if len(answer) > MAX_CHARACTERS or _LONG_NUMBER.search(answer):
        return Judgement(Verdict.REFUSED, "too long")
    try:
        result = evaluate(answer)
    except ValueError as error:
        return Judgement(Verdict.UNPARSABLE, str(error), str(expected.value))
    layer = "numbers" if Counter(result.numbers) != Counter(expected.numbers) else "value"
    is_correct = layer == "value" and result.value == expected.value
    return Judgement(Verdict.CORRECT if is_correct else Verdict.WRONG, layer, str(expected.value), str(result.value))


def same(left: str, right: str) -> bool:
    """Whether two predictions count as one answer in a vote: expressions of equal value, or the same text."""
    try:
        return evaluate(left).value == evaluate(right).value
    except ValueError:
        return left.strip() == right.strip()


@lru_cache(maxsize=4096)
def evaluate(text: str) -> Arithmetic:
    """The value and the numbers of an expression; a true "= value" may follow it. ValueError for anything else."""
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"over {MAX_CHARACTERS} characters")
    box = last_box(text)
    expression, equals, stated_value = _plain(text if box is None else box).partition("=")
    result = _arithmetic(expression)
    if equals:
        claim = _arithmetic(stated_value)
        if len(claim.numbers) != 1 or claim.value != result.value:
            raise ValueError(f"{stated_value.strip()!r} is not the value of {expression.strip()!r}")
    return result


def _plain(text: str) -> str:
    for pattern, spelling in _SPELLINGS:
        text = pattern.sub(spelling, text)
    return text.strip().rstrip(".")


def _arithmetic(text: str) -> Arithmetic:
    if other := _OTHER.search(text):
        raise ValueError(f"{other[0]!r} is not part of an expression")
    if (
        _LONG_NUMBER.search(text)
        or max(accumulate((sign == "(") - (sign == ")") for sign in text), default=0) > MAX_DEPTH
    ):
        raise ValueError(f"a number of over {MAX_DIGITS} digits, or brackets over {MAX_DEPTH} deep")
    value = equations.evaluate(" ".join(text.split()))
    if value is None:
        raise ValueError(f"{text.strip()!r} is no expression, or divides by zero")
    return Arithmetic(value, tuple(sorted(map(int, re.findall(r"\d+", text)))))
