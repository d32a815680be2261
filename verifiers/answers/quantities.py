"""Answers that are no mathematical expressions: numerals with a base, times of day, dates."""

from __future__ import annotations

from verifiers.answers.number_words import in_words
from verifiers.answers.slices import Tokens, at_signs, bracket_content, cut
from verifiers.answers.token import Token, UnreadableError
from verifiers.answers.values import Clock, Date, Numeral

_MONTH_WORDS = "january february march april may june july august september october november december"
_MONTHS = _MONTH_WORDS.split()
_MONTH = {name[:size]: place for place, name in enumerate(_MONTHS, 1) for size in (3, len(name))} | {"sept": 9}
_ORDINALS = frozenset(("st", "nd", "rd", "th"))
_BASES = {"hex": 16, "hexadecimal": 16, "binary": 2, "octal": 8, "decimal": 10}


def quantity(tokens: Tokens) -> Numeral | Clock | Date:
    """The quantity that tokens are. UnreadableError for anything else."""
    for function in (_numeral, _clock, _date):
        value = function(tokens)
        if value is not None:
            return value
    raise UnreadableError("no quantity")


def _numeral(tokens: Tokens) -> Numeral | None:
    r"""`1011_2`, `(2A7)_{16}`, "1011 in base 2", `1234_{\text{five}}`."""
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
    digits, base = _digits(left), _base(right)
    return Numeral(digits, base) if digits and base else None


def _last_bracket(tokens: Tokens) -> list[Token] | None:
    place = next((place for place, token in enumerate(tokens) if place and token.is_sign("(")), 0)
    inside = bracket_content(tokens[place:]) if place else None
    return None if inside is None else inside[1]


def _digits(tokens: list[Token]) -> str:
    inside = bracket_content(tokens)
    tokens = tokens if inside is None else inside[1]
    is_plain = all(token.kind in ("number", "letter", "word") and token.text.isalnum() for token in tokens)
    text = "".join(token.text for token in tokens).upper()
    return text if is_plain and tokens and not any(token.gap for token in tokens[1:]) and text.isascii() else ""


def _base(tokens: list[Token]) -> int:
    rest = [token for token in tokens if not (token.is_sign("{", "}", "(", ")") or token.is_word("base"))]
    if len(rest) != 1:
        return 0
    word = rest[0].text
    value = _BASES.get(word) or (int(word) if word.isdigit() and len(word) < 3 else in_words(word))
    return value if value and 2 <= value <= 36 else 0


def _clock(tokens: Tokens) -> Clock | None:
    """4:30 p.m., 16:05, 9 AM."""
    pieces, colons = cut(tokens, at_signs(":"))
    behind = "".join(token.text for token in pieces[-1][1:] if token.text != ".").casefold()
    numbers = [piece[0].text for piece in pieces if piece]
    if (
        behind not in ("am", "pm")
        or len(colons) > 1
        or len(numbers) != len(pieces)
        or len(pieces[0]) > 1 + (not colons) * 9
    ):
        return None
    if not all(text.isdigit() and len(text) <= 2 for text in numbers):
        return None
    return Clock(int(numbers[0]), int(numbers[1]) if colons else 0, behind)


def _date(tokens: Tokens) -> Date | None:
    """January 12, 12th of January, March 3, 1998."""
    month, numbers = 0, []
    letters = ""
    for token in tokens:
        if token.kind == "number" and token.text.isdigit():
            numbers.append(token.text)
        elif token.kind == "word" and token.text in _MONTH and not month:
            month = _MONTH[token.text]
        elif token.kind == "letter":
            letters += token.text
        elif token.text not in ("of", "the", ",", "."):
            return None
    if letters in _MONTH_LETTERS and not month:
        month, letters = _MONTH_LETTERS[letters], ""
    days = [int(text) for text in numbers if len(text) < 3]
    years = [int(text) for text in numbers if len(text) == 4]
    is_date = month and len(days) == 1 and len(days) + len(years) == len(numbers) < 3 and 1 <= days[0] <= 31
    return Date(month, days[0], years[0] if years else 0) if is_date and letters in ("", *_ORDINALS) else None


_MONTH_LETTERS = {name[:3].capitalize(): place for place, name in enumerate(_MONTHS, 1)}
