"""Rule "countdown": an expression of +, -, * and / over exactly the gold's numbers, with the gold's value. No eval."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from data.boxes import last_box
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
_TOKEN = re.compile(r"\s*(?:(\d+)|([-+*/()]))")


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
    if len(answer) > MAX_CHARACTERS or re.search(rf"\d{{{MAX_DIGITS + 1}}}", answer):
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
    result = _Parser(expression).result()
    if equals:
        claim = _Parser(stated_value).result()
        if len(claim.numbers) != 1 or claim.value != result.value:
            raise ValueError(f"{stated_value.strip()!r} is not the value of {expression.strip()!r}")
    return result


def _plain(text: str) -> str:
    for pattern, spelling in _SPELLINGS:
        text = pattern.sub(spelling, text)
    return text.strip().rstrip(".")


class _Parser:
    """By descent: sum = ["-"] product (("+"|"-") product)*; product = atom (("*"|"/") atom)*; atom = n | (sum)."""

    def __init__(self, text: str) -> None:
        self.tokens = _tokens(text)
        self.place = 0
        self.depth = 0
        self.numbers: list[int] = []

    def result(self) -> Arithmetic:
        value = self.sum()
        if self.place < len(self.tokens):
            raise ValueError(f"unexpected {self.tokens[self.place]!r}")
        return Arithmetic(value, tuple(sorted(self.numbers)))

    def sum(self) -> Fraction:
        value = -self.product() if self.take("-") else self.product()
        while sign := self.take("+", "-"):
            value += self.product() if sign == "+" else -self.product()
        return value

    def product(self) -> Fraction:
        value = self.atom()
        while sign := self.take("*", "/"):
            factor = self.atom()
            if sign == "/" and factor == 0:
                raise ValueError("division by zero")
            value = value * factor if sign == "*" else value / factor
        return value

    def atom(self) -> Fraction:
        if self.take("("):
            self.depth += 1
            if self.depth > MAX_DEPTH:
                raise ValueError(f"brackets over {MAX_DEPTH} deep")
            value = self.sum()
            self.depth -= 1
            if not self.take(")"):
                raise ValueError("a bracket is not closed")
            return value
        token = self.tokens[self.place] if self.place < len(self.tokens) else "the end"
        if not token.isdecimal():
            raise ValueError(f"expected a number, got {token!r}")
        self.place += 1
        self.numbers.append(int(token))
        return Fraction(int(token))

    def take(self, *signs: str) -> str:
        """The next token if it is one of the signs, else ""."""
        if self.place < len(self.tokens) and self.tokens[self.place] in signs:
            self.place += 1
            return self.tokens[self.place - 1]
        return ""


def _tokens(text: str) -> list[str]:
    text = text.strip()
    tokens, place = [], 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise ValueError(f"{text[place]!r} is not part of an expression")
        if match[1] and (len(match[1]) > MAX_DIGITS or not match[1].isascii()):
            raise ValueError(f"a number of over {MAX_DIGITS} digits")
        tokens.append(match[0].strip())
        place = match.end()
    return tokens
