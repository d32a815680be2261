"""Normalisation of answers written in LaTeX, unicode or plain text. Tables of rewrites; nothing is evaluated.

A first, cheap comparison, and the LaTeX that algebra reads: `\\frac{a}{b}` (braced), `\\cdot` for every product sign,
`^{...}`, `\\degree`, `\\dollar` for a currency sign. Other spellings are compared by the grammar (verifiers.answers).
Spaces are kept between two words or numbers and after a comma, where they carry meaning: "1, 234" is two numbers.
"""

from __future__ import annotations

import re
import unicodedata
from fractions import Fraction
from functools import lru_cache

from verifiers.limits import MAX_DIGITS

_PLAIN_NUMBER = re.compile(r"\$?(-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?)\$?")  # most answers: nothing to rewrite

# Format characters (Unicode's Cf) that print nothing and leave the order: soft hyphen, marks of width and direction.
_NO_WIDTH = dict.fromkeys(
    [0xAD, 0x61C, 0x180E, *range(0x200B, 0x2010), 0x2060, 0x2066, 0x2068, 0x2069, 0xFEFF, *range(0xE0001, 0xE0080)]
)
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁽⁾ⁿ", "0123456789+-()n")
_SUBSCRIPTS = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
_SIGNS = str.maketrans(
    {
        "−": "-", "–": "-", "—": "-", "÷": "/", "×": r"\cdot ", "·": r"\cdot ", "⋅": r"\cdot ", "±": r"\pm ",
        "√": r"\sqrt ",
        "≤": r"\le ", "≥": r"\ge ", "≠": r"\ne ", "∪": r"\cup ", "∞": r"\infty ", "°": r"\degree ",
        "π": r"\pi ", "\u00a0": " ",
    }
)  # fmt: skip

# (pattern, replacement), in this order. Every pattern is linear: no repeated group that can match in two ways.
_LATEX: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\\\$", r"\\dollar "),
        (r"(?<!\\)\\[()\[\]]|\$", " "),  # maths delimiters; `\\[` in a matrix is a line end
        (r"\\(?:left|right|middle|[bB]igg?[lrm]?)(?![a-zA-Z])\s*\.?", ""),
        (r"\{\s?,\s?\}(?=\d)|(?<=\d),\\!\s*(?=\d{3})", ","),
        (r"\\!|\\(?:displaystyle|textstyle|limits|nolimits)(?![a-zA-Z])", ""),
        (r"^\s*~(?=[\d.])", r"\\approx "),  # ~100
        (r"(?<!\\)\\[,;: ]|~|\\thinspace(?![a-zA-Z])", " "),
        (r"\\[dtc]frac(?![a-zA-Z])", r"\\frac"),
        (r"\^\s*\\circ(?![a-zA-Z])|\^\s*\{\s*\\circ\s*\}|\\circ(?![a-zA-Z])|\\degrees?(?![a-zA-Z])", r"\\degree "),
        (r"\*\*", "^"),
        (r"\\(?:times|ast|cdot)(?![a-zA-Z])|\*", r"\\cdot "),
        (r"\+/?-", r"\\pm "),
        (r"\\(sqrt|frac)\s+", r"\\\1"),
        (r"\\sqrt([0-9a-zA-Z])", r"\\sqrt{\1}"),
        (r"\\frac([0-9a-zA-Z])([0-9a-zA-Z])", r"\\frac{\1}{\2}"),
        (r"\\frac([0-9a-zA-Z])\{", r"\\frac{\1}{"),
        (r"\\frac(\{[^{}]*\})([0-9a-zA-Z])", r"\\frac\1{\2}"),
        (r"([\^_])\s*(-?\d+|[a-zA-Z])", r"\1{\2}"),
    )
)  # fmt: skip
_IDLE_SPACE = re.compile(r"(?<![0-9A-Za-z,.])\s+(?![A-Za-z]{2})|(?<=\.)\s+(?!\d|[A-Za-z]{2})|\s+(?![0-9A-Za-z\\])")
# A wide space, a line break, or the end of one formula and the begin of the next.
_BORDER = re.compile(r"\\q?quad(?![a-zA-Z])|\n|(?<=[^\s$])\$\s*\$(?=[^\s$])|\\\)\s*\\\(|\\\]\s*\\\[")
_TEXT = re.compile(r"\\text\s*\{([^{}]*)\}")


def visible(text: str) -> str:
    """A text without the characters that a reader cannot see."""
    return text if text.isascii() else text.translate(_NO_WIDTH)


@lru_cache(maxsize=4096)
def canonical(text: str) -> str:
    """The normalised spelling of an answer. Never raises; a text without mathematics stays readable."""
    text = text.strip().rstrip("\\").rstrip()
    if number := _PLAIN_NUMBER.fullmatch(text):
        return number[1]
    text = re.sub("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁽⁾ⁿ]+", lambda run: "^{" + run[0].translate(_SUPERSCRIPTS) + "}", text)
    text = re.sub("[₀₁₂₃₄₅₆₇₈₉]+", lambda run: "_{" + run[0].translate(_SUBSCRIPTS) + "}", text)
    text = unicodedata.normalize("NFKC", text.translate(_SIGNS))
    text = text if "\\begin" in text else _BORDER.sub(", ", text)
    for pattern, replacement in _LATEX:
        text = pattern.sub(replacement, text)
    text = _TEXT.sub(lambda match: rf"\text{{{inner}}}" if (inner := match[1].strip()) else "", text)
    return _tidy(text)


def _tidy(text: str) -> str:
    """Remove spaces without meaning and the punctuation at the end of a sentence."""
    text = text.strip().rstrip(".,;:!").strip() if not text.rstrip().endswith(("!", "..")) else text.strip()
    text = re.sub(r"\s*,\s+", ", ", re.sub(r"\s+", " ", text))
    return _IDLE_SPACE.sub("", text)


@lru_cache(maxsize=4096)
def numeral(text: str) -> Fraction | None:
    """The value of an integer or decimal, with or without separators of thousands; None for anything else."""
    if len(text) > MAX_DIGITS or not text.isascii():
        return None
    whole, _, decimals = text.removeprefix("-").partition(".")
    groups = whole.split(",")
    is_grouped = len(groups) == 1 or (0 < len(groups[0]) <= 3 and all(len(group) == 3 for group in groups[1:]))
    digits = "".join(groups)
    if not is_grouped or not digits.isdigit() or not (decimals.isdigit() or "." not in text):
        return None
    value = Fraction(int(digits + decimals), 10 ** len(decimals))
    return -value if text.startswith("-") else value
