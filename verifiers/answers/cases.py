"""Functions by cases, lines of an expression and its condition, and their equality: `|x|` is x for x ≥ 0, else -x."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cmp_to_key
from itertools import pairwise

from verifiers.answers.comparison import equal_expressions
from verifiers.answers.evaluation import approximation
from verifiers.answers.expressions import expression
from verifiers.answers.integers import LETTERS, integers_of
from verifiers.answers.rationals import rational
from verifiers.answers.reals import as_reals, complement, order, points, union
from verifiers.answers.syntax import Token, Tokens, UnreadableError, at_signs, cut, separator, without_ends
from verifiers.answers.tree import Node, is_infinite, names, number, replace_symbols
from verifiers.answers.values import (
    ALL_REALS,
    EMPTY,
    Cases,
    Expression,
    Family,
    Integers,
    Named,
    Reals,
    Result,
    Value,
    all_equal,
    bare,
)

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
