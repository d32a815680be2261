"""The text of an answer in what a model writes: the last box, or the only formula of a sentence, without markup."""

from __future__ import annotations

import re
from decimal import Decimal
from numbers import Real

from data.answer_key import final_boxes
from verifiers.answers.prose import changes_answer, has_doubt

# One formula between maths delimiters, text in bold, and what some solutions end with.
_FORMULA = re.compile(
    r"(?<!\\)\$\$([^$]+)\$\$|(?<!\\)\$([^$]+)(?<!\\)\$|(?<!\\)\\\[(.+?)(?<!\\)\\\]|(?<!\\)\\\((.+?)(?<!\\)\\\)",
    re.DOTALL,
)
_BOLD = re.compile(r"(?<![\w)}*])\*\*([^*\n]+)\*\*(?![\w({*])")
_TAG = re.compile(r"<(b|strong|i|em|u|mark)>([^<>]*)</\1>\.?", re.IGNORECASE)  # HTML
_AFTERWORD = re.compile(r"[.\s]*\bI hope (?:it|this) is correct[.\s]*$", re.IGNORECASE)
# Words that restrict the numbers between the bounds of a formula: "all integers with $1<m<5$".
_RESTRICTIONS = frozenset(["integer", "integers", "prime", "primes", "natural", "rational", "even", "odd", "positive"])
_BOUND = re.compile(r"[<>≤≥]|\\[lg]eq?(?:slant)?(?![a-z])")
# The line of a longer text that gives the answer.
_ANSWER_LINE = re.compile(r"\n[ \t*_#]*(?:the )?final answer[ \t*_]*:[ \t*_\n]*(?=\S)", re.IGNORECASE)
_MARK = re.compile(r"^[ \t]*(?:(\d{1,2})\.|(\d{1,2})\)|\((\d{1,2})\)|([-*•–]))[ \t]+(?=\S)", re.MULTILINE)  # of a list
_FENCES = ("**", "__", "``", "`", "*", "_", '"', "'")
_OF_MATHS = frozenset("0123456789\\=<>^+*/")


def as_text(name: str, value: object) -> str:
    """A text unchanged, and a number as it is written; ValueError with the name for anything else."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        raise ValueError(f"the {name} is {value!r}; it must be a text or a number")
    return str(value)


def texts_of(text: str) -> tuple[str, str]:
    """The whole answer and the part of it that states the value, the same for a box; both without markup."""
    box = final_boxes(text)
    whole = _without_markup(text if box is None else box)
    return whole, whole if box is not None else _formula(whole)


def answer_part(text: str) -> str:
    """The content of the last box; without a box, the only formula of a sentence, or the text. Without markup."""
    return texts_of(text)[1]


def _without_markup(text: str) -> str:
    """The text without headings, bold and code marks."""
    if "hope" in text:
        text = _AFTERWORD.sub("", text)
    text = text.strip().rstrip("\\").strip()
    if "\n" in text and (lines := list(_ANSWER_LINE.finditer(text))):
        text = text[lines[-1].end() :]
    text = _without_list_marks(text)
    for fence in _FENCES if text[:1] in "*_`#\"'" else ():
        marks = len(text) - len(text.lstrip("#"))
        text = text[marks:].strip() if marks > 1 or text[1:2] == " " else text  # a heading, but not "#7"
        if text.startswith(fence) and text.endswith(fence) and len(text) > 2 * len(fence):
            text = text[len(fence) : -len(fence)].strip()
    if (tag := _TAG.fullmatch(text)) is not None:
        text = tag[2].strip()
    return _BOLD.sub(r"\1", text) if "**" in text else text


def formulas_in(text: str) -> tuple[str, ...]:
    """The formulas of a text, between maths delimiters."""
    return tuple(dict.fromkeys(next(filter(None, match.groups())).strip() for match in _FORMULA.finditer(text)))


def _without_list_marks(text: str) -> str:
    """The text without numbers from 1 on, and without two or more equal dashes or dots, at the begin of its lines."""
    marks = list(_MARK.finditer(text))
    signs = [match[4] for match in marks if match[4]]
    numbers = [int(match[match.lastindex or 0]) for match in marks if not match[4]]
    is_listed = numbers == list(range(1, len(numbers) + 1)) and (len(signs) != 1 and len(set(signs)) < 2)
    return _MARK.sub("", text) if marks and is_listed else text


def _formula(text: str) -> str:
    """The only formula of a sentence with words alone around it ("Thus $x<3$."); otherwise the text unchanged."""
    matches = list(_FORMULA.finditer(text)) if "$" in text or "\\" in text else []
    if len(matches) != 1:
        return text
    before, after = text[: matches[0].start()], text[matches[0].end() :]
    words = [word.strip(".,;:!").casefold() for word in f"{before} {after}".split()]
    is_end = not after.strip(" .!\n") or after.split()[0] in ("is", "are")
    if not is_end or not any(len(word) > 1 for word in words) or not _OF_MATHS.isdisjoint(before + after):
        return text
    if has_doubt(before + after) or changes_answer(before):
        return text
    formula = str(next(filter(None, matches[0].groups())))
    return text if not _RESTRICTIONS.isdisjoint(words) and _BOUND.search(formula) else formula
