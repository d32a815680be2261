r"""Sets of reals as sorted disjoint intervals: conditions on a letter, union, intersection, complement, equality."""

from __future__ import annotations

from functools import cmp_to_key

from verifiers.answers.evaluation import sign
from verifiers.answers.rationals import NoValueError, TooLargeError
from verifiers.answers.syntax import UnreadableError
from verifiers.answers.values import (
    ALL_REALS,
    EMPTY,
    INFINITY,
    MINUS_INFINITY,
    MIRROR,
    ZERO,
    Collection,
    Interval,
    Node,
    Reals,
    Value,
    is_infinite,
    names,
    negate,
    nodes_of,
    subtract,
)

MAX_INTERVALS = 40
_KINDS = {"ℝ": "ℝ", "R": "ℝ"} | {
    mark: kind
    for kind, marks in (("+", "ℝ+ ℝ>0 ℝ0<"), ("-", "ℝ- ℝ<0"), ("≥0", "ℝ≥0 ℝ+0 ℝ0+"), ("≠0", "ℝ≠0 ℝ*"))
    for mark in marks.split()
}


def order(left: Node, right: Node) -> int:
    """-1, 0 or 1 as left is smaller than, equal to or larger than right. UnreadableError if that is not decided."""
    if is_infinite(left) or is_infinite(right):
        places = [0 if not is_infinite(each) else -1 if each.op == "neg" else 1 for each in (left, right)]
        return (places[0] > places[1]) - (places[0] < places[1])
    try:
        result = sign(subtract(left, right))
    except (NoValueError, TooLargeError):
        result = None
    if result is None:
        raise UnreadableError("an end that is not a known real number")
    return result


def interval(low: Node, high: Node, *, has_low: bool, has_high: bool) -> Reals:
    """The set of one interval. UnreadableError for ends that are not numbers, or an infinite end that is included."""
    if names(low) or names(high):
        raise UnreadableError("an end with letters")
    if (has_low and is_infinite(low)) or (has_high and is_infinite(high)):
        raise UnreadableError("infinity is not a real number")
    comparison = order(low, high)
    if comparison > 0 or (comparison == 0 and not (has_low and has_high)):
        return EMPTY
    return Reals((Interval(low, high, has_low, has_high),))


def point(node: Node) -> Reals:
    if order(node, node) != 0 or is_infinite(node):
        raise UnreadableError("not a real number")
    return Reals((Interval(node, node, True, True),))


def points(nodes: list[Node]) -> Reals:
    result = EMPTY
    for node in nodes:
        result = union(result, point(node))
    return result


def union(left: Reals, right: Reals) -> Reals:
    """The union, with overlapping and touching intervals joined."""
    parts = sorted([*left.intervals, *right.intervals], key=cmp_to_key(_by_low))
    if len(parts) > MAX_INTERVALS:
        raise UnreadableError("too many intervals")
    result: list[Interval] = []
    for part in parts:
        last = result[-1] if result else None
        gap = order(part.low, last.high) if last else 1
        if last is None or gap > 0 or (gap == 0 and not (part.has_low or last.has_high)):
            result.append(part)
            continue
        comparison = order(part.high, last.high)
        high, has_high = (part.high, part.has_high) if comparison > 0 else (last.high, last.has_high)
        has_high = has_high or (comparison == 0 and part.has_high)
        result[-1] = Interval(
            last.low, high, last.has_low or (part.has_low and order(part.low, last.low) == 0), has_high
        )
    return Reals(tuple(result), left.name or right.name, left.is_real or right.is_real)


def _by_low(left: Interval, right: Interval) -> int:
    return order(left.low, right.low) or right.has_low - left.has_low


def complement(reals: Reals) -> Reals:
    """All other real numbers."""
    result, low, has_low = [], MINUS_INFINITY, False
    for part in reals.intervals:
        if part.low != MINUS_INFINITY:
            result.append(Interval(low, part.low, has_low, not part.has_low))
        low, has_low = part.high, not part.has_high
    if low != INFINITY:
        result.append(Interval(low, INFINITY, has_low, False))
    rest = tuple(each for each in result if order(each.low, each.high) < 0 or (each.has_low and each.has_high))
    return Reals(rest, reals.name, reals.is_real)


def intersection(left: Reals, right: Reals) -> Reals:
    result = complement(union(complement(left), complement(right)))
    return Reals(result.intervals, left.name or right.name, left.is_real or right.is_real)


