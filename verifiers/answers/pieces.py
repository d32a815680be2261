"""Functions by cases: lines of an expression and the condition under which it holds."""

from __future__ import annotations

from collections.abc import Callable

from verifiers.answers.expressions import expression
from verifiers.answers.reals import complement, union
from verifiers.answers.slices import Tokens, at_signs, cut
from verifiers.answers.token import Token, UnreadableError
from verifiers.answers.values import Expression, Family, Piecewise, Reals, Value

_BEFORE = ("if", "when", "where", "for")


def piecewise(lines: list[list[Token]], statement: Callable[[Tokens], Value]) -> Piecewise:
    """The pieces of lines `expression & condition`; the last may be "otherwise"."""
    pieces: list[tuple[Expression, Reals | Family]] = []
    for line in lines:
        parts = [_bare(part) for part in cut(line, at_signs("&"))[0]]
        if len(parts) != 2 or not all(parts):
            raise UnreadableError("a line that is no case")
        rest = parts[1]
        while rest and rest[0].is_word(*_BEFORE):
            rest = rest[1:]
        is_last = len(rest) == 1 and rest[0].is_word("otherwise", "else")
        condition = _otherwise([each for _, each in pieces]) if is_last else statement(rest)
        if not isinstance(condition, Reals | Family):
            raise UnreadableError("a condition of another kind")
        pieces.append((Expression(expression(parts[0])), condition))
    return Piecewise(tuple(pieces))


def _bare(tokens: list[Token]) -> list[Token]:
    while tokens and tokens[-1].is_sign(",", ".", ";"):
        tokens = tokens[:-1]
    return tokens


def _otherwise(conditions: list[Reals | Family]) -> Reals:
    """The numbers that no other condition holds for."""
    result = Reals(())
    for each in conditions:
        if not isinstance(each, Reals):
            raise UnreadableError("otherwise of another kind")
        result = union(result, each)
    return complement(result)
