r"""Borders that separate values: wide spaces, line breaks, new formulas: `x = 4 \quad y = 5`, `$2$ $-1$`."""

from __future__ import annotations

from collections.abc import Set

from verifiers.answers.syntax import Tokens, nesting
from verifiers.answers.token import Token

WIDE_SPACES = ("quad", "qquad")
_SEPARATORS = (
    ",",
    ";",
    ":",
    "\\\\",
    "&",
    "=",
    "<",
    ">",
    "≤",
    "≥",
    "+",
    "-",
    "*",
    "/",
    "^",
    "_",
)  # no value ends with them
_OPEN = ("word", "function", "operator")  # nor with such tokens


def with_commas(tokens: Tokens, borders: Set[int], quads: Set[int]) -> list[Token]:
    """The tokens with a comma at each border that stands between values.

    `borders` are the places of the tokens behind line breaks and new formulas, `quads` of those behind wide spaces,
    which separate named values, and any value from a number. Within brackets or behind a separator is no border.
    """
    result: list[Token] = []
    depth, has_value = 0, False  # whether an equation has begun since the last separator
    for place, token in enumerate(tokens):
        before = tokens[place - 1 : place]
        is_behind_value = bool(before) and before[0].kind not in _OPEN and not before[0].is_sign(*_SEPARATORS)
        if depth == 0 and is_behind_value and place in borders | quads:
            is_named = has_value and _is_named(tokens[place:])
            is_value = is_named or _begins_value(tokens[place:], is_number=place not in borders)
            result += [Token("sign", ",")] if is_value else []
        depth += nesting(token)
        if depth == 0:
            has_value = token.is_sign("=") or (has_value and not token.is_sign(",", ";", "\\\\"))
        result.append(token)
    return result


def _is_named(tokens: Tokens) -> bool:
    """Whether tokens begin with a letter, with or without an index, and an equals sign or a sign of membership."""
    if tokens[0].kind != "letter":
        return False
    place = 1
    if len(tokens) > 2 and tokens[1].is_sign("_"):
        place = 3
        while place < len(tokens) and tokens[2].is_sign("{") and not tokens[place - 1].is_sign("}"):
            place += 1
    return place < len(tokens) and tokens[place].is_sign("=", "∈")


def _begins_value(tokens: Tokens, *, is_number: bool) -> bool:
    """Whether tokens begin with a number or a function, or any other value, with or without a sign of its own."""
    rest = tokens[1:] if tokens[0].is_sign("-", "+", "±") else tokens
    is_bracket = bool(rest) and nesting(rest[0]) == 1 and not rest[0].is_sign("{")  # which begins an argument
    kinds = ("number", "function", "vulgar") if is_number else ("number", "function", "vulgar", "letter")
    return bool(rest) and (rest[0].kind in kinds or (is_bracket and not is_number))
