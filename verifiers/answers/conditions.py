"""Conditions on one letter as sets of reals: linear inequalities, chains, and absolute values of linear terms."""

from __future__ import annotations

from fractions import Fraction

from verifiers.answers.rationals import NoValueError, TooLargeError, rational
from verifiers.answers.reals import ALL_REALS, complement, intersection, interval, order, point, union
from verifiers.answers.token import UnreadableError
from verifiers.answers.tree import (
    INFINITY,
    MINUS_INFINITY,
    Node,
    add,
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
from verifiers.answers.values import Reals, Relation

MIRROR = {"<": ">", ">": "<", "≤": "≥", "≥": "≤", "=": "=", "≠": "≠"}


def condition(sides: tuple[Node, ...], signs: tuple[str, ...]) -> Reals | None:
    """The set of `a < x ≤ b`, `2x + 1 ≥ 5`, `|x - 1| < 3` or `x ≠ 2`; None where another letter or degree is in it."""
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
    return Reals(result.intervals, name)


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
        return ALL_REALS if (right == INFINITY) == (sign == "<") else Reals(())
    difference = subtract(left, right)
    result = _linear(difference, sign, name)
    return _quadratic(difference, sign, name) if result is None else result


def _quadratic(node: Node, sign: str, name: str) -> Reals | None:
    """The set where a quadratic with rational coefficients stands in this relation to zero."""
    coefficients = polynomial(node, name)
    if coefficients is None or len(coefficients) != 3:
        return None
    c, b, a = coefficients
    discriminant = b * b - 4 * a * c
    if discriminant < 0:
        roots: list[Node] = []
    else:
        half = Node("root", (number(discriminant / (4 * a * a)), number(2)))
        roots = [subtract(number(-b / (2 * a)), half), add(number(-b / (2 * a)), half)]
    at = Reals(())
    for each in roots:
        at = union(at, point(each))
    if sign in "=≠":
        return at if sign == "=" else complement(at)
    inside = interval(*roots, has_low=False, has_high=False) if discriminant > 0 else Reals(())
    if (sign in "<≤") == (a > 0):
        return union(inside, at) if sign in "≤≥" else inside
    outside = complement(union(inside, at))
    return union(outside, at) if sign in "≤≥" else outside


def polynomial(node: Node, name: str) -> list[Fraction] | None:
    """Coefficients from the constant up, of degree two at most, by the form of the expression; None for another."""
    if node.op == "symbol":
        return [Fraction(0), Fraction(1)] if node.name == name else None
    if not names(node):
        value = rational(node)
        return None if value is None else [value]
    parts = [polynomial(each, name) for each in node.args]
    known = [each for each in parts if each is not None]
    if len(known) < len(parts) or node.op not in ("add", "neg", "mul", "div", "power"):
        return None
    if node.op == "neg":
        return [-each for each in known[0]]
    if node.op == "add":
        size = max(map(len, known))
        return _trim([sum((each[k] for each in known if k < len(each)), Fraction(0)) for k in range(size)])
    if node.op == "div":
        return [each / known[1][0] for each in known[0]] if len(known[1]) == 1 and known[1][0] else None
    if node.op == "power":
        known = [known[0]] * 2 if known[1] == [Fraction(2)] else []
    result = [Fraction(1)]
    for each in known:
        if len(result) + len(each) > 4:
            return None
        product = [Fraction(0)] * (len(result) + len(each) - 1)
        for i, left in enumerate(result):
            for j, right in enumerate(each):
                product[i + j] += left * right
        result = product
    return result if known else None


def _trim(coefficients: list[Fraction]) -> list[Fraction]:
    while len(coefficients) > 1 and coefficients[-1] == 0:
        coefficients.pop()
    return coefficients


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
