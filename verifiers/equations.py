"""Equations in a text, evaluated exactly: whole or decimal numbers, + - * / in their spellings, parentheses.

The text is written by a model: all patterns scan linearly, with bounded repeats.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

# Rewrites to one spelling for each sign. Bold marks are removed before products are read, bullets before signs.
_SPELLINGS = tuple(
    (re.compile(pattern), plain)
    for pattern, plain in (
        (r"\*\*", " "),
        (r"(?m)^[ \t]*[-*+•][ \t]+", ""),
        (r"[×·∗]|\\times\b|\\cdot\b|(?<=[\d)])[ ]?x[ ]?(?=[\d(])", "*"),
        (r"÷|\\div\b", "/"),
        (r"[−–]", "-"),
        (r"(?<=\d),(?=\d{3}(?!\d))", ""),
        (r"\\?\$|\\[,;!()\[\]]", ""),
    )
)
_NUMBER = r"\d{1,12}(?:\.\d{1,12})?"
_ATOM = rf"\({{0,3}}{_NUMBER}\){{0,3}}"
# A piece of something longer is not an equation: "x - 3+4 = 8", "1 1/2 = 0.5", "650 000/2 = 325 000".
_BEFORE = r"(?<![\w.)}\]^+\-*/])(?<![\^+\-*/x\d] )"
# Nor is one whose value goes on: "2+3=10-5", "3*30 = 30 + m", "1/10=10%", "17/3 = 5 and 2/3", "63/5 = 12 remainder 3".
_AFTER = (
    r"(?![\w%^]|\.\d|[ ]?[+\-*/^][ ]?(?:[\d(]|[A-Za-z]\b)| \d{3}\b| and \d+/\d"
    r"|[ ]?(?:\\text\{[ ]?)?(?:with a )?(?:remainder|R )\b)"
)
_TOKEN = re.compile(r"\d+(?:\.\d+)?|[+\-*/()]")
_ZERO, _ONE = r"0+(?:\.0+)?", r"0*1(?:\.0+)?"  # as whole operands
_NEUTRAL = re.compile(rf"(?:[+\-*]\(*{_ZERO}|[*/]\(*{_ONE})(?![\d.])|(?<![\d.])(?:{_ZERO}\)*[+*/]|{_ONE}\)*\*)")
_EQUATION = re.compile(rf"{_BEFORE}({_ATOM}(?:[ ]?[+\-*/][ ]?{_ATOM}){{1,8}})[ ]?=[ ]?(-?{_NUMBER}){_AFTER}")


@dataclass(frozen=True, slots=True)
class Equation:
    """An equation in a text: expression (without spaces), its exact value, the value in the text, position."""

    expression: str
    exact: Fraction
    value_text: str  # the right-hand side as it is in the text
    start: int  # characters into the plain text
    end: int

    @property
    def is_correct(self) -> bool:
        """Whether both sides agree. A non-terminating value (10/3) may be cut or rounded at the text's decimals."""
        value, unit = Fraction(self.value_text), Fraction(1, 10 ** len(self.value_text.partition(".")[2]))
        is_non_terminating = unit != 1 and (self.exact / unit).denominator != 1
        return abs(self.exact - value) < unit if is_non_terminating else self.exact == value

    @property
    def is_trivial(self) -> bool:
        """Whether one of the operations has no effect or gives zero: + 0, - 0, 0 +, * 1, 1 *, / 1, * 0, 0 *, 0 /."""
        return bool(_NEUTRAL.search(self.expression))

    @property
    def statement(self) -> tuple[tuple[str, ...], Fraction, bool]:
        """A key that ignores the order of the numbers: 2+3=5 and 3+2=5 have the same key."""
        return tuple(sorted(_TOKEN.findall(self.expression))), Fraction(self.value_text), self.is_correct


def equations(text: str) -> list[Equation]:
    """Every equation of a plain text, in order."""
    result = []
    for match in _EQUATION.finditer(text):
        expression = match[1].replace(" ", "")
        expression = expression[max(0, expression.count("(") - expression.count(")")) :]  # "(3+4=7)"
        exact = evaluate(expression)
        if exact is not None:
            result.append(Equation(expression, exact, match[2], match.start(), match.end()))
    return result


def evaluate(expression: str) -> Fraction | None:
    """The exact value of numbers joined by + - * / and parentheses; None for a division by zero or anything else."""
    tokens = _TOKEN.findall(expression)
    if "".join(tokens) != expression.replace(" ", ""):
        return None
    try:
        value = _sum(tokens)
    except (ZeroDivisionError, IndexError, ValueError):
        return None
    return None if tokens else value


def _sum(tokens: list[str]) -> Fraction:
    """Parse a sum of products, with or without a minus in front; its tokens are removed from the list."""
    if tokens[:1] == ["-"]:
        tokens.insert(0, "0")
    value = _product(tokens)
    while tokens and tokens[0] in "+-":
        sign = 1 if tokens.pop(0) == "+" else -1
        value += sign * _product(tokens)
    return value


def _product(tokens: list[str]) -> Fraction:
    value = _operand(tokens)
    while tokens and tokens[0] in "*/":
        op, operand = tokens.pop(0), _operand(tokens)
        value = value * operand if op == "*" else value / operand
    return value


def _operand(tokens: list[str]) -> Fraction:
    first = tokens.pop(0)
    if first != "(":
        return Fraction(first)
    value = _sum(tokens)
    if tokens.pop(0) != ")":
        raise ValueError("a parenthesis is not closed")
    return value


def think_block(response: str) -> str:
    """The think block: the text before `</think>`, or all of it if the block is not closed."""
    return response.split("</think>", 1)[0]


def plain_with_places(text: str) -> tuple[str, list[int]]:
    """The text as `plain` gives it, and for each of its characters its position in the original text."""
    places = list(range(len(text)))
    for pattern, sign in _SPELLINGS:
        pieces, new_places, end = [], [], 0
        for match in pattern.finditer(text):
            pieces += [text[end : match.start()], sign]
            new_places += places[end : match.start()] + places[match.start() : match.start() + 1] * len(sign)
            end = match.end()
        if pieces:
            text, places = "".join([*pieces, text[end:]]), new_places + places[end:]
    return text, places


def plain(text: str) -> str:
    """The text with one spelling for each sign of arithmetic, and no thousands separators, currency or bold marks."""
    for pattern, sign in _SPELLINGS:
        text = pattern.sub(sign, text)
    return text
