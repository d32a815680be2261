"""Phrases of ordinary words that stand for signs, words that lead to an answer, and numbers in words.

A word that no table knows stays a word, which the grammar does not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import takewhile

from verifiers.answers.atoms import decimal
from verifiers.answers.number_words import PARTS, SCALES_AND_PARTS, in_words
from verifiers.answers.phrase_table import PHRASES
from verifiers.answers.symbols import NUMBER_SETS
from verifiers.answers.syntax import brackets
from verifiers.answers.token import Token, UnreadableError

_LONGEST = max(map(len, PHRASES))

_PLURALS = {"halves": 2, **{f"{word}s": value for word, value in PARTS.items()}}
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")
_NO_NOUNS = ("of", "or", "and", "by", "in", "to", "is", "are")  # behind a number in words
_BEHIND_LETTER_WORDS = (
    "is are belongs and or where can in be any with such satisfying for greater less between lies must except if a"
)
_BEHIND_LETTERS = frozenset(_BEHIND_LETTER_WORDS.split())  # behind the letter a, which is no article there
_STOPS = (".", ",", ";", ":", "\\\\", "□")
_BEFORE_SCALES = ("-", "+", "=", "(", ",", "$", ":")  # signs in front of a number that a scale may multiply


def rewrite(tokens: Sequence[Token]) -> list[Token]:
    """The tokens with phrases replaced by their signs, number words by numbers, and lead words dropped."""
    tokens = drop_leads(join_words(brackets(tokens)))
    result: list[Token] = []
    place = 0
    while place < len(tokens):
        if tokens[place].kind != "word":
            result.append(_number_set(tokens, place))
            place += 1
            continue
        if tokens[place].is_word("is") and _is_value_behind(result, tokens[place + 1 : place + 2]):
            result.append(Token("sign", "="))  # x is 3 and y is -2
            place += 1
            continue
        value, length = _times_scales(result, tokens, place)
        if length:
            result[-1:] = _number_tokens(value, result[-1].gap)
            place += length
            continue
        value, length = _and_a_part(result, tokens, place)
        if length:
            result[-1:] = _number_tokens(value, result[-1].gap)
            place += length
            continue
        size, signs = _longest_phrase(tokens, place)
        value, length = _number_at(tokens, place)
        if length > size:
            if result and result[-1].kind == "number":
                raise UnreadableError("a number in words behind a number")
            result += _number_tokens(value, tokens[place].gap)
            place += length
        elif size:
            result += [Token(kind, text, gap=True) for kind, text in signs]
            place += size
        else:
            result.append(tokens[place])
            place += 1
    return result


def _is_value_behind(before: Sequence[Token], after: Sequence[Token]) -> bool:
    """Whether "is" stands between a letter and its value: "p is 3 and q is 5"."""
    is_value = bool(after) and (after[0].kind in ("number", "function", "vulgar") or after[0].is_sign("-"))
    return is_value and bool(before) and before[-1].kind == "letter"


def _number_set(tokens: Sequence[Token], place: int) -> Token:
    """The letter Z, N or R behind "∈" as the set of that name; any other token as it is."""
    token = tokens[place]
    is_member = place > 0 and (tokens[place - 1].is_sign("∈") or tokens[place - 1].is_word("in"))
    is_member = is_member or any(after.is_sign("∖") for after in tokens[place + 1 : place + 2])
    is_set = is_member and token.kind == "letter" and token.text in NUMBER_SETS
    return Token("sign", NUMBER_SETS[token.text], token.gap) if is_set else token


def join_words(tokens: Sequence[Token]) -> list[Token]:
    """non-negative as two words, twenty-one as two; a lone letter a that stands between words as a word."""
    result: list[Token] = []
    for place, token in enumerate(tokens):
        before, after = tokens[place - 1 : place], tokens[place + 1 : place + 2]
        is_between = bool(before and after) and before[0].kind == after[0].kind == "word"
        if token.is_sign("-") and is_between and not token.gap and not after[0].gap:
            continue
        if (
            token.kind == "letter"
            and token.text == "a"
            and after
            and after[0].kind == "word"
            and after[0].text not in _BEHIND_LETTERS
            and token.gap
            and after[0].gap
        ):
            token = Token("word", "a", gap=True)
        is_verb = bool(before) and before[0].is_word("is", "has", "have", "with", "get", "got")
        is_verb = is_verb or (not place and tokens[-1].is_word("chance", "probability"))
        if token.kind == "letter" and token.text == "a" and is_verb and after and after[0].kind == "number":
            continue  # there is a 3/8 chance
        result.append(token)
    return result


def drop_leads(tokens: Sequence[Token]) -> list[Token]:
    """The tokens without "is" or a sign in front of the answer, and without the stop at the end."""
    tokens = tokens[1:] if len(tokens) > 1 and tokens[0].is_word("is") else tokens
    while tokens and tokens[0].is_sign("=", "→", "□", ":"):
        tokens = tokens[1:]
    rest = list(tokens)
    while rest and rest[-1].is_sign(*_STOPS):
        rest.pop()
    return rest


def _longest_phrase(tokens: Sequence[Token], place: int) -> tuple[int, tuple[tuple[str, str], ...]]:
    words: list[str] = []
    for token in tokens[place : place + _LONGEST]:
        if token.kind != "word":
            break
        words.append(token.text)
    for size in range(len(words), 0, -1):
        if (signs := PHRASES.get(tuple(words[:size]))) is not None:
            return size, signs
    return 0, ()


def _number_at(tokens: Sequence[Token], place: int) -> tuple[Fraction, int]:
    """The number that the words at this place spell, and how many of them; length 0 for none."""
    words: list[str] = []
    ends = []  # of the words, in tokens
    for number, token in enumerate(tokens[place : place + 16]):
        if token.is_sign(",") and words and words[-1] in ("thousand", "million", "billion"):
            continue  # twelve thousand, three hundred
        if token.kind != "word":
            break
        words.append(token.text)
        ends.append(number + 1)
    value, size = _spelled(words)
    if size and words[size : size + 1] != [] and words[size] in _ORDINALS and value >= 20 and value % 10 == 0:
        raise UnreadableError("an ordinal")  # thirty-first
    return value, ends[size - 1] if size else 0


def _spelled(words: list[str]) -> tuple[Fraction, int]:
    """The number that the first words spell, and how many of them: "two thirds", "two and a half million"."""
    value, size = _part(words)
    if size:
        return value, size
    for size in range(len(words), 0, -1):
        count = in_words(" ".join(words[:size]))
        if count is None:
            continue
        if words[size : size + 1] == ["point"]:
            digits = "".join(str(in_words(word)) for word in takewhile(_is_digit, words[size + 1 :]))
            return count + Fraction(int(digits or 0), 10 ** len(digits)), size + 1 + len(digits)
        part, length = (
            _part(words[size + 1 :], is_behind=True) if words[size : size + 1] == ["and"] else (Fraction(0), 0)
        )
        if not length or part >= 1:
            return Fraction(count), size
        end = size + 1 + length
        scale = SCALES_AND_PARTS.get(words[end], 0) if end < len(words) else 0
        return ((count + part) * scale, end + 1) if scale > 1 else (count + part, end)
    return Fraction(0), 0


def _is_digit(word: str) -> bool:
    return in_words(word) in range(10)


def _part(words: list[str], *, is_behind: bool = False) -> tuple[Fraction, int]:
    """The fraction that the first words spell, and how many of them: "a half", "three quarters", "half" alone."""
    if words == ["half"]:
        return Fraction(1, 2), 1
    if words[:2] in (["half", "a"], ["half", "an"]) and len(words) > 2:  # half a liter, half a million
        scale = SCALES_AND_PARTS.get(words[2], Fraction(0))
        return (scale / 2, 3) if scale > 1 else (Fraction(1, 2), 2)
    if words[:2] == ["a", "dozen"]:
        return Fraction(12), 2
    is_end = is_behind or words[2:3] in ([], ["of"])  # not "a third grader"
    if words[:1] == ["a"] and words[1:2] and words[1] in PARTS and is_end:
        return Fraction(1, PARTS[words[1]]), 2
    for size in range(len(words) - 1, 0, -1):
        count = in_words(" ".join(words[:size]))
        if count is not None and words[size] in (PARTS if count == 1 else _PLURALS):
            return Fraction(count, (PARTS | _PLURALS)[words[size]]), size + 1
    return Fraction(0), 0


def _times_scales(before: Sequence[Token], tokens: Sequence[Token], place: int) -> tuple[Fraction, int]:
    """A number times the scales and parts behind it ("million", "dozen", "thirds"), and how many words they are.

    "1 third" is a part; "2 third" and "1 third grader" are not.
    """
    is_first = len(before) == 1 or (
        len(before) > 1 and (before[-2].kind == "word" or before[-2].text in _BEFORE_SCALES)
    )
    if not is_first or before[-1].kind != "number":
        return Fraction(0), 0
    value, size = decimal(before[-1].text), 0
    for token in tokens[place:]:
        after = tokens[place + size + 1 : place + size + 2]
        is_part = value == 1 and not size and token.text in PARTS and (not after or after[0].is_word("of"))
        if token.kind != "word" or not (is_part or token.text in SCALES_AND_PARTS):
            break
        value *= Fraction(1, PARTS[token.text]) if is_part else SCALES_AND_PARTS[token.text]
        size += 1
    return value, size


def _and_a_part(before: Sequence[Token], tokens: Sequence[Token], place: int) -> tuple[Fraction, int]:
    """An only number with the part in words behind it, "2 and a half", and how many words it has."""
    if not tokens[place].is_word("and") or len(before) != 1 or before[0].kind != "number":
        return Fraction(0), 0
    part, length = _number_at(tokens, place + 1)
    return (decimal(before[0].text) + part, length + 1) if 0 < part < 1 and length > 1 else (Fraction(0), 0)


def number_in_front(tokens: Sequence[Token]) -> list[Token]:
    """The tokens with the number words and scales at their begin as one number: "seven days", "3 dozen eggs"."""
    value, size = _number_at(tokens, 0)
    is_count = 0 < size < len(tokens) and not tokens[0].is_word("a") and tokens[size].text not in _NO_NOUNS
    head = _number_tokens(value, gap=False) if is_count else list(tokens[:1])
    rest = list(tokens[size:] if is_count else tokens[1:])
    value, size = _times_scales(head, rest, 0) if len(head) == 1 else (value, 0)
    return [*(_number_tokens(value, gap=False) if size else head), *rest[size:]]


def _number_tokens(value: Fraction, gap: bool) -> list[Token]:
    if value.denominator == 1:
        return [Token("number", str(value.numerator), gap)]
    texts = (
        ("function", "frac"),
        ("sign", "{"),
        ("number", str(value.numerator)),
        ("sign", "}"),
        ("sign", "{"),
        ("number", str(value.denominator)),
        ("sign", "}"),
    )
    return [Token(kind, text, gap) for kind, text in texts]
