"""Equality of functions by cases, with each other and with single expressions: `|x|` and x for x ≥ 0, -x for x < 0."""

from __future__ import annotations

from fractions import Fraction
from functools import cmp_to_key
from itertools import pairwise

from verifiers.answers.comparison import equal_expressions
from verifiers.answers.evaluation import approximation
from verifiers.answers.qualifiers import INTEGER_LETTERS
from verifiers.answers.rationals import rational
from verifiers.answers.reals import ALL_REALS, order
from verifiers.answers.results import Result, all_equal
from verifiers.answers.token import UnreadableError
from verifiers.answers.tree import Node, is_infinite, names, number, replace_symbols
from verifiers.answers.values import Expression, Family, Function, Piecewise, Reals, Value

_NUM_POINTS = 4  # in every interval
_INTEGERS = range(1, 25)
_SPAN = 60  # values of the parameter of a class of integers, each side of zero
Piece = tuple[Expression, Reals | Family]


def equal_piecewise(gold: Value, answer: Value) -> Result:
    """Whether two functions have the same value at the ends of all intervals and at points between them."""
    sides = [_pieces(gold), _pieces(answer)]
    if sides[0] is None or sides[1] is None:
        return None
    letters = {reals.name for side in sides for _, reals in side or () if isinstance(reals, Reals) and reals.name}
    if not letters:
        letters = {name for side in sides for value, _ in side or () for name in names(value.node)}
    if len(letters) > 1:
        return None
    letter = next(iter(letters), "")  # none where numbers hold for even and odd ones
    is_whole = letter in INTEGER_LETTERS or any(
        isinstance(condition, Family) for side in sides for _, condition in side or ()
    )
    points = [number(value) for value in _INTEGERS] if is_whole else _points([*sides[0], *sides[1]])
    return all_equal(_equal_at(sides[0], sides[1], letter, point) for point in points)


def _pieces(value: Value) -> tuple[Piece, ...] | None:
    if isinstance(value, Piecewise):
        return value.pieces
    if isinstance(value, Function):
        value = Expression(value.node)
    return ((value, ALL_REALS),) if isinstance(value, Expression) else None


def _equal_at(gold: tuple[Piece, ...], answer: tuple[Piece, ...], letter: str, point: Node) -> Result:
    values = [_value(side, letter, point) for side in (gold, answer)]
    if values[0] is None or values[1] is None:
        return values[0] is values[1]
    return equal_expressions(values[0], values[1])


def _value(side: tuple[Piece, ...], letter: str, point: Node) -> Node | None:
    """The expression of the piece that holds at a point; None if none does."""
    for value, condition in side:
        if holds(condition, point):
            return replace_symbols(value.node, {letter: point})
    return None


def holds(condition: Reals | Family, point: Node) -> bool:
    if isinstance(condition, Reals):
        return any(
            (order(part.low, point) < 0 or (part.has_low and order(part.low, point) == 0))
            and (order(point, part.high) < 0 or (part.has_high and order(point, part.high) == 0))
            for part in condition.intervals
        )
    if len(condition.parameters) != 1 or any(len(item) != 1 for item in condition.items):
        raise UnreadableError("a condition with several parameters")
    (parameter,) = condition.parameters
    values = range(-_SPAN, _SPAN) if parameter.least is None else range(parameter.least, parameter.least + _SPAN)
    return any(
        rational(replace_symbols(node, {parameter.name: number(value)})) == rational(point)
        for (node,) in condition.items
        for value in values
    )


def _points(pieces: list[Piece]) -> list[Node]:
    """The finite ends of all intervals, points between them, and points beyond the first and the last."""
    ends: list[Node] = []
    for _, condition in pieces:
        if isinstance(condition, Reals):
            for part in condition.intervals:
                ends += [end for end in (part.low, part.high) if not is_infinite(end)]
    ends.sort(key=cmp_to_key(order))
    places = [approximation(end) for end in ends]
    real = [Fraction(place) for place in places if not isinstance(place, complex)]
    if len(real) < len(places):
        raise UnreadableError("an end that is not real")
    limits = [min(real, default=Fraction(0)) - 10, *real, max(real, default=Fraction(0)) + 10]
    between = []
    for low, high in pairwise(limits):
        if high - low > Fraction(1, 10**6):
            steps = [low + (high - low) * Fraction(k, 7 * _NUM_POINTS) for k in range(2, 7 * _NUM_POINTS, 7)]
            between += [number(step.limit_denominator(10**8)) for step in steps]
    return [*ends, *between]
