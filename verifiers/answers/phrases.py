"""Phrases of ordinary words that stand for signs, words that lead to an answer, and numbers in words.

A word that no table knows stays a word, which the grammar does not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product

from verifiers.answers.atoms import decimal
from verifiers.answers.syntax import NUMBER_SETS, Token, UnreadableError, brackets
from verifiers.answers.words import PARTS, in_words, number_at, number_tokens, times_scales

# PHRASE => SIGNS. [one|other|] is one of several words, or none. w: is a word, f: a function. Words in capitals
# are the groups below.
_GROUPS = {
    "ALL": "|all|any|every|the|a|is a|are|is|must be a|must be|some",
    "THAT": "|is|are|that are|which are|that is|which is",
    "NUMBERS": "|s| number| numbers",
    "ANY": "|all|the|any|every|the set of|the set of all",
    "REALS": "real|reals|real number|real numbers|real values|real constant|real constants|constant|constants",
}
_TABLE = """
[|all|any|every|the|all the|the set of|the set of all|set of|set of all] real numbers => ℝ
[|all|the|any|every] [real number|reals] => ℝ
all real values[| of] => ℝ
[all|any] real => ℝ
[|all] [reals|real numbers] but => ℝ except
[ANY] positive [REALS] => ℝ+
[ANY] negative [REALS] => ℝ-
[ANY] [nonnegative|non negative] [REALS] => ℝ≥0
[ANY] [nonzero|non zero] [REALS] => ℝ≠0
[except|except for|excluding|other than|apart from|with the exception of] => except
[but not|without|different from|not including] => except
[|an|any|some|every|each|all|the|the set of|the set of all|arbitrary|an arbitrary] [integer|integers|whole number] => ℤ
[|a|any|every|each|all] [positive integer|positive integers|natural number|natural numbers] => ℤ1
[|a|any|all] [nonnegative|non negative] [integer|integers] => ℤ0
[|is|are] greater than or equal to => ≥
[|is|are] less than or equal to => ≤
[THAT|is strictly|strictly|that are strictly] [greater|larger] than => >
[THAT|is strictly|strictly|that are strictly] [less|smaller] than => <
[THAT] at least => ≥
[THAT] at most => ≤
is equal to => =
[|is|are|does|can be] not equal to => ≠
[equals|is given by] => =
[union|union with|in union with] => ∪
[in|is in|is in the interval|inside|is inside|lying in|inside the interval|in the interval] => ∈
[can be|is any|can be any|belongs to|is a|is an] => ∈
[outside|outside of|outside the interval|is outside|is outside of|not in|is not in] => ∉
[|all|the] [linear|quadratic|constant|exponential] [functions|polynomials] =>
to => :
[|is|is an|an|all|every|any|the|must be|has to be|be] even[| integer| integers| number| numbers] => even
[|is|is an|an|all|every|any|the|must be|has to be|be] odd[| integer| integers| number| numbers] => odd
[ALL] [positive even|even positive] [integer|integers|number|numbers] => ℤ1 even
[such that|so that|satisfying] => such
[minus|negative] => -
times => *
[out of|out of every|over] => /
[|the] square root of => f:sqrt
[|the] [cube|cubic] root of => f:cbrt
[|is] [not less|no less] than => ≥
[|is] [not more|no more|not greater] than => ≤
[percent|per cent|pct|percentage] => %
choose => choose
modulo => w:mod
[|is|are] not congruent to => ≢
[|is|are] congruent to => ≡
[THAT] not [divisible by|a multiple of|multiples of] => ≢ 0 w:mod
[approximately|is approximately|approximately equal to|about|around|approx|is about|is around|is roughly|roughly] => ≈
[no solution|no solutions|no real solution|no real solutions|the empty set|empty set|none|there is no solution] => ∅
[there are no solutions|does not exist|no real roots|no integer solutions|no such numbers|no such integers|dne] => ∅
[null set|the null set|no answer|no positive integer solutions|empty] => ∅
[for all|for any|for every|for some|for each|where|with|for|as] => w:where
[ALL] [multiple of|multiples of|integer multiple of|integer multiples of|divisible by] => multiples
[ALL] positive[| integer] [multiple|multiples] of => ℤ1 multiples
[ALL] [power|powers] of => powers
[ALL] prime[NUMBERS] => primes
[|there are|there exist|an] [infinitely many|infinite number of|infinite] => ∞
and[| its| all| their| all its] permutations[| thereof] => permutations
[|all|any] [permutation|permutations] of => permutations
[ALL] [perfect square|perfect squares|square number|square numbers] => squares
[ALL] [square|squares] of [integers|an integer|some integer] => squares
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
    return (kind, text[2:]) if kind else ("number" if text.isdigit() else "sign", text)


PHRASES = _phrases()


_LONGEST = max(map(len, PHRASES))
_CURVES = ("line", "curve", "circle", "parabola", "ellipse", "hyperbola", "plane")  # in front of their equation
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
        if (sign := _sign_at(tokens, place, result)) is not None:
            result.append(sign)
            place += 1
            continue
        value, length = times_scales(result, tokens, place)
        value, length = (value, length) if length else _and_a_part(result, tokens, place)
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


