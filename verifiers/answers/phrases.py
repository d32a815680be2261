"""Phrases of ordinary words that stand for signs, words that lead to an answer, and numbers in words.

A word that no table knows stays a word, which the grammar does not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from verifiers.answers.number_words import number_at, number_tokens, times_scales
from verifiers.answers.symbols import NUMBER_SETS
from verifiers.answers.syntax import Token, UnreadableError, brackets

# PHRASE => SIGNS. [one|other|] is one of several words, or none. A sign of two words has a line between them; w: is
# a word, f: a function. Words in capitals are the groups below.
_GROUPS = {
    "THAT": "|is|are|that are|which are|that is|which is",
    "ANY": "|all|any|every|the|all the",
    "REALS": "[real|reals|real number|real numbers]",
}
_TABLE = """
[ANY] REALS => ℝ
[ANY] REALS but => ℝ except
[ANY] positive REALS => ℝ+
[ANY] negative REALS => ℝ-
[ANY] [nonnegative|non negative] REALS => ℝ≥0
[ANY] [nonzero|non zero] REALS => ℝ≠0
[except|except for|excluding|other than] => except
[|an|any|some|every|each|all] [integer|integers] => ℤ
[|a|any|every|all] positive [integer|integers] => ℤ1
[|a|any|all] [nonnegative|non negative] [integer|integers] => ℤ0
[ANY] odd[| integer| integers| number| numbers] => odd
[ANY] even[| integer| integers| number| numbers] => even
[ANY] positive odd [integers|numbers] => ℤ1 odd
[ANY] positive even [integers|numbers] => ℤ1 even
[ANY][| integers] [multiples of|divisible by] => multiples
[ANY] positive [multiples of|integers divisible by] => ℤ1 multiples
[ANY] powers of => powers
[including|and including] => including
[THAT] not [divisible by|a multiple of] => ≢ 0 w:mod
[|is|are] congruent to => ≡
[THAT] greater than or equal to => ≥
[THAT] less than or equal to => ≤
[THAT|is strictly|strictly] [greater|larger] than => >
[THAT|is strictly|strictly] [less|smaller] than => <
[THAT] at least => ≥
[THAT] at most => ≤
[is equal to|equals|is given by] => =
[|is|are|does|can be] not equal to => ≠
[is not|does not equal|cannot equal|cannot be] => ≠
is positive => > 0
is negative => < 0
[union|union with] => ∪
intersection => ∩
[in|is in|is in the interval|is any|can be any|belongs to|is a|is an] => ∈
to => :
such that => such
plus => +
[minus|negative] => -
times => *
plus or minus => ±
squared => ^ 2
cubed => ^ 3
[out of|over|divided by] => /
[|the] square root of => f:sqrt
[|the] [cube|cubic] root of => f:cbrt
choose => choose
[percent|per cent|pct|percentage] => %
[positive infinity] => ∞
modulo => w:mod
[approximately|is approximately|approximately equal to|about|around|approx|is about|is around|is roughly|roughly] => ≈
[no solution|no solutions|no real solution|no real solutions|the empty set|empty set|none|there is no solution] => ∅
[there are no solutions|does not exist|no real roots|no integer solutions|no such numbers|no such integers|dne] => ∅
[for all|for any|for every|for some|for each|where|with|for] => w:where
"""


def _phrases() -> dict[tuple[str, ...], tuple[tuple[str, str], ...]]:
    result: dict[tuple[str, ...], tuple[tuple[str, str], ...]] = {}
    for line in _TABLE.strip().splitlines():
        pattern, _, signs = line.partition("=>")
        for name, group in _GROUPS.items():
            pattern = pattern.replace(name, group)
        parts = [part.split("|") for part in pattern.replace("]", "[").split("[")]
        value = tuple(map(_token, signs.split()))
        result |= {tuple("".join(words).split()): value for words in product(*parts)}
    return result


def _token(text: str) -> tuple[str, str]:
    kind = {"w:": "word", "f:": "function"}.get(text[:2])
    return (kind, text[2:]) if kind else ("number" if text.isdigit() else "sign", text.replace("_", " "))


_PHRASES = _phrases()
_LONGEST = max(map(len, _PHRASES))

_BEHIND_LETTER_WORDS = (
    "is are belongs and or where can in be any with such satisfying for greater less between lies must except if a"
)
_BEHIND_LETTERS = frozenset(_BEHIND_LETTER_WORDS.split())  # behind the letter a, which is no article there
_STOPS = (".", ",", ";", ":", "\\\\", "□")


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
        value, length = times_scales(result, tokens, place)
        if length:
            result[-1:] = number_tokens(value, result[-1].gap)
            place += length
            continue
        size, signs = _longest_phrase(tokens, place)
        value, length = number_at(tokens, place)
        if length > size:
            if result and result[-1].kind == "number":
                raise UnreadableError("a number in words behind a number")
            result += number_tokens(value, tokens[place].gap)
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
        if (signs := _PHRASES.get(tuple(words[:size]))) is not None:
            return size, signs
    return 0, ()
