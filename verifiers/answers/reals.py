r"""Sets of reals as sorted disjoint intervals: conditions on a letter, union, intersection, complement, equality.

Functions by cases are expressions on such sets: `|x|` is x for x ≥ 0, else -x.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cmp_to_key
from itertools import pairwise

from verifiers.answers.comparison import equal_expressions
from verifiers.answers.evaluation import approximation, sign
from verifiers.answers.expressions import expression
from verifiers.answers.integers import LETTERS, integers_of
from verifiers.answers.rationals import NoValueError, TooLargeError, rational
from verifiers.answers.syntax import Token, Tokens, UnreadableError, at_signs, cut, separator, without_ends
from verifiers.answers.values import (
    ALL_REALS,
    EMPTY,
    INFINITY,
    MINUS_INFINITY,
    MIRROR,
    ZERO,
    Cases,
    Collection,
    Expression,
    Family,
    Integers,
    Interval,
    Named,
    Node,
    Reals,
    Result,
    Value,
    all_equal,
    bare,
    divide,
    has,
    is_infinite,
    names,
    negate,
    nodes_of,
    number,
    replace_symbols,
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
    """The set of `a < x ≤ b`, `1 ≤ 2x < 4`, `|x - 1| < 3` or `x ≠ 2`, for one letter.

    None where it is to be solved (`2x + 1 ≥ 5`, `x^2 < 9`), or no number fulfils it.
    """
    letters = frozenset().union(*map(names, sides))
    is_turned = len(sides) > 2 and {"<", "≤"} & {*signs} and {">", "≥"} & {*signs}
    if len(letters) != 1 or is_turned or not {*signs} <= MIRROR.keys():
        return None
    result = ALL_REALS
    for left, sign_, right in zip(sides, signs, sides[1:], strict=False):
        sign_, side, bound = (sign_, left, right) if names(left) else (MIRROR[sign_], right, left)
        is_absolute = side.op == "absolute"
        if names(bound) or not names(side) or (has(side, "add") and not is_absolute):
            return None
        part = _absolute(side.args[0], sign_, bound) if is_absolute else _linear(side, sign_, bound)
        if part is None:
            return None
        result = intersection(result, part)
    return Reals(result.intervals, next(iter(letters))) if result.intervals else None


def _absolute(inner: Node, sign_: str, bound: Node) -> Reals | None:
    """The numbers whose absolute value stands in a relation to a bound."""
    if is_infinite(bound) or order(bound, ZERO) < 0:
        return None
    one, other = _linear(inner, sign_, bound), _linear(inner, MIRROR[sign_], negate(bound))
    if one is None or other is None:
        return None
    return union(one, other) if sign_ in ">≥=" else intersection(one, other)


def _linear(side: Node, sign_: str, bound: Node) -> Reals | None:
    """The numbers for which a linear expression of one letter stands in a relation to a bound; None for another one."""
    if side.op == "symbol":
        return _bounded(sign_, bound)
    at = [replace_symbols(side, dict.fromkeys(names(side), number(value))) for value in (0, 1, 5)]
    value = approximation(subtract(at[1], at[0]))
    slope = Fraction(0) if isinstance(value, complex) else Fraction(value).limit_denominator(1_000)
    steps = ((at[1], slope), (at[2], 5 * slope))
    if not slope or not all(equal_expressions(subtract(end, at[0]), number(step)) is True for end, step in steps):
        return None
    if is_infinite(bound):
        return None
    root = divide(subtract(bound, at[0]), number(slope))
    known = rational(root)
    return _bounded(sign_ if slope > 0 else MIRROR[sign_], root if known is None else number(known))


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


_IF = separator("", "if when where for")
_OTHERWISE = separator("", "otherwise else")
_BETWEEN = separator(", ;", "and")
_NUM_POINTS = 4  # in every interval
_INTEGERS = range(1, 25)


def cases(lines: list[list[Token]], statement: Callable[[Tokens], Value]) -> Cases:
    """The pieces of lines `expression & condition`; the last may be "otherwise"."""
    pieces: list[tuple[Node, Reals | Integers]] = []
    letters: set[str] = set()
    for line in lines:
        parts, marks = cut(line, at_signs("&"))
        if not marks:
            parts, _ = cut(line, lambda token: token.is_sign(",") or _IF(token))
        parts = [part for part in map(without_ends, parts) if part]
        if len(parts) != 2:
            raise UnreadableError("a line that is no case")
        rest = parts[1]
        while rest and _IF(rest[0]):
            rest = rest[1:]
        node = expression(cut(parts[0], at_signs("="))[0][-1])  # x of f(x) = x
        letters |= names(node)
        if len(rest) == 1 and _OTHERWISE(rest[0]):
            pieces.append((node, _otherwise([condition for _, condition in pieces])))
            continue
        condition, letter = _condition(statement(rest))
        letters |= {letter} - {""}
        pieces.append((node, condition))
    if len(letters) > 1 or len(pieces) < 2:
        raise UnreadableError("cases of several letters")
    return Cases(tuple(pieces), next(iter(letters), ""))


def _condition(value: Value) -> tuple[Reals | Integers, str]:
    """The numbers of a condition, and its letter."""
    item = bare(value)
    if isinstance(value, Named) and isinstance(item, Expression):  # n = 1
        return Reals(points([item.node]).intervals), value.names[0]
    if isinstance(value, Integers | Family):
        whole = integers_of(value)
        if whole is not None:
            return whole, ""
    reals = as_reals(value)
    if reals is None or reals == EMPTY:
        raise UnreadableError("a condition of another kind")
    return reals, reals.name


def _otherwise(conditions: list[Reals | Integers]) -> Reals:
    """The numbers that no other condition holds for; behind classes of integers all, as the first that holds counts."""
    result = EMPTY
    for each in conditions:
        if isinstance(each, Integers):
            return ALL_REALS
        result = union(result, each)
    return complement(result)


def cases_in_line(tokens: Tokens, statement: Callable[[Tokens], Value]) -> Cases | None:
    """n/2 if n is even, (n+1)/2 if n is odd; None where there are fewer than two conditions."""
    num_rest = sum(map(_OTHERWISE, tokens))
    if sum(map(_IF, tokens)) + num_rest < 2 or _IF(tokens[0]) or any(t.text.startswith("begin ") for t in tokens):
        return None
    lines: list[list[Token]] = [[]]
    for token in tokens:
        if _BETWEEN(token):
            lines += [[]] if any(each.is_sign("&") for each in lines[-1]) else []
        elif _IF(token) or (_OTHERWISE(token) and lines[-1]):
            lines[-1] += [Token("sign", "&"), *([] if _IF(token) else [token])]
        else:
            lines[-1].append(token)
    try:
        return cases([line for line in lines if line], statement)
    except UnreadableError:
        return None


# ------------------------------------------------------------------------------------------------ equality


def equal_cases(gold: Cases, answer: Cases) -> Result:
    """Whether two functions have the same value at the ends of all intervals and at points between them."""
    letters = {gold.letter, answer.letter} - {""}
    if len(letters) > 1:
        return None
    conditions = [condition for side in (gold, answer) for _, condition in side.pieces]
    is_whole = letters <= LETTERS or any(isinstance(each, Integers) for each in conditions)
    at = [number(value) for value in _INTEGERS] if is_whole else _points(conditions)
    return all_equal(_equal_at(gold, answer, point) for point in at)


def one_case(value: Value, target: Cases) -> Cases | None:
    """An expression of the letter of another function, which holds for all numbers."""
    item = bare(value)
    letters = names(item.node) if isinstance(item, Expression) else frozenset()
    letter = target.letter or next(iter(letters), "")
    return Cases(((item.node, ALL_REALS),), letter) if isinstance(item, Expression) and letters <= {letter} else None


def _equal_at(gold: Cases, answer: Cases, point: Node) -> Result:
    values = [_value(side, point) for side in (gold, answer)]
    if values[0] is None or values[1] is None:
        return values[0] is values[1]
    return equal_expressions(values[0], values[1])


def _value(side: Cases, point: Node) -> Node | None:
    """The expression of the piece that holds at a point; None if none does."""
    for node, condition in side.pieces:
        if _holds(condition, point):
            return replace_symbols(node, {side.letter: point})
    return None


def _holds(condition: Reals | Integers, point: Node) -> bool:
    if isinstance(condition, Integers):
        value = rational(point)
        return value is not None and value.denominator == 1 and int(value) in condition.members(abs(int(value)))
    return any(
        (order(part.low, point) < 0 or (part.has_low and order(part.low, point) == 0))
        and (order(point, part.high) < 0 or (part.has_high and order(point, part.high) == 0))
        for part in condition.intervals
    )


def _points(conditions: list[Reals | Integers]) -> list[Node]:
    """The finite ends of all intervals, points between them, and points beyond the first and the last."""
    intervals = [part for each in conditions if isinstance(each, Reals) for part in each.intervals]
    ends = [end for part in intervals for end in (part.low, part.high) if not is_infinite(end)]
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
