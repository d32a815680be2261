"""Written calculations: single steps, and the same step worked by place value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

Operator = Literal["+", "-", "*", "/"]


@dataclass(frozen=True, slots=True)
class Equation:
    """An equation `left op right = value` of whole numbers.

    between: expressions of the same value that are written between the two sides: 312-240=112-40=72.
    """

    left: int
    op: Operator
    right: int
    value: int
    between: tuple[str, ...] = ()

    @property
    def expression(self) -> str:
        return f"{self.left}{self.op}{self.right}"

    def __str__(self) -> str:
        return "=".join([self.expression, *self.between, str(self.value)])


def equation(left: int, op: Operator, right: int) -> Equation:
    """The equation with its correct value. A division must be exact."""
    if op == "/":
        quotient, remainder = divmod(left, right)
        assert remainder == 0, f"{left}/{right} is not exact"
        return Equation(left, op, right, quotient)
    return Equation(left, op, right, {"+": left + right, "-": left - right, "*": left * right}[op])


# ---------------------------------------------------------------------------------------------- work by place value


def places(number: int) -> list[int]:
    """Split a number by place value, without zeros: 347 -> [300, 40, 7]."""
    digits = str(number)
    return [int(d) * 10 ** (len(digits) - 1 - i) for i, d in enumerate(digits) if d != "0"]


def work(step: Equation, *, one_digit: bool = False) -> list[Equation]:
    """Work a step out in elementary steps, the last of which has its value; [] if there is nothing simpler.

    one_digit: whether a division subtracts one significant digit at a time: 2082-1800=1082-800=282 instead of
    2082-1800=282.
    """
    chain = _WORK[step.op](step.left, step.right)
    if one_digit and step.op == "/":
        chain = [digit_by_digit(part) if part.op == "-" else part for part in chain]
    return chain if len(chain) > 1 else []


def digit_by_digit(step: Equation) -> Equation:
    """A difference with what is left of both sides after each significant digit: 2082-1800=1082-800=282."""
    left, parts, between = step.left, places(step.right), []
    while len(parts) > 1:
        left -= parts.pop(0)
        between.append(f"{left}-{sum(parts)}")
    return replace(step, between=tuple(between))


def _work_product(a: int, b: int) -> list[Equation]:
    parts = [equation(p, "*", q) for p in places(a) for q in places(b)]
    if len(parts) == 1:
        return []
    values = [part.value for part in parts]
    return parts + _running(values[0], "+", values[1:])


def _work_quotient(a: int, b: int) -> list[Equation]:
    chain: list[Equation] = []
    parts = places(a // b)
    rest = a
    for part in parts:
        chain.append(equation(b, "*", part))
        if part != parts[-1]:
            chain.append(equation(rest, "-", chain[-1].value))
            rest = chain[-1].value
    return chain + _running(parts[0], "+", parts[1:]) if len(parts) > 1 else []


def _running(start: int, op: Operator, parts: list[int]) -> list[Equation]:
    """The chain "start op part", then "its value op the next part", and so on."""
    chain: list[Equation] = []
    for part in parts:
        chain.append(equation(start, op, part))
        start = chain[-1].value
    return chain


_WORK: dict[Operator, Callable[[int, int], list[Equation]]] = {
    "+": lambda a, b: _running(a, "+", places(b)),
    "-": lambda a, b: _running(a, "-", places(b)),
    "*": _work_product,
    "/": _work_quotient,
}
