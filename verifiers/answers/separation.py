"""Separation bounds: how small an algebraic number can be that is not zero, from the form of its expression.

Burnikel, Funke, Mehlhorn, Schirra and Schmitt, "A separation bound for real algebraic expressions", 2001: with the
bounds u and l of the conjugates of numerator and denominator and the degree D, a value is zero or over 1 / (l u^(D-1)).
"""

from __future__ import annotations

from fractions import Fraction
from math import gcd, log2

from verifiers.answers.rationals import rational
from verifiers.answers.tree import Node


def separation_bits(node: Node) -> float | None:
    """Bits b such that the tree is zero or over 2^-b in absolute value; None if it is not known to be algebraic."""
    state = _Bound()
    try:
        above, below = state.bounds(node)
    except _TranscendentalError:
        return None
    degree = state.degree * _totient(state.cyclotomic)
    if degree > 10**5:
        return float(10**9)
    return below + (degree - 1) * above + 1


class _TranscendentalError(Exception):
    pass


class _Bound:
    """log2 of the bounds u and l of the conjugates of numerator and denominator, and the degree of the field."""

    def __init__(self) -> None:
        self.degree = 1
        self.cyclotomic = 1  # n of the roots of unity
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
        if node.op == "i":
            self._unity(4)
            return 0.0, 0.0
        return self._trigonometric(node)

    def _power(self, node: Node) -> tuple[float, float]:
        exponent = rational(node.args[1])
        if exponent is None or (node.op == "root" and exponent == 0):
            raise _TranscendentalError
        exponent = 1 / exponent if node.op == "root" else exponent
        if node.args[0].op == "e":
            raise _TranscendentalError
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

    def _trigonometric(self, node: Node) -> tuple[float, float]:
        """Sine, cosine and the rest at rational multiples of pi are sums of roots of unity over 2."""
        if node.op == "power" or node.op not in _TRIGONOMETRIC:
            raise _TranscendentalError
        multiple = multiple_of_pi(node.args[0])
        if multiple is None:
            raise _TranscendentalError
        self._unity(2 * multiple.denominator)
        self._unity(4)
        if node.op == "cis":
            return 0.0, 0.0
        return 1.0, 1.0  # 2 cos and 2 sin are integers of the field; quotients of them are bounded alike

    def _unity(self, order: int) -> None:
        self.cyclotomic = self.cyclotomic * order // gcd(self.cyclotomic, order)


_TRIGONOMETRIC = frozenset(["sin", "cos", "tan", "cot", "sec", "csc", "cis"])


def multiple_of_pi(node: Node) -> Fraction | None:
    """q where the tree is q times pi, by its form."""
    if node.op == "pi":
        return Fraction(1)
    if node.op == "degrees":
        value = rational(node.args[0])
        return None if value is None else value / 180
    if node.op == "radians":
        return multiple_of_pi(node.args[0])
    if node.op == "neg":
        part = multiple_of_pi(node.args[0])
        return None if part is None else -part
    if node.op == "add":
        parts = [multiple_of_pi(each) for each in node.args]
        return None if any(part is None for part in parts) else sum((part for part in parts if part), Fraction(0))
    if node.op == "div":
        part, below = multiple_of_pi(node.args[0]), rational(node.args[1])
        return None if part is None or not below else part / below
    if node.op == "mul":
        parts = [multiple_of_pi(each) for each in node.args]
        rest = [rational(each) for each, part in zip(node.args, parts, strict=True) if part is None]
        known = [part for part in parts if part is not None]
        if len(known) != 1 or any(each is None for each in rest):
            return None
        value = known[0]
        for each in rest:
            value *= each or 0
        return value
    return Fraction(0) if rational(node) == 0 else None


def _totient(value: int) -> int:
    result, rest, prime = value, value, 2
    while prime * prime <= rest:
        if rest % prime == 0:
            while rest % prime == 0:
                rest //= prime
            result -= result // prime
        prime += 1
        if prime > 10**4:
            return 10**9
    return result - result // rest if rest > 1 else result


def _log(value: int) -> float:
    value = abs(value)
    return max(0.0, log2(value) if value < 1 << 900 else float(value.bit_length())) if value else 0.0


def _log_sum(left: float, right: float) -> float:
    """log2(2^left + 2^right)."""
    high, low = max(left, right), min(left, right)
    return high + log2(1 + 2.0 ** max(-1000.0, low - high))
