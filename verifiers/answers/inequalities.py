"""Conditions on one letter as sets of reals: bounds, chains, and absolute values of linear terms.

What is still to be solved, 2x + 1 ≥ 5 or x^2 < 9, is no set.
"""

from __future__ import annotations

from fractions import Fraction

from verifiers.answers.rationals import NoValueError, TooLargeError, rational
from verifiers.answers.reals import complement, intersection, interval, order, point, union
from verifiers.answers.token import UnreadableError
from verifiers.answers.tree import (
    INFINITY,
    MINUS_INFINITY,
    Node,
    divide,
    has,
    is_infinite,
    multiply,
    names,
    negate,
    number,
    replace_symbols,
    subtract,
    symbol,
)
from verifiers.answers.values import ALL_REALS, EMPTY, Reals, Relation

MIRROR = {"<": ">", ">": "<", "≤": "≥", "≥": "≤", "=": "=", "≠": "≠"}


def condition(sides: tuple[Node, ...], signs: tuple[str, ...]) -> Reals | None:
    """The set of `a < x ≤ b`, `|x - 1| < 3` or `x ≠ 2`; None where it is to be solved, or no number fulfils it."""
    letters = frozenset().union(*map(names, sides))
    if len(letters) != 1 or (len(sides) > 2 and {"<", "≤"} & {*signs} and {">", "≥"} & {*signs}):
        return None
    (name,) = letters
    result = ALL_REALS
    for left, sign, right in zip(sides, signs, sides[1:], strict=False):
        part = _pair(left, sign, right, name)
        if part is None:
            return None
        result = intersection(result, part)
    return Reals(result.intervals, name) if result.intervals else None


def bounds_of(relation: Relation) -> Reals | None:
    """The bounds of one expression of several letters, `1/3 ≤ x/y ≤ 3`; None for another relation."""
    with_letters = [side for side in relation.sides if names(side)]
    if len(with_letters) != 1 or len(names(with_letters[0])) < 2 or not {*relation.signs} <= {"<", ">", "≤", "≥"}:
        return None
    whole = symbol("an expression of several letters")
    return condition(tuple(whole if side is with_letters[0] else side for side in relation.sides), relation.signs)


def _pair(left: Node, sign: str, right: Node, name: str) -> Reals | None:
    if not names(left):
        left, sign, right = right, MIRROR[sign], left
    if not names(left):
        return None
    if left.op == "absolute" and not names(right) and not is_infinite(right):
        return _absolute(left.args[0], sign, right, name)
    if is_infinite(left) or is_infinite(right):
        if sign not in "<>" or left.op != "symbol":
            return None
        return ALL_REALS if (right == INFINITY) == (sign == "<") else EMPTY
    return None if has(left, "add") or names(right) else _linear(subtract(left, right), sign, name)


def _absolute(inner: Node, sign: str, bound: Node, name: str) -> Reals | None:
    if order(bound, number(0)) < 0:
        return None
    if sign in "<≤":
        parts = [
            _linear(subtract(inner, bound), sign, name),
            _linear(subtract(inner, negate(bound)), MIRROR[sign], name),
        ]
        return None if parts[0] is None or parts[1] is None else intersection(parts[0], parts[1])
    if sign in ">≥":
        inside = _absolute(inner, "≤" if sign == ">" else "<", bound, name)
        return None if inside is None else complement(inside)
    ends = [_linear(subtract(inner, each), "=", name) for each in (bound, negate(bound))]
    if ends[0] is None or ends[1] is None:
        return None
    both = union(ends[0], ends[1])
    return both if sign == "=" else complement(both)


def _linear(node: Node, sign: str, name: str) -> Reals | None:
    """The set where a linear expression stands in this relation to zero."""
    coefficients = linear(node, name)
    if coefficients is None:
        return None
    constant, slope = coefficients
    value = rational(constant)
    root = divide(negate(constant), number(slope)) if value is None else number(-value / slope)
    if sign in "=≠":
        at = point(root)
        return at if sign == "=" else complement(at)
    above = (sign in ">≥") == (slope > 0)
    is_closed = sign in "≤≥"
    if above:
        return interval(root, INFINITY, has_low=is_closed, has_high=False)
    return interval(MINUS_INFINITY, root, has_low=False, has_high=is_closed)


def linear(node: Node, name: str) -> tuple[Node, Fraction] | None:
    """(c, a) where an expression is c + a * name with a rational a that is not 0; None for anything else."""
    slope = _slope(node, name)
    if not slope or names(node) != {name}:
        return None
    return replace_symbols(node, {name: number(0)}), slope


def _slope(node: Node, name: str) -> Fraction | None:
    """The coefficient of a letter in an expression that is linear in it by its form; None for another."""
    if node.op == "symbol":
        return Fraction(node.name == name)
    if name not in names(node):
        return Fraction(0)
    if node.op == "neg":
        slope = _slope(node.args[0], name)
        return None if slope is None else -slope
    if node.op == "add":
        slopes = [_slope(each, name) for each in node.args]
        return None if None in slopes else sum((each for each in slopes if each), Fraction(0))
    if node.op in ("mul", "div"):
        with_name = [each for each in node.args if name in names(each)]
        if len(with_name) != 1 or (node.op == "div" and with_name[0] is not node.args[0]):
            return None
        slope = _slope(with_name[0], name)
        rest = [each for each in node.args if each is not with_name[0]]
        factor = _factor(node, rest)
        return None if slope is None or factor is None else slope * factor
    return None


def _factor(node: Node, rest: list[Node]) -> Fraction | None:
    if any(has(each, "infinity") for each in rest):
        raise UnreadableError("infinity in a product")
    try:
        value = rational(multiply(*rest))
        return None if value is None else 1 / value if node.op == "div" else value
    except (NoValueError, TooLargeError, ZeroDivisionError):
        return None
