"""Members with dots: `1, 2, 4, ...`, `..., -2, 0, 2, ...`, `2, 4, ..., 10`, and the values of a parameter."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

from verifiers.answers.expressions import expression
from verifiers.answers.integers import MAX_LISTED, MEMBER, integer_family_of
from verifiers.answers.rationals import rational
from verifiers.answers.token import Token, UnreadableError
from verifiers.answers.tree import Node, add, multiply, number
from verifiers.answers.values import Collection, Expression, Value


def with_dots(parts: list[list[Token]]) -> Value:
    r"""The members of `1, 2, 4, \ldots`, `\ldots, -2, 0, 2, \ldots` or `2, 4, \ldots, 10` as a family or a list.

    The members before the dots are an arithmetic or a geometric progression, or the values of a quadratic polynomial.
    """
    places = [place for place, part in enumerate(parts) if part[0].is_sign("…")]
    values = [rational(expression(part)) for place, part in enumerate(parts) if place not in places]
    known = [value for value in values if value is not None]
    if len(known) < len(values) or not known:
        raise UnreadableError("dots between other values")
    steps = {after - before for before, after in pairwise(known)}
    if places == [len(parts) - 1]:
        return integer_family_of(_term(known), least=0)
    if places == [0, len(parts) - 1] and len(known) > 2 and len(steps) == 1:
        return integer_family_of(add(number(known[0]), multiply(number(steps.pop()), MEMBER)))
    if places == [len(parts) - 2] and len(known) > 2:
        return Collection("set", tuple(Expression(number(each)) for each in _finite(known)))
    raise UnreadableError("dots")


def _term(values: list[Fraction]) -> Node:
    """The term with index 0, 1, ... of a progression through at least three values."""
    steps = [after - before for before, after in pairwise(values)]
    if len(values) > 2 and len(set(steps)) == 1:
        return add(number(values[0]), multiply(number(steps[0]), MEMBER))
    if len(values) > 2 and all(values) and len({b / a for a, b in pairwise(values)}) == 1:
        return multiply(number(values[0]), Node("power", (number(values[1] / values[0]), MEMBER)))
    bends = {after - before for before, after in pairwise(steps)}
    if len(values) > 3 and len(bends) == 1:
        half = bends.pop() / 2
        return add(number(values[0]), multiply(number(steps[0] - half), MEMBER), multiply(number(half), MEMBER, MEMBER))
    raise UnreadableError("members of an unknown sequence")


def _finite(values: list[Fraction]) -> list[Fraction]:
    """2, 4, ..., 10: an arithmetic progression with its last term."""
    steps = {after - before for before, after in pairwise(values[:-1])}
    step = steps.pop() if len(steps) == 1 else Fraction(0)
    count = (values[-1] - values[0]) / step + 1 if step else Fraction(0)
    if count.denominator != 1 or not len(values) < count <= MAX_LISTED:
        raise UnreadableError("a sequence")
    return [values[0] + place * step for place in range(int(count))]


def consecutive(parts: list[list[Token]]) -> tuple[Fraction, ...] | int | None:
    """The values of `0, 1, 2`, the least of `0, 1, 2, ...`; None, for all integers, of `0, ±1, ±2, ...`."""
    places = [place for place, part in enumerate(parts) if part[0].is_sign("…")]
    nodes = [expression(part) for place, part in enumerate(parts) if place not in places]
    if places == [len(parts) - 1] and len(nodes) > 1 and all(node.op == "plusminus" for node in nodes[1:]):
        whole = [rational(nodes[0]), *(rational(node.args[-1]) for node in nodes[1:])]
        if whole == list(range(len(whole))):
            return None
    values = [rational(node) for node in nodes]
    known = tuple(value for value in values if value is not None)
    if len(known) < len(values) or not known:
        raise UnreadableError("values of a parameter")
    if not places:
        return known
    if places == [len(parts) - 1] and list(known) == [known[0] + place for place in range(len(known))]:
        return int(known[0])
    if places == [len(parts) - 2] and len(known) > 2 and known[1] == known[0] + 1:
        return tuple(_finite(list(known)))
    raise UnreadableError("an open sequence")
