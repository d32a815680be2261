"""Numbers in words, words beside a number that change its value ("2 thirds", "7 below zero"), and words of doubt.

A unit may be left out or added, so words after a number are usually dropped. The words listed here must not be: scales,
dozens and fractions multiply the number (thousand, dozen, thirds); with any other one the text is not a plain number.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from itertools import takewhile

from verifiers.answers.atoms import decimal
from verifiers.answers.syntax import Token, UnreadableError

_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_UNITS = {word: number for number, word in enumerate(_SMALL.split())} | {
    word: 10 * number for number, word in enumerate(_TENS.split(), 2)
}
_SCALES = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12}
PARTS = {
    "half": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9,
    "tenth": 10, "eleventh": 11, "twelfth": 12,
    **{f"{word}th": number for word, number in _UNITS.items() if 12 < number < 20},
    **{f"{word[:-1]}ieth": number for word, number in _UNITS.items() if number > 19},
    "hundredth": 100, "thousandth": 10**3, "millionth": 10**6, "billionth": 10**9,
}  # fmt: skip
SCALES_AND_PARTS = {
    **{f"{word}{ending}": Fraction(10**power) for word, power in _SCALES.items() for ending in ("", "s")},
    **dict.fromkeys(("dozen", "dozens", "doz"), Fraction(12)),
    **{f"{word}s": Fraction(1, part) for word, part in PARTS.items()},
    "halves": Fraction(1, 2),
}

# Words after a number: anywhere, and as the last one ("7 negative", but "7 negative numbers").
_CHANGING_WORDS = (
    "point factorial factorials halved doubled twice tripled thrice trebled quadrupled quintupled inverted inverse "
    "reciprocal negated reversed backwards raised tens twenties thirties forties fifties sixties seventies eighties "
    "nineties root remainder choose hex hexadecimal binary octal least most approx ish ca circa bn mn mln bln trn "
    "lakh lakhs crore crores quadrillion quintillion sextillion googol myriad mille permille ppm ppb bps onward "
    "onwards upward upwards downward downwards sided fold basis par freezing short shy"
)
_CHANGING = frozenset({*_CHANGING_WORDS.split(), *SCALES_AND_PARTS, *_UNITS})
_LAST_WORDS = (
    "below under beneath above negative odd first ahead behind tops max maximum minimum square cube score "
    "gross power base"
)
_CHANGING_AT_END = frozenset({*_LAST_WORDS.split(), *PARTS})
_CHANGING_AT_START = frozenset(("below", "beneath", "out"))
_LENGTH_WORDS = "unit m cm mm km in inch inche feet foot ft yard mile meter metre centimeter kilometer"
_LENGTHS = frozenset(_LENGTH_WORDS.split())  # behind "squared", which is theirs: 48 squared units
_LEVELS = frozenset(("zero", "sea", "ground", "surface", "water"))
# Words of two letters; others are products of letters (7 xy).
_SHORT_WORDS = (
    "cm mm km nm dm kg mg lb oz ft in yd mi ml cl dl hl hr mw kw gw mb gb tb kb hz kj mj ev db pm am sq kn mv kv pa cc "
    "au qt pt ly ha of on at by us we my an as go up no pi tv cd ox"
)
_SHORT = frozenset(_SHORT_WORDS.split())


def in_words(text: str) -> int | None:
    """The number spelled by a text ("twenty-one", "a hundred and five"), or None ("five five")."""
    words = text.casefold().replace("-", " ").split(" ") if text.isascii() and text[:1].isalpha() else []
    total = current = 0
    room, scale = 1000, 16  # exclusive upper bounds for the next number, and for the power of ten of the next scale
    for place, word in enumerate(words):
        is_last = place == len(words) - 1
        if word in _UNITS:
            value = _UNITS[word]
            if value >= room or (word == "zero" and len(words) > 1):
                return None
            current += value
            room = 10 if value >= 20 else 1
        elif (word == "hundred" or word in _SCALES) and current == 0 and place > (words[0] == "a"):
            return None  # two million thousand
        elif word == "hundred":
            if current >= 100:
                return None
            current, room = max(1, current) * 100, 100
        elif word in _SCALES:
            if _SCALES[word] >= scale:
                return None
            scale = _SCALES[word]
            total, current, room = total + max(1, current) * 10**scale, 0, 1000
        elif is_last or not ((word == "a" and place == 0) or (word == "and" and place > 0)):
            return None
    return total + current if words else None


_NO_S_WORDS = "people children men women feet teeth mice sheep fish deer geese dice total overall altogether"
_NO_S = frozenset(_NO_S_WORDS.split())


def has_noun(words: Sequence[str]) -> bool:
    """Whether there is a plural among words: "red balls", "people at the party"; not "minimum" or "short"."""
    return any((word.endswith("s") and not word.endswith(("ss", "us"))) or word in _NO_S for word in words)


def changes_value(words: Sequence[str]) -> bool:
    """Whether the words after a number are more than a unit or a noun: "squared", "below zero", "point five"."""
    if not words:
        return False
    is_power = words[0] in ("squared", "cubed") and words[1:2] != [] and words[1].removesuffix("s") in _LENGTHS
    return (
        not _CHANGING.isdisjoint(words)
        or words[-1] in _CHANGING_AT_END
        or words[0] in _CHANGING_AT_START
        or (words[0] in ("squared", "cubed") and not is_power)
        or (words[0] in PARTS and not words[1].endswith("s"))  # 2 third cup, but 7 third graders
        or any(word in ("below", "beneath", "under") for word in words[:-1] if not _LEVELS.isdisjoint(words))
        or any(len(word) == 2 and word not in _SHORT for word in words)
    )


def any_of(words: str) -> str:
    """A pattern for any of some words; "_" joins those of a phrase."""
    return rf"(?<![\\{{])\b(?:{'|'.join(words.split()).replace('_', ' ')})\b"


_DENIALS = "not never nor cannot maybe perhaps possibly probably (?:un)?likely"
_DOUBT = re.compile(
    r"\?|≈|\\approx|~|[!/]=|n['’]t\b|\b[ie]\.?[eg]\b|given\W*\d|^one is\b|\b(when|where)\b.*\b\1\b|"
    + any_of(
        f"{_DENIALS} no none nobody nothing n?either except unless if whether where but however otherwise instead "
        "rather without such_as usually sometimes seems? should would could "
        "might may let says? said try guess\\w* think\\w* thought believe\\w* suppos\\w+ assum\\w+ claim(?:s|ed) "
        "expect\\w* estimat\\w* unsure doubt\\w* unknown wrong error incorrect false impossible mistake naive "
        "ignor\\w+ exclud\\w+ reject\\w* discard\\w* ruled? contradict\\w* fail\\w* almost nearly about around "
        "approx\\w* circa ca roughly near close hint example cases? bounds? previous old former (?:an)?other "
        "candidates? given_that that_is up_to until then_some at_(?:least|most|first) or_(?:so|more|less) "
        "(?:one|first|second|third)_(?:possible|solution|root|of)"
    ),
    re.IGNORECASE,
)
_CHANGE = re.compile(  # beside a value: another one is stated
    any_of(
        "or plus minus times than as less fewer over under above below between before after squared? cubed? doubled? "
        "twice tripled halved hal(?:f|ves) thirds? quarters? fourths? fifths? dozens? hundreds? thousands? millions? "
        "billions? squares cubes powers? roots? multiples? factors? factorial divid\\w+ divisible mod modulo short off "
        "negative floor inverse reciprocal opposite raised reversed remains? differs fold sided too onwards? on$ sum "
        "difference product"
    ),
    re.IGNORECASE,
)


def has_doubt(text: str) -> bool:
    """Whether a text doubts, denies or asks."""
    return _DOUBT.search(text) is not None


_DENIED_NAME = re.compile(
    any_of(_DENIALS) + r"|\b(?:wrong|incorrect|false)(?: (?:answer|value|result))?$", re.IGNORECASE
)


def is_denied(name: str) -> bool:
    """Whether a name in front of a value denies or doubts it: "not", "wrong answer"; "wrong answers" is a quantity."""
    return _DENIED_NAME.search(name) is not None


def changes_answer(text: str) -> bool:
    """Whether a word beside a value makes another one of it: "less", "squared"."""
    return _CHANGE.search(text) is not None


# -------------------------------------------------------------------------------------- numbers among tokens

_PLURALS = {"halves": 2, **{f"{word}s": value for word, value in PARTS.items()}}
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")
_NO_NOUNS = ("of", "or", "and", "by", "in", "to", "is", "are")  # behind a number in words
_BEFORE_SCALES = ("-", "+", "=", "(", ",", "$", ":")  # signs in front of a number that a scale may multiply


def number_at(tokens: Sequence[Token], place: int) -> tuple[Fraction, int]:
    """The number that the words at this place spell, and how many of them; length 0 for none."""
    words = [token.text for token in takewhile(lambda token: token.kind == "word", tokens[place : place + 16])]
    value, size = _spelled(words)
    if size and words[size : size + 1] != [] and words[size] in _ORDINALS and value >= 20 and value % 10 == 0:
        raise UnreadableError("an ordinal")  # thirty-first
    return value, size


def _spelled(words: list[str]) -> tuple[Fraction, int]:
    """The number that the first words spell, and how many of them: "two thirds", "two and a half million"."""
    value, size = _part(words)
    if size:
        return value, size
    for size in range(len(words), 0, -1):
        count = in_words(" ".join(words[:size]))
        if count is None:
            continue
        part, length = (
            _part(words[size + 1 :], is_behind=True) if words[size : size + 1] == ["and"] else (Fraction(0), 0)
        )
        if not length or part >= 1:
            return Fraction(count), size
        end = size + 1 + length
        scale = SCALES_AND_PARTS.get(words[end], 0) if end < len(words) else 0
        return ((count + part) * scale, end + 1) if scale > 1 else (count + part, end)
    return Fraction(0), 0


def _part(words: list[str], *, is_behind: bool = False) -> tuple[Fraction, int]:
    """The fraction that the first words spell, and how many of them: "a half", "three quarters", "half" alone."""
    is_end = is_behind or words[2:3] in ([], ["of"])  # not "a third grader"
    if words[:1] == ["a"] and words[1:2] and words[1] in PARTS and is_end:
        return Fraction(1, PARTS[words[1]]), 2
    for size in range(len(words) - 1, 0, -1):
        count = in_words(" ".join(words[:size]))
        if count is not None and words[size] in (PARTS if count == 1 else _PLURALS):
            return Fraction(count, (PARTS | _PLURALS)[words[size]]), size + 1
    return Fraction(0), 0


def times_scales(before: Sequence[Token], tokens: Sequence[Token], place: int) -> tuple[Fraction, int]:
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


def number_in_front(tokens: Sequence[Token]) -> list[Token]:
    """The tokens with the number words and scales at their begin as one number: "seven days", "3 dozen eggs"."""
    value, size = number_at(tokens, 0)
    is_count = 0 < size < len(tokens) and not tokens[0].is_word("a") and tokens[size].text not in _NO_NOUNS
    head = number_tokens(value, gap=False) if is_count else list(tokens[:1])
    rest = list(tokens[size:] if is_count else tokens[1:])
    value, size = times_scales(head, rest, 0) if len(head) == 1 else (value, 0)
    return [*(number_tokens(value, gap=False) if size else head), *rest[size:]]


def number_tokens(value: Fraction, gap: bool) -> list[Token]:
    if value.denominator == 1:
        return [Token("number", str(value.numerator), gap)]
    texts = ("{", str(value.numerator), "}", "{", str(value.denominator), "}")
    braced = [Token("number" if text.isdigit() else "sign", text, gap) for text in texts]
    return [Token("function", "frac", gap), *braced]
