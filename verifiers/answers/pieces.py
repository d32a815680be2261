"""Functions by cases: lines of an expression and the condition under which it holds."""

from __future__ import annotations

from collections.abc import Callable

from verifiers.answers.expressions import expression
from verifiers.answers.reals import ALL_REALS, complement, points, union
from verifiers.answers.slices import Tokens, at_signs, cut
from verifiers.answers.token import Token, UnreadableError
from verifiers.answers.values import Assignments, Expression, Family, Piecewise, Reals, Value

_BEFORE = ("if", "when", "where", "for")


def piecewise(lines: list[list[Token]], statement: Callable[[Tokens], Value]) -> Piecewise:
    """The pieces of lines `expression & condition`; the last may be "otherwise"."""
    pieces: list[tuple[Expression, Reals | Family]] = []
    for line in lines:
        parts = [_bare(part) for part in _parts(line)]
        if len(parts) != 2 or not all(parts):
            raise UnreadableError("a line that is no case")
        rest = parts[1]
        while rest and rest[0].is_word(*_BEFORE):
            rest = rest[1:]
        is_last = len(rest) == 1 and rest[0].is_word("otherwise", "else")
        condition = _otherwise([each for _, each in pieces]) if is_last else statement(rest)
        if isinstance(condition, Assignments) and len(condition.names) == 1:  # n = 1
            condition = _point(condition)
        if not isinstance(condition, Reals | Family):
            raise UnreadableError("a condition of another kind")
        value = cut(parts[0], at_signs("="))[0][-1]  # x of f(x) = x
        pieces.append((Expression(expression(value)), condition))
    return Piecewise(tuple(pieces))


def _parts(line: list[Token]) -> list[list[Token]]:
    """The expression and the condition of a line, between "&" or, without it, behind a comma or an "if"."""
    parts = [part for part in cut(line, at_signs("&"))[0] if part]
    if len(parts) > 1:
        return parts
    pieces, cuts = cut(line, lambda token: token.is_sign(",") or token.is_word(*_BEFORE))
    return [piece for piece in pieces if piece] if cuts else parts


def _point(condition: Assignments) -> Reals:
    number = condition.items[0]
    if not isinstance(number, Expression):
        raise UnreadableError("a condition of another kind")
    return Reals(points([number.node]).intervals, condition.names[0])


def one_line_cases(tokens: Tokens, statement: Callable[[Tokens], Value]) -> Piecewise | None:
    """n/2 if n is even, (n+1)/2 if n is odd; None where there are fewer than two conditions."""
    is_before = [token.is_word("if", "when", "where") for token in tokens]
    has_rest = any(token.is_word("otherwise", "else") for token in tokens)
    if (
        any(token.text.startswith("begin ") for token in tokens)
        or sum(is_before) + has_rest < 2
        or not any(is_before)
        or is_before[0]
    ):
        return None
    lines: list[list[Token]] = [[]]
    for token in tokens:
        is_end = token.is_sign(",", ";") or token.is_word("and")
        if is_end and any(each.is_sign("&") for each in lines[-1]):
            lines.append([])
        elif not is_end:
            is_mark = token.is_word(*_BEFORE) or (token.is_word("otherwise", "else") and lines[-1])
            lines[-1] += [Token("sign", "&")] if is_mark else []
            lines[-1] += [] if token.is_word(*_BEFORE) else [token]
    try:
        return piecewise([line for line in lines if line], statement)
    except UnreadableError:
        return None


def _bare(tokens: list[Token]) -> list[Token]:
    while tokens and tokens[-1].is_sign(",", ".", ";"):
        tokens = tokens[:-1]
    return tokens


def _otherwise(conditions: list[Reals | Family]) -> Reals:
    """The numbers that no other condition holds for; behind classes of integers all, as the first that holds counts."""
    result = Reals(())
    for each in conditions:
        if not isinstance(each, Reals):
            return ALL_REALS
        result = union(result, each)
    return complement(result)
