"""Functions by cases, lines of an expression and its condition, and their equality: `|x|` is x for x ≥ 0, else -x."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cmp_to_key
from itertools import pairwise

from verifiers.answers.comparison import equal_expressions
from verifiers.answers.conditions import INTEGER_LETTERS
from verifiers.answers.evaluation import approximation
from verifiers.answers.expressions import expression
from verifiers.answers.rationals import rational
from verifiers.answers.reals import as_reals, complement, order, points, union
from verifiers.answers.results import Result, all_equal
from verifiers.answers.syntax import Tokens, at_signs, cut, separator
from verifiers.answers.token import Token, UnreadableError
from verifiers.answers.tree import Node, is_infinite, names, number, replace_symbols
from verifiers.answers.values import ALL_REALS, EMPTY, Expression, Family, Named, Piecewise, Reals, Value, bare

_IF = separator("", "if when where for")
_OTHERWISE = separator("", "otherwise else")
_ENDS = separator(", ;", "and")
_NUM_POINTS = 4  # in every interval
_INTEGERS = range(1, 25)
_SPAN = 60  # values of the parameter of a class of integers, each side of zero
Piece = tuple[Expression, Reals | Family]


def cases(lines: list[list[Token]], statement: Callable[[Tokens], Value]) -> Piecewise:
    """The pieces of lines `expression & condition`; the last may be "otherwise"."""
    pieces: list[Piece] = []
    for line in lines:
        parts = _parts(line)
        if len(parts) != 2:
            raise UnreadableError("a line that is no case")
        rest = parts[1]
        while rest and _IF(rest[0]):
            rest = rest[1:]
        is_last = len(rest) == 1 and _OTHERWISE(rest[0])
        condition = _otherwise([each for _, each in pieces]) if is_last else _condition(statement(rest))
        value = cut(parts[0], at_signs("="))[0][-1]  # x of f(x) = x
        pieces.append((Expression(expression(value)), condition))
    return Piecewise(tuple(pieces))


def _parts(line: list[Token]) -> list[list[Token]]:
    """The expression and the condition of a line, around "&" or, without it, a comma or an "if"."""
    parts, marks = cut(line, at_signs("&"))
    if not marks:
        parts, _ = cut(line, lambda token: token.is_sign(",") or _IF(token))
    for part in parts:
        while part and part[-1].is_sign(",", ".", ";"):
            part.pop()
    return [part for part in parts if part]


def _condition(value: Value) -> Reals | Family:
    if isinstance(value, Named) and isinstance(bare(value), Expression):  # n = 1
        item = bare(value)
        assert isinstance(item, Expression)
        return Reals(points([item.node]).intervals, value.names[0])
    if isinstance(value, Family):
        return value
    reals = as_reals(value)
    if reals is None or reals == EMPTY:
        raise UnreadableError("a condition of another kind")
    return reals


def _otherwise(conditions: list[Reals | Family]) -> Reals:
    """The numbers that no other condition holds for; behind classes of integers all, as the first that holds counts."""
    result = EMPTY
    for each in conditions:
        if not isinstance(each, Reals):
            return ALL_REALS
        result = union(result, each)
    return complement(result)


def one_line_cases(tokens: Tokens, statement: Callable[[Tokens], Value]) -> Piecewise | None:
    """n/2 if n is even, (n+1)/2 if n is odd; None where there are fewer than two conditions."""
    num_conditions = sum(_IF(token) and not token.is_word("for") for token in tokens)
    num_rest = sum(map(_OTHERWISE, tokens))
    if not num_conditions or num_conditions + num_rest < 2 or _IF(tokens[0]):
        return None
    if any(token.text.startswith("begin ") for token in tokens):
        return None
    lines: list[list[Token]] = [[]]
    for token in tokens:
        has_condition = any(each.is_sign("&") for each in lines[-1])
        if _ENDS(token):
            lines += [[]] if has_condition else []
        elif _IF(token) or (_OTHERWISE(token) and lines[-1]):
            lines[-1] += [Token("sign", "&"), *([] if _IF(token) else [token])]
        else:
            lines[-1].append(token)
    try:
        return cases([line for line in lines if line], statement)
    except UnreadableError:
        return None


# ------------------------------------------------------------------------------------------------ equality


def equal_piecewise(gold: Value, answer: Value) -> Result:
    """Whether two functions have the same value at the ends of all intervals and at points between them."""
    sides = [_pieces(gold), _pieces(answer)]
    if sides[0] is None or sides[1] is None:
        return None
    both = [*sides[0], *sides[1]]
    letters = {reals.name for _, reals in both if isinstance(reals, Reals) and reals.name}
    letters = letters or {name for value, _ in both for name in names(value.node)}
    if len(letters) > 1:
        return None
    letter = next(iter(letters), "")  # none where numbers hold for even and odd ones
    is_whole = letter in INTEGER_LETTERS or any(isinstance(condition, Family) for _, condition in both)
    at = [number(value) for value in _INTEGERS] if is_whole else _points(both)
    return all_equal(_equal_at(sides[0], sides[1], letter, point) for point in at)


def _pieces(value: Value) -> tuple[Piece, ...] | None:
    value = bare(value)
    if isinstance(value, Piecewise):
        return value.pieces
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
    """Whether a number is in a set of reals or a class of integers."""
    if isinstance(condition, Reals):
        return any(
            (order(part.low, point) < 0 or (part.has_low and order(part.low, point) == 0))
            and (order(point, part.high) < 0 or (part.has_high and order(point, part.high) == 0))
            for part in condition.intervals
        )
    if len(condition.parameters) != 1 or condition.is_real or any(len(item) != 1 for item in condition.items):
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
    ends = [
        end
        for _, condition in pieces
        if isinstance(condition, Reals)
        for part in condition.intervals
        for end in (part.low, part.high)
        if not is_infinite(end)
    ]
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
