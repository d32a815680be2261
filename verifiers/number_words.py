"""Number words, and words after a number that change its value: "two hundred", "2 thirds", "7 below zero".

A unit may be left out or added, so words after a number are usually dropped. The words listed here must not be: scales,
dozens and fractions multiply the number (thousand, dozen, thirds); with any other one the text is not a plain number.
"""

from __future__ import annotations

import re
from fractions import Fraction

_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_UNITS = {word: number for number, word in enumerate(_SMALL.split())} | {
    word: 10 * number for number, word in enumerate(_TENS.split(), 2)
}
_SCALES = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_PARTS = {
    "half": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9,
    "tenth": 10, "eleventh": 11, "twelfth": 12,
    **{f"{word}th": number for word, number in _UNITS.items() if 12 < number < 20},
    **{f"{word[:-1]}ieth": number for word, number in _UNITS.items() if number > 19},
    "hundredth": 100, "thousandth": 10**3, "millionth": 10**6, "billionth": 10**9,
}  # fmt: skip
_FACTORS = {
    **{f"{word}{ending}": Fraction(10**power) for word, power in _SCALES.items() for ending in ("", "s")},
    **dict.fromkeys(("dozen", "dozens", "doz"), Fraction(12)),
    **{f"{word}s": Fraction(1, part) for word, part in _PARTS.items()},
    "halves": Fraction(1, 2),
}

_NEXT_WORD = re.compile(r"(\s?\\text\{\s?|\s?)([A-Za-z]+)(?![A-Za-z])")
_WORD = re.compile(r"[a-z]+")
# Anywhere in the text after a number.
_CHANGING_WORDS = (
    "point factorial factorials halved doubled twice tripled thrice trebled quadrupled quintupled inverted inverse "
    "reciprocal negated reversed backwards raised tens twenties thirties forties fifties sixties seventies eighties "
    "nineties root remainder choose hex hexadecimal binary octal least most approx ish ca circa bn mn mln bln trn "
    "lakh lakhs crore crores quadrillion quintillion sextillion googol myriad mille permille ppm ppb bps"
)
_CHANGING = frozenset({*_CHANGING_WORDS.split(), *_FACTORS, *_UNITS})
# Only as the last word: "7 negative", but "7 negative numbers"; "7 degrees below", but "7 pupils below average".
_CHANGING_AT_END = frozenset({"below", "under", "beneath", "above", "negative", "odd", *_PARTS})
_CHANGING_ALONE = frozenset({"square", "cube", "score", "gross", "power", "base"})
# Only directly after the number: "48 squared", but "48 cm squared" and "48 squared units".
_LENGTHS = r"(?:units?|[cmk]?m|in|inch|inches|feet|foot|ft|yards?|miles?|(?:centi|kilo)?met(?:er|re)s?)"
_CHANGING_AT_START = re.compile(
    rf"(?:squared|cubed)(?! {_LENGTHS}\b)"
    r"|below\b|beneath\b|(?:under|above) (?:par|freezing)\b|out of\b|basis points?\b"
)
_BELOW_A_LEVEL = re.compile(r"\b(?:below|beneath|under) (?:the )?(?:zero|par|freezing|sea|ground|surface|water)\b")
# Two letters behind a space are variables (7 xy) unless they are one of these; so are three of "abc" and "xyz".
_SHORT_WORDS = (
    "cm mm km nm dm kg mg lb oz ft in yd mi ml cl dl hl hr mw kw gw mb gb tb kb hz kj mj ev db pm am sq kn mv kv pa cc "
    "au qt pt ly ha of on at by us we my an as go up no pi tv cd ox"
)
_SHORT = frozenset(_SHORT_WORDS.split())
# In words that are set as text; the 2 of m2, m^2 and s^{-2} is none.
_CALCULATION = re.compile(r"(?<![A-Za-z\d^])(?<!\^\{)(?<!\^-)(?<!\^\{-)\d|[+*=!<>]|\\cdot ?\d")
_VARIABLES = re.compile(r"abc|abd|bcd|pqr|rst|uvw|mnp|[a-z]?(?:xy|xz|yz)[a-z]?")


def in_words(text: str) -> int | None:
    """The number spelled by a text ("twenty-one", "a hundred and five"), or None ("five five")."""
    words = re.split(r"[ -]", text.casefold()) if text.isascii() and text[:1].isalpha() else []
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


def factor(rest: str, *, is_one: bool) -> tuple[Fraction, str]:
    r"""The factor given by the first words after a number, and the rest of the text after them.

    " hundred thousand" is 100,000, " thirds of a cup" and r"\text{ thirds}" are 1/3; " third" alone is 1/3 of one only.
    """
    value = Fraction(1)
    while match := _NEXT_WORD.match(rest):
        word, after = match[2].casefold(), rest[match.end() :]
        is_part = is_one and word in _PARTS and (after.strip(" }") == "" or after.startswith(" of "))
        if not is_part and word not in _FACTORS:
            break
        value *= Fraction(1, _PARTS[word]) if is_part else _FACTORS[word]
        rest = after if not match[1].strip() else "" if after == "}" else rf"\text{{{after}"
        is_one = False
    return value, rest


def is_part_of_amount(rest: str) -> bool:
    """Whether the first word after a number in a sentence is part of its value: "48 dozen eggs", "7 point five"."""
    match = _NEXT_WORD.match(rest)
    return match is not None and (match[2].casefold() in _CHANGING or match[2].casefold() in _PARTS)


def changes_value(rest: str) -> bool:
    """Whether the words after a number are more than a unit: "squared", "below zero", "point five", "xy"."""
    bare = re.sub(r"\\[a-zA-Z]+", " ", rest)
    words = _WORD.findall(bare.casefold())
    phrase = " ".join(words)
    if not words:
        return re.search(r"[^\s{}.]", bare) is not None  # 48\text{!}
    is_set = r"\text" in rest
    return (
        not _CHANGING.isdisjoint(words)
        or words[-1] in _CHANGING_AT_END
        or phrase in _CHANGING_ALONE
        or _CHANGING_AT_START.match(phrase) is not None
        or _BELOW_A_LEVEL.search(phrase) is not None
        or (words[0] in _PARTS and not words[1].endswith("s"))  # 2 third cup, but 7 third graders
        or (_CALCULATION.search(rest) is not None if is_set else any(map(_is_product, words)))
    )


def _is_product(word: str) -> bool:
    return (len(word) == 2 and word not in _SHORT) or _VARIABLES.fullmatch(word) is not None
