"""Separation bounds: how small a number made of radicals can be that is not zero, from the form of its expression.

Burnikel, Funke, Mehlhorn, Schirra and Schmitt, "A separation bound for real algebraic expressions", 2001: with the
bounds u and l of the conjugates of numerator and denominator and the degree D, a value is zero or over 1 / (l u^(D-1)).
"""

from __future__ import annotations

from math import log2

from verifiers.answers.rationals import rational
from verifiers.answers.tree import Node


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
