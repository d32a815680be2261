"""Exact parsing of rational numbers in everyday notation, with their unit or per cent sign."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from verifiers.limits import MAX_DIGITS
from verifiers.number_words import changes_value, factor, in_words

_INTEGER = r"\d{1,3}(?:,\d{3})+(?!\d)|\d+"
_DECIMAL = rf"(?:{_INTEGER})?\.\d+|(?:{_INTEGER})\.?"
_SIGNED_DECIMAL = rf"[-+]?\s?(?:{_DECIMAL})"

# Tried in this order at the start of the text; groups by name, any of them may be missing.
_NUMBER = re.compile(
    r"(?P<sign>[-+]?)\s?(?:(?:\\dollar|\\text\{(?P<currency>euro|pound|dollar)s?\})\s?(?P<sign2>-?))?(?:"
    rf"(?P<repeat>\d*\.\d*)\\(?:overline|bar)\{{(?P<cycle>\d+)\}}"
    rf"|(?:(?P<whole>\d+)\s?)?\\frac\{{(?P<over>{_SIGNED_DECIMAL})\}}\{{(?P<under>{_SIGNED_DECIMAL})\}}"
    rf"|(?P<whole2>\d+)\s(?P<over2>\d+)\s?/\s?(?P<under2>\d+)"
    rf"|(?P<over3>{_DECIMAL})\s?/\s?(?P<under3>{_DECIMAL})"
    rf"|(?P<decimal>{_DECIMAL})(?:\s?\\cdot\s?10\^\{{(?P<power>[-+]?\d+)\}}|[eE](?P<power2>[-+]?\d+))?"
    r")"
)
_PERCENT = re.compile(r"\s?(?:%|\\text\{\s?(?:percent(?:age)?|per cent|pct|%)\s?\}|percent(?:age)?|per cent|pct)")
_MORE_WORDS = r"(?:[ /][A-Za-z]+){0,4}(?:\^\{\d\})?"
_SET_UNIT = (
    r"\s?\\text\{[^{}]*\}(?:\^\{-?\d\}|\\cdot ?|/|\s|\\text\{[^{}]*\})*"
    r"|\s?(?:\\degree(?:\s?[CF]|\\text\{[CF]\})?|\\dollar|(?:[ckm]?m|in|ft|yd|mi)\^\{[23]\})"
)
# After a number: words set as text, a known sign, or after a space a word or the letter of a unit.
_UNIT = re.compile(rf"{_SET_UNIT}|\s(?:[mgshlL](?![A-Za-z])|[A-Za-z]{{2,}}){_MORE_WORDS}")
# After an expression, where letters may be variables: only what is set as text, or a long or known word.
_UNIT_AT_END = re.compile(rf"(?:{_SET_UNIT}|\s(?:[ckm]m|in|ft|yd|mi|kg|sec|min|mph|[A-Za-z]{{4,}}){_MORE_WORDS})$")
_MAX_POWER = 400

_UNIT_NAMES: dict[str, tuple[str, ...]] = {
    "m": ("meter", "metre"), "cm": ("centimeter", "centimetre"), "mm": ("millimeter", "millimetre"),
    "km": ("kilometer", "kilometre"), "in": ("inch", "inche"), "ft": ("foot", "feet"), "yd": ("yard",), "mi": ("mile",),
    "s": ("sec", "second"), "min": ("minute",), "h": ("hr", "hour"), "g": ("gram",),
    "kg": ("kilogram",), "lb": ("pound",), "l": ("liter", "litre"),
    "ml": ("milliliter", "millilitre"), "degree": ("deg", "\\degree"), "rad": ("radian",),
    "dollar": ("usd", "buck", "\\dollar"), "cent": ("¢",), "euro": ("eur",),
    "mph": ("miles per hour", "mile per hour", "mi/h"),
    "km/h": ("kmph", "kph", "kilometers per hour"), "m/s": ("meters per second",),
}  # fmt: skip
_UNIT_OF = {alias: unit for unit, aliases in _UNIT_NAMES.items() for alias in (unit, *aliases)}
_NO_NOUNS = ("of", "or", "and", "by", "in", "to", "is", "are")  # behind a number in words
_NO_UNIT = re.compile(
    r"\b(?:divides?|or|and|not|but|nor|maybe|perhaps|either|if|unless|except|mod|plus|minus|times|divided|over|is|are|than|to)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Numeral:
    """An exact value with its unit. `percent` is true for a number with a per cent sign; 25 % has the value 25."""

    value: Fraction
    unit: str = ""
    percent: bool = False


@lru_cache(maxsize=4096)
def numeral(text: str) -> Numeral | None:
    """Parse a canonical text that is one number, with or without a unit; None for anything else (2+3 included)."""
    if len(text) <= MAX_DIGITS and text.isascii() and text.isdigit():
        return Numeral(Fraction(int(text)))
    text = _bare(text)
    if (number := in_words(text)) is not None:
        return Numeral(Fraction(number))
    if text[:1].isalpha() and (words := _number_in_front(text)):
        text = words
    match = _NUMBER.match(text)
    value = _value(match) if match else None
    if match is None or value is None:
        return None
    multiple, rest = factor(text[match.end() :], is_one=value == 1)
    value *= multiple
    if not rest:
        return Numeral(value, match["currency"] or ("dollar" if r"\dollar" in match[0] else ""))
    if _PERCENT.fullmatch(rest):
        return Numeral(value, percent=True)
    unit = _UNIT.fullmatch(rest)
    if unit is None or _NO_UNIT.search(rest) or changes_value(rest):
        return None
    return Numeral(value, _unit_name(rest))


def _number_in_front(text: str) -> str:
    """The text with the number words that it begins with as digits: "seven days" is "7 days"; "" for none."""
    words = text.replace(r"\text{", " ").replace("}", " ").split()
    for size in range(min(len(words) - 1, 8), 0, -1):
        if (value := in_words(" ".join(words[:size]))) is not None and words[0] != "a" and words[size] not in _NO_NOUNS:
            return f"{value} {' '.join(words[size:])}"
    return ""


def equal(gold: Numeral, answer: Numeral) -> bool:
    """Whether two numbers are exactly equal and their units, where both have one, are the same.

    A gold with a per cent sign takes the number with the sign, without it, and as a share: 25% is 25%, 25 and 0.25.
    A plain gold takes one percentage: from -1 to 1 it is a share (0.25 is 25%), beyond that the sign is a unit (48 is
    48%, not 4800%).
    """
    if gold.unit and answer.unit and gold.unit != answer.unit:
        return False
    if gold.percent and not answer.percent:
        return answer.value in (gold.value, gold.value / 100)
    if answer.percent and not gold.percent and abs(gold.value) <= 1:
        return answer.value / 100 == gold.value
    return gold.value == answer.value


def _value(match: re.Match[str]) -> Fraction | None:
    part = match.groupdict()
    value: Fraction
    if part["cycle"]:
        head, _, tail = part["repeat"].partition(".")
        digits = int(f"{head}{tail}" or 0)
        cycle = Fraction(int(part["cycle"]), 10 ** len(part["cycle"]) - 1)
        value = (digits + cycle) / 10 ** len(tail)
    elif part["decimal"]:
        power = int(part["power"] or part["power2"] or 0)
        if abs(power) > _MAX_POWER:
            return None
        value = _fraction(part["decimal"]) * (Fraction(10**power) if power >= 0 else Fraction(1, 10**-power))
    else:
        over, under = (part[f"{name}"] or part[f"{name}2"] or part[f"{name}3"] for name in ("over", "under"))
        whole = part["whole"] or part["whole2"]
        if (bottom := _fraction(under)) == 0:
            return None
        value = _fraction(over) / bottom
        if whole:
            value += int(whole)
    return -value if (part["sign"] == "-") != (part["sign2"] == "-") else value


def _fraction(text: str) -> Fraction:
    return Fraction(text.replace(",", "").replace(" ", "").rstrip("."))


def _bare(text: str) -> str:
    """Remove brackets around the whole text: (5), {5}, -(5)."""
    while len(text) > 2 and (text[0], text[-1]) in {("(", ")"), ("{", "}")} and not re.search(r"[(){},]", text[1:-1]):
        text = text[1:-1].strip()
    return re.sub(r"^-\(([^(){},+-]*)\)$|^\\text\{([^{}]*)\}$", lambda m: m[2] or f"-{m[1]}", text)


def without_unit(text: str) -> tuple[str, str]:
    """Split a canonical text into the text without its unit or currency sign, and the unit's name ("" for none)."""
    if text.startswith(r"\dollar"):
        return text.removeprefix(r"\dollar").strip(), "dollar"
    unit = _UNIT_AT_END.search(text)
    if unit is None or unit.start() == 0 or _NO_UNIT.search(unit[0]) or changes_value(unit[0]):
        return text, ""
    return text[: unit.start()], _unit_name(unit[0])


def _unit_name(text: str) -> str:
    """The normalised name of a unit: known aliases resolved, singular, lower case, without spaces."""
    text = re.sub(r"\\text\{([^{}]*)\}", r" \1 ", text)
    text = re.sub(r"\s+", " ", text).strip().casefold()
    power = re.search(r"\^\{(\d)\}", text)
    exponent = power[1] if power else ""
    for word, value in (("square", "2"), ("squared", "2"), ("sq", "2"), ("cubic", "3"), ("cubed", "3")):
        if text.startswith(word + " "):
            text, exponent = text.removeprefix(word + " "), value
        elif text.endswith((" squared", " cubed")) and text.endswith(" " + word):
            text, exponent = text.removesuffix(" " + word), value
    text = re.sub(r"\^\{\d\}|[.]", "", text).strip()
    singular = text[:-1] if text.endswith("s") and text not in _UNIT_OF else text
    name = _UNIT_OF.get(text) or _UNIT_OF.get(singular) or singular.replace(" ", "")
    return name + exponent
