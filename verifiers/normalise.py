"""Normalisation of answers written in LaTeX, unicode or plain text. Tables of rewrites; nothing is evaluated.

The canonical text is still LaTeX, for the layers after it: `\\frac{a}{b}` (braced), `\\cdot` for every product sign,
`^{...}`, `\\degree`, `\\infty`, `\\text{...}` around words that were set as such, `\\dollar` for a currency sign.
Spaces are kept between two words or numbers and after a comma, where they carry meaning: "1, 234" is two numbers.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_PLAIN_NUMBER = re.compile(r"\$?(-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?)\$?")  # most answers: nothing to rewrite

_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁽⁾ⁿ", "0123456789+-()n")
_SUBSCRIPTS = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
_VULGAR = {
    "½": "1/2", "⅓": "1/3", "⅔": "2/3", "¼": "1/4", "¾": "3/4", "⅕": "1/5", "⅖": "2/5", "⅗": "3/5", "⅘": "4/5",
    "⅙": "1/6", "⅚": "5/6", "⅛": "1/8", "⅜": "3/8", "⅝": "5/8", "⅞": "7/8", "⅐": "1/7", "⅑": "1/9", "⅒": "1/10",
}  # fmt: skip
_VULGAR_LATEX = {sign: r"\frac{" + text.replace("/", "}{") + "}" for sign, text in _VULGAR.items()}
_SIGNS = str.maketrans(
    {
        "−": "-", "–": "-", "—": "-", "‐": "-", "‑": "-", "÷": "/", "⁄": "/", "∕": "/", "⟨": "<", "⟩": ">",
        "×": r"\cdot ", "·": r"\cdot ", "⋅": r"\cdot ", "∙": r"\cdot ", "∗": r"\cdot ", "±": r"\pm ", "√": r"\sqrt ",
        "≤": r"\le ", "≥": r"\ge ", "⩽": r"\le ", "⩾": r"\ge ", "≠": r"\ne ", "≈": r"\approx ", "→": r"\to ",
        "∪": r"\cup ", "∩": r"\cap ", "∅": r"\emptyset ", "∈": r"\in ", "ℝ": r"\mathbb{R}", "ℤ": r"\mathbb{Z}",
        "∞": r"\infty ", "°": r"\degree ", "€": r"\text{euro}", "£": r"\text{pound}",
        "π": r"\pi ", "θ": r"\theta ", "α": r"\alpha ", "β": r"\beta ", "φ": r"\phi ",
        "“": '"', "”": '"', "’": "'", "‘": "'", "′": "'", "，": ", ", "（": "(", "）": ")",
        "\u00a0": " ", "\u2009": " ", "\u202f": " ", "\u200b": "", "\ufeff": "", **_VULGAR_LATEX,
    }
)  # fmt: skip

# (pattern, replacement), in this order. Every pattern is linear: no repeated group that can match in two ways.
_LATEX: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\\\$", r"\\dollar "),
        (r"(?<!\\)\\[()\[\]]|\$", " "),  # maths delimiters; `\\[` in a matrix is a line end
        (r"\\(?:tag\*?|label|[hv]?phantom)\s*\{[^{}]*\}", ""),  # not printed as part of the value
        (r"\\(?:left|right|middle|[bB]igg?[lrm]?)(?![a-zA-Z])\s*\.?", ""),
        (r"\{\s?,\s?\}(?=\d)|(?<=\d),\\!\s*(?=\d{3})", ","),
        (r"\\!|\\(?:displaystyle|textstyle|limits|nolimits)(?![a-zA-Z])", ""),
        (r"^\s*~(?=[\d.])", r"\\approx "),  # ~100
        (r"(?<!\\)\\[,;: ]|~|\\(?:quad|qquad|thinspace)(?![a-zA-Z])", " "),
        (r"\\[dtc]frac(?![a-zA-Z])", r"\\frac"),
        (r"\\(?:math(?:rm|bf|it|sf)|text(?:bf|it|rm|sf|normal)|mbox|operatorname|rm|bf)\s*\{", r"\\text{"),
        (r"\\leqs?(?:lant)?(?![a-zA-Z])|<=", r"\\le "),
        (r"\\geqs?(?:lant)?(?![a-zA-Z])|>=", r"\\ge "),
        (r"\\neq(?![a-zA-Z])|!=", r"\\ne "),
        (r"\\lt(?![a-zA-Z])|&lt;", "<"),
        (r"\\gt(?![a-zA-Z])|&gt;", ">"),
        (r"\\langle(?![a-zA-Z])", "<"),
        (r"\\rangle(?![a-zA-Z])", ">"),
        (r"\\lbrace(?![a-zA-Z])", r"\\{"),
        (r"\\rbrace(?![a-zA-Z])", r"\\}"),
        (r"\\lbrack(?![a-zA-Z])", "["),
        (r"\\rbrack(?![a-zA-Z])", "]"),
        (r"\\(?:varnothing|empty)(?![a-zA-Z])", r"\\emptyset "),
        (r"\^\s*\\circ(?![a-zA-Z])|\^\s*\{\s*\\circ\s*\}|\\circ(?![a-zA-Z])|\\degrees?(?![a-zA-Z])", r"\\degree "),
        (r"\\div(?![a-zA-Z])", "/"),
        (r"\*\*", "^"),
        (r"\\(?:times|ast|cdot)(?![a-zA-Z])|\*", r"\\cdot "),
        (r"\+/?-", r"\\pm "),
        (r"\\%", "%"),
        (r"\\(sqrt|frac)\s+", r"\\\1"),
        (r"\\frac\s*([0-9a-zA-Z])\s+([0-9a-zA-Z])", r"\\frac{\1}{\2}"),
        (r"\\sqrt([0-9a-zA-Z])", r"\\sqrt{\1}"),
        (r"\\frac([0-9a-zA-Z])([0-9a-zA-Z])", r"\\frac{\1}{\2}"),
        (r"\\frac([0-9a-zA-Z])\{", r"\\frac{\1}{"),
        (r"\\frac(\{[^{}]*\})([0-9a-zA-Z])", r"\\frac\1{\2}"),
        (r"([\^_])\s*(-?\d+|[a-zA-Z])", r"\1{\2}"),
        (r"\\text\{i\}", "i"),  # the imaginary unit, set upright
        (r"(?<![\w.,/])(\d{1,3}) (?=\d{3}(?![\w/]))", r"\1"),  # 1 000 000
    )
)  # fmt: skip
_PLAIN: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), replacement)
    for pattern, replacement in (
        (r"(?<![\\a-z])sqrt\s*\(([^()]*)\)", r"\\sqrt{\1}"),
        (r"\\sqrt\s*\(([^()]*)\)", r"\\sqrt{\1}"),
        (r"(?<![\\a-z])(pi|theta|alpha|beta)(?![a-z])", r"\\\1 "),
        (r"(?<![\\a-z])(?:infinity|inf|oo)(?![a-z])", r"\\infty "),
        (
            r"(?<![\\a-z])(sin|cos|tan|cot|sec|csc|arcsin|arccos|arctan|log|ln)(?=\s*[(^\d\\]|\s+[a-z](?![a-z]))",
            r"\\\1 ",
        ),
        (r"(?<=[\])])\s*u\s*(?=[\[(])", r"\\cup "),
    )
)
_IDLE_SPACE = re.compile(r"(?<![0-9A-Za-z,.])\s+(?![A-Za-z]{2})|(?<=\.)\s+(?!\d|[A-Za-z]{2})|\s+(?![0-9A-Za-z\\])")
# A wide space, a line break, or the end of one formula and the begin of the next, between two values.
_BORDER = re.compile(
    r"(?:(?<=[\d})%!.])|(?<=(?<![a-zA-Z\\])[a-zA-Z]))[ \t]*"
    r"(?:\\q?quad(?![a-zA-Z])|\n|\$\s*\$|\\\)\s*\\\(|\\\]\s*\\\[)\s*"
    r"(?=[-+]?\s*(?:[(\d.]|[a-zA-Z](?![a-zA-Z])|\\(?:[dt]?frac|sqrt|pi|d?binom)))"
)
_TEXT = re.compile(r"\\text\s*\{([^{}]*)\}")


@lru_cache(maxsize=4096)
def canonical(text: str) -> str:
    """The normalised spelling of an answer. Never raises; a text without mathematics stays readable."""
    text = text.strip().rstrip("\\").rstrip()
    if number := _PLAIN_NUMBER.fullmatch(text):
        return number[1]
    text = re.sub("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁽⁾ⁿ]+", lambda run: "^{" + run[0].translate(_SUPERSCRIPTS) + "}", text)
    text = re.sub("[₀₁₂₃₄₅₆₇₈₉]+", lambda run: "_{" + run[0].translate(_SUBSCRIPTS) + "}", text)
    text = unicodedata.normalize("NFKC", text.translate(_SIGNS))
    text = _BORDER.sub(_comma, text) if "\\begin" not in text else text
    for pattern, replacement in _LATEX:
        text = pattern.sub(replacement, text)
    for pattern, replacement in _PLAIN:
        text = pattern.sub(replacement, text)
    text = _TEXT.sub(lambda match: rf"\text{{{inner}}}" if (inner := match[1].strip()) else "", text)
    return _tidy(text)


def _comma(border: re.Match[str]) -> str:
    """A comma at a border outside brackets, else a space."""
    before = re.sub(r"\\[()\[\]]", "", border.string[: border.start()])
    return ", " if sum(map(before.count, "([{")) == sum(map(before.count, ")]}")) else " "


def _tidy(text: str) -> str:
    """Remove spaces without meaning and the punctuation at the end of a sentence."""
    text = text.strip().rstrip(".,;:!").strip() if not text.rstrip().endswith(("!", "..")) else text.strip()
    text = re.sub(r"\s*,\s+", ", ", re.sub(r"\s+", " ", text))
    return _IDLE_SPACE.sub("", text)
