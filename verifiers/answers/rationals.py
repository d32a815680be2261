"""Exact rational values of expression trees, within a limit of bits."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import ceil, comb, factorial, floor, isqrt

from verifiers.answers.values import Node

MAX_BITS = 40_000  # of a numerator or a denominator
MAX_FACTORIAL = 2_000


class TooLargeError(Exception):
    """A value over the limits of size."""


class NoValueError(Exception):
    """A division by zero, or an operation that has no value."""


@lru_cache(maxsize=8192)
def rational(node: Node) -> Fraction | None:
    """The exact value of a tree if it is rational by its form; None otherwise. NoValueError, TooLargeError."""
    op = node.op
    if op == "number":
        return node.value
    if not node.args:
        return None
    values = [rational(each) for each in node.args]
    if any(value is None for value in values):
        return _vanishing(op, values)
    function = _OPERATIONS.get(op)
    value = function(*[each for each in values if each is not None]) if function else None
    if value is not None and max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_BITS:
        raise TooLargeError
    return value


def _vanishing(op: str, values: list[Fraction | None]) -> Fraction | None:
    """A division by an exact zero is an error whatever is above it."""
    if op == "div" and values[1] == 0:
        raise NoValueError
    return None


def _sum(*terms: Fraction) -> Fraction:
    return sum(terms, Fraction(0))


def _product(*factors: Fraction) -> Fraction:
    value = Fraction(1)
    for factor in factors:
        value *= factor
    return value


def _quotient(left: Fraction, right: Fraction) -> Fraction:
    if right == 0:
        raise NoValueError
    return left / right


def _power(base: Fraction, exponent: Fraction) -> Fraction | None:
    if base == 0:
        if exponent <= 0:
            raise NoValueError
        return base
    if exponent.denominator != 1:
        return root_of_rational(base, exponent.denominator, exponent.numerator)
    bits = max(base.numerator.bit_length() - 1, base.denominator.bit_length() - 1)
    if (abs(exponent) > 10**6 and base not in (1, -1)) or bits * abs(exponent) > MAX_BITS:
        raise TooLargeError
    if base in (1, -1):
        return base if exponent % 2 else Fraction(1)
    return base ** int(exponent)


def root_of_rational(value: Fraction, index: int, exponent: int = 1) -> Fraction | None:
    """The real `index`-th root to a power, if it is rational; None otherwise."""
    if index < 1 or index > 1000 or (value < 0 and index % 2 == 0):
        return None
    parts = [_integer_root(abs(part), index) for part in (value.numerator, value.denominator)]
    if parts[0] is None or parts[1] is None:
        return None
    root = Fraction(parts[0], parts[1]) * (-1 if value < 0 else 1)
    return _power(root, Fraction(exponent))


def _integer_root(value: int, index: int) -> int | None:
    if index == 2:
        root = isqrt(value)
    elif value < 2:
        root = value
    else:
        low, high = 1, 1 << (value.bit_length() // index + 1)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if middle**index <= value else (low, middle - 1)
        root = low
    return root if root**index == value else None


def _factorial(value: Fraction) -> Fraction | None:
    if value.denominator != 1 or value < 0:
        return None
    if value > MAX_FACTORIAL:
        raise TooLargeError
    return Fraction(factorial(int(value)))


def _binomial(above: Fraction, below: Fraction) -> Fraction | None:
    if above.denominator != 1 or below.denominator != 1 or above < 0:
        return None
    if above > 10**4 and min(below, above - below) > 500:
        raise TooLargeError
    return Fraction(comb(int(above), int(below))) if below >= 0 else Fraction(0)


def _root(value: Fraction, index: Fraction) -> Fraction | None:
    return root_of_rational(value, int(index)) if index.denominator == 1 and index > 0 else None


def _logarithm(value: Fraction, base: Fraction) -> Fraction | None:
    """An integer or half-integer logarithm, by repeated multiplication."""
    if value <= 0 or base <= 0 or base == 1:
        raise NoValueError
    if value == 1:
        return Fraction(0)
    if base < 1:
        result = _logarithm(value, 1 / base)
        return None if result is None else -result
    if value < 1:
        result = _logarithm(1 / value, base)
        return None if result is None else -result
    power, exponent = base, 1
    while power < value and exponent < 400:
        power, exponent = power * base, exponent + 1
    return Fraction(exponent) if power == value else None


_OPERATIONS: dict[str, Callable[..., Fraction | None]] = {
    "add": _sum,
    "mul": _product,
    "mixed": _sum,
    "div": _quotient,
    "neg": lambda value: -value,
    "power": _power,
    "root": _root,
    "percent": lambda value: value / 100,
    "radians": lambda value: value,
    "factorial": _factorial,
    "binomial": _binomial,
    "absolute": abs,
    "floor": lambda value: Fraction(floor(value)),
    "ceil": lambda value: Fraction(ceil(value)),
    "log": _logarithm,
}
