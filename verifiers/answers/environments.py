"""Environments: matrices, functions by cases, and lines of equations (`aligned`, `gathered`, `cases`)."""

from __future__ import annotations

from collections.abc import Callable

from verifiers.answers.expressions import expression
from verifiers.answers.pieces import piecewise
from verifiers.answers.slices import Tokens, at_signs, cut
from verifiers.answers.token import Token, UnreadableError
from verifiers.answers.values import Expression, Matrix, Value

MATRICES = frozenset(("pmatrix", "bmatrix", "Bmatrix", "matrix", "smallmatrix", "array"))


def environment(inside: tuple[str, list[Token], str], statement: Callable[[Tokens], Value]) -> Value:
    """Matrices; lines of `aligned`, `gathered` and `cases`."""
    opening, tokens, closing = inside
    name = opening.removeprefix("begin ")
    if closing != f"end {name}":
        raise UnreadableError("environments do not match")
    lines = [line for line in cut(tokens, at_signs("\\\\"))[0] if line]
    is_system = all(any(token.is_sign("=") for token in line) for line in lines)
    is_cases = name in ("array", "matrix") and any(each.is_sign("<", ">", "≤", "≥", "≠") for each in tokens)
    if is_cases:
        return piecewise(lines, statement)
    if name in MATRICES and not (name == "array" and is_system):
        rows = [cut(line, at_signs("&"))[0] for line in lines]
        if len({len(row) for row in rows}) != 1 or any(not cell for row in rows for cell in row):
            raise UnreadableError("rows that differ")
        return Matrix(tuple(tuple(Expression(expression(cell)) for cell in row) for row in rows))
    if name == "aligned" and not is_system and all(any(token.is_sign(",") for token in line) for line in lines):
        return piecewise(lines, statement)
    if name in ("aligned", "align", "gathered", "gather", "split") or (
        name in ("cases", "dcases", "array") and is_system
    ):
        joined: list[Token] = []
        for line in lines:
            line = line[:-1] if line[-1].is_sign(",", ".", ";") else line
            line = [token for token in line if not token.is_sign("&")]
            is_continued = not line or line[0].is_sign("=", "<", ">", "≤", "≥", "+", "-")
            joined += line if is_continued else [*([Token("sign", ",")] if joined else []), *line]
        return statement(joined)
    if name in ("cases", "dcases", "rcases"):
        return piecewise(lines, statement)
    raise UnreadableError(f"environment {name}")
