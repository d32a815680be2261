r"""Vectors as tuples of their components: `(1,2,0) + t(1,1,1)`, `2\mathbf{i} - \mathbf{j}`, `(1,2,3)^T`."""

from __future__ import annotations

from verifiers.answers.expressions import expression
from verifiers.answers.rationals import rational
from verifiers.answers.syntax import Token, Tokens, UnreadableError, at_signs, bracket_content, cut, nesting
from verifiers.answers.values import (
    Collection,
    Expression,
    Node,
    add,
    multiply,
    names,
    negate,
    number,
    replace_symbols,
    subtract,
    with_letter_i,
)

_UNITS = ("î", "ĵ", "k̂")
_PLAIN_UNITS = ("i", "j", "k")
_FACTORS = frozenset("tskrmncabuvλμαβ")  # letters that may stand in front of a vector; f(1,2) is a function's value
TRANSPOSED = (["^", "T"], ["^", "{", "T", "}"], ["^", "⊤"], ["^", "{", "⊤", "}"], ["^", "t"])


def vector(tokens: Tokens) -> Collection | None:
    """The tuple of a transposed row, of a linear combination of tuples with a letter in it, or of unit vectors."""
    for mark in TRANSPOSED:
        if [token.text for token in tokens[-len(mark) :]] == mark and tokens[-len(mark) - 1 :][0].is_sign(")", "]"):
            parts = _components(tokens[: -len(mark)])
            return None if parts is None else tuple_of(parts)
    if any(token.kind == "letter" and token.text in _UNITS for token in tokens):
        return tuple_of(components(expression(tokens), _UNITS))
    if len(tokens) > 4 and any(token.is_sign(",") or token.text.startswith("begin ") for token in tokens):
        return _combination(tokens)
    return None


def tuple_of(parts: list[Node]) -> Collection:
    return Collection("tuple", tuple(map(Expression, parts)), "()")


def components(node: Node, units: tuple[str, ...] = _PLAIN_UNITS) -> list[Node]:
    """The coefficients of the unit vectors in a linear combination of them: two without the third, else three."""
    node = with_letter_i(node) if units == _PLAIN_UNITS else node
    zero = dict.fromkeys(units, number(0))
    result = []
    for name in units[: 3 if units[2] in names(node) else 2]:
        at_one = replace_symbols(node, zero | {name: number(1)})
        part = subtract(at_one, replace_symbols(node, zero))
        value = rational(part)
        result.append(part if value is None else number(value))
    return result


def _components(tokens: Tokens) -> list[Node] | None:
    """The components of a tuple in brackets; None for anything else."""
    inside = bracket_content(tokens)
    if inside is not None and inside[0].endswith("matrix") and not any(token.is_sign("&") for token in inside[1]):
        return [expression(row) for row in cut(inside[1], at_signs("\\\\"))[0] if row]
    if inside is None or inside[0] not in ("(", "⟨", "["):
        return None
    parts, commas = cut(inside[1], at_signs(","))
    return [expression(part) for part in parts] if commas and all(parts) else None


def _combination(tokens: Tokens) -> Collection | None:
    """`(1,2) + t(3,4)`; None where no tuple has a factor that is a letter."""
    total: list[Node] = []
    has_letter = False
    for sign, piece in _terms(tokens):
        place = next((place for place, token in enumerate(piece) if _opens_tuple(piece, place)), None)
        parts = None if place is None else _components(piece[place:])
        if parts is None or place is None:
            return None
        factor = _factor(piece[:place])
        if factor is None:
            return None
        has_letter = has_letter or bool(names(factor)) or any(map(names, parts))
        parts = [multiply(factor, part) if place else part for part in parts]
        parts = [negate(part) for part in parts] if sign == "-" else parts
        if total and len(total) != len(parts):
            raise UnreadableError("vectors of different lengths")
        total = [add(one, other) for one, other in zip(total, parts, strict=True)] if total else parts
    return tuple_of(total) if has_letter else None


def _opens_tuple(piece: list[Token], place: int) -> bool:
    return nesting(piece[place]) == 1 and _components(piece[place:]) is not None


def _terms(tokens: Tokens) -> list[tuple[str, list[Token]]]:
    pieces, signs = cut(tokens, at_signs("+", "-"))
    marks = ["+", *(sign.text for sign in signs)]
    return [(mark, piece) for place, (mark, piece) in enumerate(zip(marks, pieces, strict=True)) if piece or place]


def _factor(tokens: list[Token]) -> Node | None:
    """The scalar in front of a tuple; None for the name of a function or of a point."""
    while tokens and tokens[-1].is_sign("*"):
        tokens = tokens[:-1]
    if not tokens:
        return number(1)
    is_function = tokens[-1].kind == "letter" and tokens[-1].text not in _FACTORS
    if is_function or tokens[-1].kind in ("function", "word"):
        return None
    return expression(tokens)
