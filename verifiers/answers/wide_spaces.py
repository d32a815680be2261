r"""Wide spaces and line breaks that separate values: `x = 4 \quad y = 5`, `2\sqrt3 \quad -1`."""

from __future__ import annotations

from collections.abc import Set

from verifiers.answers.slices import Tokens, nesting
from verifiers.answers.token import Token

WIDE_SPACES = ("quad", "qquad")
_SEPARATORS = (",", ";", ":", "\\\\", "&", "=", "<", ">", "≤", "≥", "+", "-", "*", "/")  # no value ends with them


def with_commas(tokens: Tokens, places: Set[int], quads: Set[int]) -> list[Token]:
    """The tokens with a comma at each wide space that stands between values.

    `places` are those of the tokens behind spaces and line breaks, which separate named values; those in `quads`,
    behind a wide space, are separated from any value if they begin a number. A space within brackets or behind a
    separator is no comma.
    """
    result: list[Token] = []
    depth, has_value = 0, False  # whether an equation has begun since the last separator
    for place, token in enumerate(tokens):
        before = tokens[place - 1 : place]
        is_behind_value = bool(before) and before[0].kind != "word" and not before[0].is_sign(*_SEPARATORS)
        is_value = has_value and place in places and _is_named(tokens[place:])
        if depth == 0 and is_behind_value and (is_value or (place in quads and _is_number(tokens[place:]))):
            result.append(Token("sign", ","))
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


def _is_number(tokens: Tokens) -> bool:
    """Whether tokens begin with a number or a function, with or without a sign of its own."""
    rest = tokens[1:] if tokens[0].is_sign("-", "+", "±") else tokens
    return bool(rest) and rest[0].kind in ("number", "function", "vulgar")
