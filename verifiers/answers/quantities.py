"""Answers that are no mathematical expressions: numerals with a base, times of day."""

from __future__ import annotations

from itertools import pairwise

from verifiers.answers.number_words import in_words
from verifiers.answers.syntax import Token, Tokens, UnreadableError, at_signs, bracket_content, cut
from verifiers.answers.values import Literal

_PREFIXES = {"0X": 16, "0B": 2, "0O": 8}
_BASES = {"hex": 16, "hexadecimal": 16, "binary": 2, "octal": 8, "decimal": 10}


def quantity(tokens: Tokens) -> Literal:
    """The quantity that tokens are. UnreadableError for anything else."""
    for function in (_numeral, _clock):
        value = function(tokens)
        if value is not None:
            return value
    raise UnreadableError("no quantity")


def _numeral(tokens: Tokens) -> Literal | None:
    r"""`1011_2`, `(2A7)_{16}`, "1011 in base 2", `1234_{\text{five}}`."""
    rest = [token for token in tokens if not token.is_sign("(", ")")]
    if len(rest) > 1 and rest[-1].is_word(*_BASES):  # 1011 in binary, 3A (hex)
        tokens = [*rest[: -1 - rest[-2].is_word("in")], Token("word", "base", gap=True), rest[-1]]
    if len(tokens) > 2 and tokens[0].is_word(*_BASES) and tokens[1].is_word("number", "numeral"):
        tokens = [*tokens[2:], Token("word", "base", gap=True), tokens[0]]
    pieces, marks = cut(tokens, lambda token: token.is_sign("_") or token.is_word("base"))
    if len(marks) == 2 and not pieces[1]:
        pieces = [pieces[0], pieces[2]]
    inside = None if marks else _last_bracket(tokens)
    if inside is not None and any(token.is_word("base") for token in inside):
        pieces = [list(tokens[: -len(inside) - 2]), inside]
    if len(pieces) != 2:
        return None
    left, right = pieces
    while left and (left[-1].is_word("in") or left[-1].is_sign("∈")):
        left = left[:-1]
    minus = "-" if left and left[0].is_sign("-") else ""
    digits, base = _digits(left[len(minus) :]), _base(right)
    return Literal("base", (minus + digits, base)) if digits and base else None


def literal(tokens: Tokens) -> Literal | None:
    """A numeral that its digits tell: 0x1A3, FF_{16}; None for anything else."""
    if not tokens or tokens[0].kind not in ("number", "letter") or any(token.gap for token in tokens[1:]):
        return None
    texts = [token.text for token in tokens]
    text = "".join(texts).upper()
    if texts[-4:-2] == ["_", "{"] and texts[-2] in ("12", "16") and len(texts) > 5:  # FF_{16}
        digits, base = "".join(texts[:-4]).upper(), int(texts[-2])
        is_numeral = set(digits) <= set(_DIGITS[:base]) and not digits.isdigit()
        return Literal("base", (digits, base)) if is_numeral else None
    base, digits = _PREFIXES.get(text[:2], 0), text[2:]
    return Literal("base", (digits, base)) if base and digits and set(digits) <= set(_DIGITS[:base]) else None


def _last_bracket(tokens: Tokens) -> list[Token] | None:
    place = next((place for place, token in enumerate(tokens) if place and token.is_sign("(")), 0)
    inside = bracket_content(tokens[place:]) if place else None
    return None if inside is None else inside[1]


def _digits(tokens: list[Token]) -> str:
    inside = bracket_content(tokens)
    tokens = tokens if inside is None else inside[1]
    is_plain = all(token.kind in ("number", "letter", "word") and token.text.isalnum() for token in tokens)
    text = "".join(token.text for token in tokens).upper()
    is_joined = not any(right.gap and not (_is_digit(left) or _is_digit(right)) for left, right in pairwise(tokens))
    return text if is_plain and tokens and is_joined and text.isascii() else ""


def _is_digit(token: Token) -> bool:
    r"""Whether a token is a letter that is a digit, as in `1\text{A}3`."""
    return token.kind in ("letter", "word") and set(token.text.upper()) <= set("ABCDEF")


def _base(tokens: list[Token]) -> int:
    rest = [token for token in tokens if not (token.is_sign("{", "}", "(", ")") or token.is_word("base"))]
    if len(rest) != 1:
        return 0
    word = rest[0].text
    value = _BASES.get(word) or (int(word) if word.isdigit() and len(word) < 3 else in_words(word))
    return value if value and 2 <= value <= 36 else 0


def _clock(tokens: Tokens) -> Literal | None:
    """4:30 p.m., 16:05, 9 AM."""
    pieces, colons = cut(tokens, at_signs(":"))
    behind = "".join(token.text for token in pieces[-1][1:] if token.text != ".").casefold()
    numbers = [piece[0].text for piece in pieces if piece]
    hour, point, minute = numbers[0].partition(".") if numbers else ("", "", "")
    if point and not colons and len(minute) == 2:  # 8.15 a.m.
        pieces, colons, numbers = [tokens[:1], *pieces], [Token("sign", ":")], [hour, minute]
    if (
        behind not in ("am", "pm")
        or len(colons) > 2
        or len(numbers) != len(pieces)
        or len(pieces[0]) > 1 + (not colons) * 9
    ):
        return None
    if not all(text.isdigit() and len(text) <= 2 for text in numbers):
        return None
    hour_, minute_, second = (*map(int, numbers), 0, 0)[:3]
    return Literal("time", (hour_, minute_, behind, *([second] if second else [])))


_DIGITS = "0123456789ABCDEF"
