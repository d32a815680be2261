r"""Numeric values of expression trees to any number of digits, and the test whether a value is zero.

A value is said to be zero only if (a) it is rational and zero exactly, or (b) it is made of radicals and below their
separation bound, or (c) it is smaller than any difference that its parts could leave: MARGIN bits beyond the sizes of
all numbers in it. Everything else is not zero, or not decided.

Separation bounds: Burnikel, Funke, Mehlhorn, Schirra and Schmitt, "A separation bound for real algebraic expressions",
2001. With the bounds u and l of the conjugates of numerator and denominator and the degree D, a value is zero or over
1 / (l u^(D-1)).
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from fractions import Fraction
from functools import lru_cache
from math import log2
from types import SimpleNamespace
from typing import Any

from verifiers.answers.rationals import NoValueError, TooLargeError, rational
from verifiers.answers.values import Node

MAX_PRECISION = 30_000  # bits
MARGIN = 1_200  # bits, for values that are not algebraic
_FIRST_PRECISION = 100
MAX_WORK = 40_000  # of one pair: nodes evaluated, times the square of the precision in units of 500 bits
_work = ContextVar("work", default=0.0)


def start_budget() -> None:
    """Begin to count the work of one pair. Over MAX_WORK every evaluation raises TooLargeError."""
    _work.set(0.0)


def spend(work: float) -> None:
    """Add to the work of the pair. TooLargeError over MAX_WORK."""
    _work.set(_work.get() + work)
    if _work.get() > MAX_WORK:
        raise TooLargeError


@lru_cache(maxsize=1)
def _library() -> SimpleNamespace:
    """Import mpmath at the first use, with a context of its own, so that no precision of other code is changed."""
    from mpmath.ctx_mp import MPContext

    return SimpleNamespace(mp=MPContext())


class Evaluation:
    """The value of a tree at one precision, the sizes of its parts, and whether all of them are real."""

    def __init__(self, precision: int) -> None:
        self.mp = _library().mp
        self.mp.prec = precision
        self.cost = 1 + (precision / 500) ** 2
        self.size = 0.0  # sum of |log2| of the parts
        self.largest = 1.0  # log2 of the largest part
        self.is_real = True

    def value(self, node: Node) -> Any:
        """The value as a real or complex number of mpmath. NoValueError, TooLargeError."""
        spend(self.cost)
        exact = rational(node)
        if exact is not None:
            self.size += exact.numerator.bit_length() + exact.denominator.bit_length()
            self.largest = max(self.largest, exact.numerator.bit_length() - exact.denominator.bit_length() + 1)
            return self.mp.mpf(exact.numerator) / exact.denominator
        function = _FUNCTIONS.get(node.op)
        if function is None:
            raise NoValueError
        try:
            value = function(self, node)
        except (ValueError, ZeroDivisionError, OverflowError) as error:  # poles, as mpmath reports them
            raise NoValueError from error
        self._note(value)
        return value

    def _note(self, value: Any) -> None:
        mp = self.mp
        if not mp.isfinite(value):
            raise NoValueError
        if value != 0:
            magnitude = float(mp.mag(value))
            if abs(magnitude) > MAX_PRECISION:
                raise TooLargeError
            self.size += abs(magnitude)
            self.largest = max(self.largest, magnitude)
        if isinstance(value, mp.mpc) and value.imag != 0:
            self.is_real = False

    def values(self, node: Node) -> list[Any]:
        return [self.value(each) for each in node.args]

    def small(self, value: Any) -> Any:
        """An argument of exp or of a trigonometric function; TooLargeError over 20,000."""
        if abs(value) > 20_000:
            raise TooLargeError
        self.size += float(abs(value)) * 1.45
        return value

    def real(self, value: Any) -> Any:
        if isinstance(value, self.mp.mpc):
            if abs(value.imag) > self.mp.mpf(2) ** (-self.mp.prec // 2):
                raise NoValueError
            return value.real
        return value


def _power(run: Evaluation, node: Node) -> Any:
    base, exponent = node.args[0], rational(node.args[1])
    if base.op == "e":
        return run.mp.exp(run.small(run.value(node.args[1])))
    value = run.value(base)
    if exponent is not None:
        if value == 0 and exponent <= 0:
            raise NoValueError
        return _rational_power(run, value, exponent)
    power = run.value(node.args[1])
    if value == 0:
        raise NoValueError
    run.small(power * run.mp.log(value))
    return run.mp.power(value, power)


def _rational_power(run: Evaluation, value: Any, exponent: Fraction) -> Any:
    """A power with a rational exponent; of a negative number with an odd denominator the real one."""
    mp = run.mp
    if value != 0 and abs(float(exponent)) * (abs(mp.mag(value)) + 1) > MAX_PRECISION:
        raise TooLargeError
    run.size += exponent.numerator.bit_length() + exponent.denominator.bit_length()
    if exponent.denominator == 1:
        return mp.power(value, int(exponent))
    if not isinstance(value, mp.mpc) and value < 0 and exponent.denominator % 2:
        sign = -1 if exponent.numerator % 2 else 1
        return sign * mp.power(_principal_root(run, -value, exponent.denominator), exponent.numerator)
    root = _principal_root(run, value, exponent.denominator)
    return mp.power(root, exponent.numerator)


def _principal_root(run: Evaluation, value: Any, index: int) -> Any:
    if index > 1_000:
        raise TooLargeError
    if index == 2 or value == 0:
        return run.mp.sqrt(value)
    # mpmath's iteration loses hundreds of bits for some indices (35, 55 at 10,000 bits): one step more restores them.
    root = run.mp.root(value, index)
    return root - root * (run.mp.power(root, index) / value - 1) / index


def _root(run: Evaluation, node: Node) -> Any:
    index = rational(node.args[1])
    if index is None:
        return run.mp.power(run.value(node.args[0]), 1 / run.value(node.args[1]))
    if index == 0:
        raise NoValueError
    return _rational_power(run, run.value(node.args[0]), 1 / index)


def _sum(run: Evaluation, node: Node) -> Any:
    total = run.mp.mpf(0)
    for each in node.args:
        total += run.value(each)
    return total


def _product(run: Evaluation, node: Node) -> Any:
    total = run.mp.mpf(1)
    for each in node.args:
        total *= run.value(each)
    return total


def _quotient(run: Evaluation, node: Node) -> Any:
    above, below = run.values(node)
    if abs(below) < run.mp.mpf(2) ** (-run.mp.prec // 2):
        raise NoValueError
    return above / below


def _logarithm(run: Evaluation, node: Node) -> Any:
    values = run.values(node)
    if any(value == 0 for value in values):
        raise NoValueError
    logs = [run.mp.log(value) for value in values]
    if len(logs) == 1:
        return logs[0]
    if logs[1] == 0:
        raise NoValueError
    return logs[0] / logs[1]


def _gamma(run: Evaluation, node: Node) -> Any:
    value = run.value(node.args[0])
    if abs(value) > 2_000:
        raise TooLargeError
    return run.mp.gamma(value + 1)


def _binomial(run: Evaluation, node: Node) -> Any:
    above, below = run.values(node)
    if abs(above) > 2_000 or abs(below) > 2_000:
        raise TooLargeError
    return run.mp.binomial(above, below)


def _rounding(name: str) -> Callable[[Evaluation, Node], Any]:
    def function(run: Evaluation, node: Node) -> Any:
        value = run.real(run.value(node.args[0]))
        if abs(value - run.mp.nint(value)) < run.mp.mpf(2) ** (-run.mp.prec // 3):
            raise NoValueError  # on which side of the integer is not known
        return getattr(run.mp, name)(value)

    return function


def _plain(name: str) -> Callable[[Evaluation, Node], Any]:
    def function(run: Evaluation, node: Node) -> Any:
        return getattr(run.mp, name)(run.small(run.value(node.args[0])))

    return function


def _cis(run: Evaluation, node: Node) -> Any:
    return run.mp.expj(run.small(run.value(node.args[0])))


def _positive_imaginary(run: Evaluation, _node: Node) -> Any:
    return run.mp.mpc(0, 1)


_PLAIN_FUNCTIONS = "sin cos tan cot sec csc sinh cosh tanh coth asinh acosh atanh asin acos atan acot asec acsc exp"
_FUNCTIONS: dict[str, Callable[[Evaluation, Node], Any]] = {
    "add": _sum, "mixed": _sum, "mul": _product, "div": _quotient, "power": _power, "root": _root,
    "neg": lambda run, node: -run.value(node.args[0]),
    "radians": lambda run, node: run.value(node.args[0]),
    "percent": lambda run, node: run.value(node.args[0]) / 100,
    "degrees": lambda run, node: run.value(node.args[0]) * run.mp.pi / 180,
    "pi": lambda run, _node: +run.mp.pi, "e": lambda run, _node: run.mp.exp(1), "i": _positive_imaginary,
    "absolute": lambda run, node: abs(run.value(node.args[0])),
    "ln": _logarithm, "log": _logarithm, "factorial": _gamma, "binomial": _binomial,
    "cis": _cis,
    "floor": _rounding("floor"), "ceil": _rounding("ceil"),
    **{name: _plain(name) for name in _PLAIN_FUNCTIONS.split()},
}  # fmt: skip


def approximation(node: Node, digits: int = 15) -> complex | float:
    """The value as a float or complex number. NoValueError, TooLargeError."""
    run = Evaluation(int(digits * 3.33) + 20)
    value = run.value(node)
    return complex(value) if isinstance(value, run.mp.mpc) and value.imag != 0 else float(value.real)


@lru_cache(maxsize=8192)
def is_zero(node: Node) -> bool | None:
    """Whether a tree without letters is zero; None if that is not decided. NoValueError if it has no value."""
    exact = rational(node)
    if exact is not None:
        return exact == 0
    run = Evaluation(_FIRST_PRECISION)
    value = run.value(node)
    if value != 0 and run.mp.mag(value) > run.largest - _FIRST_PRECISION / 2:
        return False
    bound = separation_bits(node)
    bits = int(bound if bound is not None else MARGIN + 2 * run.size)
    if bits + run.largest > MAX_PRECISION:
        return None
    precision = int(bits + 2 * run.largest + 64)
    value = Evaluation(precision).value(node)
    return bool(value == 0 or run.mp.mag(value) < -bits)


def sign(node: Node) -> int | None:
    """The sign of a real number; None if it is not real or not decided. NoValueError."""
    exact = rational(node)
    if exact is not None:
        return (exact > 0) - (exact < 0)
    zero = is_zero(node)
    if zero is not False:
        return None if zero is None else 0
    for precision in (_FIRST_PRECISION, 1_000, 8_000):
        run = Evaluation(precision)
        value = run.value(node)
        if isinstance(value, run.mp.mpc):
            if abs(value.imag) > run.mp.mpf(2) ** (run.largest - precision / 2):
                return None
            value = value.real
        if abs(value) > run.mp.mpf(2) ** (run.largest - precision / 2):
            return 1 if value > 0 else -1
    return None


def separation_bits(node: Node) -> float | None:
    """Bits b such that the tree is zero or over 2^-b in absolute value; None if it is not made of radicals."""
    state = _Bound()
    try:
        above, below = state.bounds(node)
    except _OtherError:
        return None
    return below + (state.degree - 1) * above + 1 if state.degree <= 10**5 else float(10**9)


class _OtherError(Exception):
    pass


class _Bound:
    """log2 of the bounds u and l of the conjugates of numerator and denominator, and the degree of the field."""

    def __init__(self) -> None:
        self.degree = 1
        self.roots: set[Node] = set()

    def bounds(self, node: Node) -> tuple[float, float]:
        exact = rational(node)
        if exact is not None:
            return (_log(exact.numerator), _log(exact.denominator))
        if node.op in ("add", "mul", "mixed"):
            total = self.bounds(node.args[0])
            for each in node.args[1:]:
                right = self.bounds(each)
                above = total[0] + right[0] if node.op == "mul" else _log_sum(total[0] + right[1], right[0] + total[1])
                total = (above, total[1] + right[1])
            return total
        if node.op in ("neg", "radians"):
            return self.bounds(node.args[0])
        if node.op == "div":
            (a, b), (c, d) = map(self.bounds, node.args)
            return a + d, b + c
        if node.op in ("power", "root"):
            return self._power(node)
        raise _OtherError

    def _power(self, node: Node) -> tuple[float, float]:
        exponent = rational(node.args[1])
        if exponent is None or (node.op == "root" and exponent == 0):
            raise _OtherError
        exponent = 1 / exponent if node.op == "root" else exponent
        above, below = self.bounds(node.args[0])
        if exponent < 0:
            above, below, exponent = below, above, -exponent
        above, below = above * exponent.numerator, below * exponent.numerator
        index = exponent.denominator
        if index == 1:
            return above, below
        if node not in self.roots:
            self.roots.add(node)
            self.degree *= index * (2 if node.op == "power" and index % 2 == 0 else 1)
        if above >= below:
            return (above + (index - 1) * below) / index, below
        return above, ((index - 1) * above + below) / index


def _log(value: int) -> float:
    value = abs(value)
    return max(0.0, log2(value) if value < 1 << 900 else float(value.bit_length())) if value else 0.0


def _log_sum(left: float, right: float) -> float:
    """log2(2^left + 2^right)."""
    high, low = max(left, right), min(left, right)
    return high + log2(1 + 2.0 ** max(-1000.0, low - high))