def equal_reals(gold: Reals, answer: Reals) -> bool:
    """Whether two sets are the same, ends included."""
    if len(gold.intervals) != len(answer.intervals):
        return False
    return all(
        (one.has_low, one.has_high) == (other.has_low, other.has_high)
        and order(one.low, other.low) == 0
        and order(one.high, other.high) == 0
        for one, other in zip(gold.intervals, answer.intervals, strict=True)
    )


def condition(sides: tuple[Node, ...], signs: tuple[str, ...]) -> Reals | None:
    """The set of `a < x ≤ b`, `|x| < 3` or `x ≠ 2`, for one letter.

    None where it is to be solved (`2x + 1 ≥ 5`), or no number fulfils it.
    """
    letters = frozenset().union(*map(names, sides))
    is_turned = len(sides) > 2 and {"<", "≤"} & {*signs} and {">", "≥"} & {*signs}
    if len(letters) != 1 or is_turned or not {*signs} <= MIRROR.keys():
        return None
    result = ALL_REALS
    for left, sign_, right in zip(sides, signs, sides[1:], strict=False):
        sign_, side, bound = (sign_, left, right) if names(left) else (MIRROR[sign_], right, left)
        if side.op == "neg":  # -x > -2
            sign_, side, bound = MIRROR[sign_], negate(side), negate(bound)
        is_absolute = side.op == "absolute" and side.args[0].op == "symbol"
        if names(bound) or not (is_absolute or side.op == "symbol"):
            return None
        part = _absolute(sign_, bound) if is_absolute else _bounded(sign_, bound)
        if part is None:
            return None
        result = intersection(result, part)
    return Reals(result.intervals, next(iter(letters))) if result.intervals else None


def _absolute(sign_: str, bound: Node) -> Reals | None:
    """The numbers whose absolute value stands in a relation to a bound; None for a bound that says nothing."""
    if is_infinite(bound) or order(bound, ZERO) < 0:
        return None
    one, other = _bounded(sign_, bound), _bounded(MIRROR[sign_], negate(bound))
    return union(one, other) if sign_ in ">≥=" else intersection(one, other)


def _bounded(sign_: str, bound: Node) -> Reals:
    """The numbers that stand in a relation to a bound."""
    if sign_ in "=≠":
        return point(bound) if sign_ == "=" else complement(point(bound))
    if is_infinite(bound) and sign_ in "<>":
        return ALL_REALS if (bound == INFINITY) == (sign_ == "<") else EMPTY
    low, high = (bound, INFINITY) if sign_ in ">≥" else (MINUS_INFINITY, bound)
    return interval(low, high, has_low=sign_ == "≥", has_high=sign_ == "≤")


def half_line(marks: str, name: str = "") -> Reals:
    r"""The reals of `\mathbb{R}^+`, `\mathbb{R}_{\ge 0}` and the like, with the letter of a condition."""
    if marks not in _KINDS:
        raise UnreadableError("a part of the reals")
    kind, zero = _KINDS[marks], ZERO
    reals = {
        "ℝ": ALL_REALS,
        "+": Reals((Interval(zero, INFINITY, False, False),)),
        "-": Reals((Interval(MINUS_INFINITY, zero, False, False),)),
        "≥0": Reals((Interval(zero, INFINITY, True, False),)),
        "≠0": complement(Reals((Interval(zero, zero, True, True),))),
    }[kind]
    return Reals(reals.intervals, name, is_real=bool(name))


def as_reals(value: Value) -> Reals | None:
    """A value as a set of reals: intervals, finite sets of numbers, the empty set; None for anything else."""
    if isinstance(value, Reals):
        return value
    if not isinstance(value, Collection):
        return None
    if value.kind == "list" and all(isinstance(each, Collection) and each.kind == "tuple" for each in value.items):
        return _union_of(value.items)
    nodes = nodes_of(value.items)
    if nodes is None or any(map(names, nodes)):
        return None
    if value.kind == "tuple" and len(nodes) == 2 and value.brackets[0] in "([":
        low, high = nodes
        reals = interval(low, high, has_low=value.brackets[0] == "[", has_high=value.brackets[1] == "]")
        return reals if reals.intervals else None  # (8, -2) is a pair, and no empty interval
    return points(nodes) if value.kind == "set" else None


def _union_of(items: tuple[Value, ...]) -> Reals | None:
    """The union of intervals in a list; None where one is none, or empty."""
    result = EMPTY
    for item in items:
        part = as_reals(item)
        if part is None or part == EMPTY:
            return None
        result = union(result, part)
    return result