def _sign_at(tokens: Sequence[Token], place: int, before: Sequence[Token]) -> Token | None:
    """The token here as it stands, or the sign that one word is behind others; None for words of phrases."""
    token, after = tokens[place], tokens[place + 1 : place + 2]
    if token.kind != "word":
        return _number_set(tokens, place)
    if token.text in ("const", "constant") and before and before[-1].is_sign("+"):
        return Token("letter", "C", gap=True)
    if token.text == "is" and _is_value_behind(before, after):
        return Token("sign", "=")  # x is 3 and y is -2
    return None


def _and_a_part(before: Sequence[Token], tokens: Sequence[Token], place: int) -> tuple[Fraction, int]:
    """An only number with the part in words behind it, "2 and a half", and how many words it has."""
    if not tokens[place].is_word("and") or len(before) != 1 or before[0].kind != "number":
        return Fraction(0), 0
    part, length = number_at(tokens, place + 1)
    return (decimal(before[0].text) + part, length + 1) if 0 < part < 1 and length > 1 else (Fraction(0), 0)


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
    tokens = _without_groups(tokens)
    has_rows = any(token.text.startswith("begin ") for token in tokens)
    for place, token in enumerate(tokens):
        before, after = tokens[place - 1 : place], tokens[place + 1 : place + 2]
        is_between = bool(before and after) and before[0].kind == after[0].kind == "word"
        if token.is_sign("&") and not has_rows:
            token = Token("word", "and", gap=True)
        if token.is_sign("-") and is_between and not token.gap and not after[0].gap:
            continue
        if (
            token.kind == "letter"
            and token.text == "a"
            and after
            and after[0].kind == "word"
            and after[0].text not in _BEHIND_LETTERS
            and (token.gap or (not place and _is_behind_article(after[0].text)))
            and after[0].gap
        ):
            token = Token("word", "a", gap=True)
        result.append(token)
    return result


def _is_behind_article(word: str) -> bool:
    """Whether an a in front of a word is an article at the begin of a text as well: "a third", "a probability of"."""
    return word in PARTS or word == "dozen" or in_words(word) is not None


def _without_groups(tokens: Sequence[Token]) -> Sequence[Token]:
    r"""The tokens without braces around one word, `{\text{ or }}`, that are no argument."""
    if not any(token.text in ("and", "or", "if") for token in tokens):
        return tokens
    result: list[Token] = []
    for token in tokens:
        result.append(token)
        inside = result[-3:]
        is_group = len(inside) == 3 and inside[0].is_sign("{") and token.is_sign("}")
        if is_group and inside[1].is_word("and", "or", "if"):
            result[-3:] = [inside[1]]
    return result


def drop_leads(tokens: Sequence[Token]) -> list[Token]:
    """The tokens without a sign, "all" or "the set of" in front of the answer, and without the stop at the end."""
    tokens = _without_curve(tokens)
    words = [token.text for token in tokens[:4]]
    size = next((size for size in (2, 3) if words[:size][-2:] == ["set", "of"]), 0)
    if size and words[:size][:-2] in ([], ["the"]) and _longest_phrase(tokens, 0)[0] <= size:  # the set of all primes
        tokens = tokens[size:]
    tokens = tokens[1:] if len(tokens) > 1 and tokens[0].is_word("is") else tokens
    if len(tokens) > 3 and tokens[0].is_word("option", "choice") and tokens[1].kind in ("letter", "sign"):
        tokens = tokens[1:]  # option B: 2
    while tokens and tokens[0].is_sign("=", "→", "□", ":"):
        is_arrow = tokens[0].is_sign("=") and len(tokens) > 1 and tokens[1].is_sign(">")  # => 12
        tokens = tokens[2 if is_arrow else 1 :]
    start = 1 if tokens and tokens[0].is_word("all") and _longest_phrase(tokens, 0)[0] < 2 else 0
    if start + 1 < len(tokens) and tokens[start].is_word("any", "every", "each") and tokens[start + 1].kind == "letter":
        start += 1  # any n ≥ 4
    rest = list(tokens[start:])
    if start and all(token.is_sign(*_STOPS) for token in rest):
        rest = list(tokens)
    while rest and rest[-1].is_sign(*_STOPS):
        rest.pop()
    return rest


def _without_curve(tokens: Sequence[Token]) -> Sequence[Token]:
    """The equation of "the line y = x" and "circle: x^2 + y^2 = 1" alone; other tokens as they are."""
    start = 1 if tokens and tokens[0].is_word("the") else 0
    if len(tokens) < start + 4 or not tokens[start].is_word(*_CURVES) or not any(t.is_sign("=") for t in tokens):
        return tokens
    start += 2 if tokens[start + 1].is_sign(":") else 1
    return tokens[start:] if all(token.kind != "word" for token in tokens[start:]) else tokens


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
