"""The text of an answer in what a model writes: the last box, or the value that a sentence states, without markup."""

from __future__ import annotations

import re
from decimal import Decimal
from numbers import Real

from data.boxes import final_boxes
from verifiers.answers.layer import read
from verifiers.answers.prose import stated_value

# One formula between maths delimiters, text in bold, and what some solutions end with.
_FORMULA = re.compile(
    r"(?<!\\)\$\$([^$]+)\$\$|(?<!\\)\$([^$]+)(?<!\\)\$|(?<!\\)\\\[(.+?)(?<!\\)\\\]|(?<!\\)\\\((.+?)(?<!\\)\\\)",
    re.DOTALL,
)
_BOLD = re.compile(r"(?<![\w)}*])\*\*([^*\n]+)\*\*(?![\w({*])")
_TAG = re.compile(r"<(b|strong|i|em|u|mark)>([^<>]*)</\1>\.?", re.IGNORECASE)  # HTML
_AFTERWORD = re.compile(r"[.\s]*\bI hope (?:it|this) is correct[.\s]*$", re.IGNORECASE)
# The line of a longer text that gives the answer.
_ANSWER_LINE = re.compile(r"\n[ \t*_#]*(?:the )?final answer[ \t*_]*:[ \t*_\n]*(?=\S)", re.IGNORECASE)
_MARK = re.compile(r"^[ \t]*(?:(\d{1,2})\.|(\d{1,2})\)|\((\d{1,2})\)|([-*•–]))[ \t]+(?=\S)", re.MULTILINE)  # of a list
_MAX_SENTENCE = 1_000  # characters
_NO_WORDS = re.compile(r"[\W\d_]*")  # what states no value in a sentence, but may be one
_FENCES = ("**", "__", "``", "`", "*", "_", '"', "'")


def as_text(name: str, value: object) -> str:
    """A text unchanged, and a number as it is written; ValueError with the name for anything else."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        raise ValueError(f"the {name} is {value!r}; it must be a text or a number")
    return str(value)


def texts_of(text: str) -> tuple[str, str]:
    """The whole answer and the part of it that states the value, both without markup.

    They are the same where the grammar reads the whole, and where it states no value.
    """
    box = final_boxes(text)
    whole = _without_markup(text if box is None else box)
    is_sentence = len(whole) <= _MAX_SENTENCE and not (_NO_WORDS.fullmatch(whole) or _is_value(whole))
    return whole, (stated_value(whole, _is_value) if is_sentence else None) or whole


def _is_value(text: str) -> bool:
    return read(text) is not None


def answer_part(text: str) -> str:
    """The content of the last box, or the text; of a sentence the value that it states. Without markup."""
    return texts_of(text)[1]


def _without_markup(text: str) -> str:
    """The text without headings, bold and code marks."""
    if "hope" in text:
        text = _AFTERWORD.sub("", text)
    text = text.strip().rstrip("\\").strip()
    if "\n" in text and (lines := list(_ANSWER_LINE.finditer(text))):
        text = text[lines[-1].end() :]
    if " " in text or "\t" in text:
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
