"""Answer extraction from a response, by a function of EXTRACTORS. Linear scans only: a response is hostile input."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from data.boxes import box_contents, final_boxes
from verifiers.answer_text import texts_of
from verifiers.answers.layer import read
from verifiers.answers.rationals import NoValueError, TooLargeError, rational
from verifiers.answers.syntax import VULGAR, Token, bracket_content
from verifiers.answers.tokens import spans
from verifiers.answers.values import Amount, Clock, Collection, Expression, Numeral, Value, is_undone
from verifiers.format import blocks, is_empty
from verifiers.limits import too_long
from verifiers.normalise import visible


@dataclass(frozen=True, slots=True)
class Extraction:
    """The extracted answer. `answer` is None if none is found, and `reason` says why."""

    answer: str | None
    well_formed: bool  # in the strict <think>/<answer> form, however the answer is extracted
    reason: str = ""


def extract_answer(response: str, extract: str = "strict") -> Extraction:
    """Extract the answer of a response by the entry `extract` of EXTRACTORS. One over the size limit has no answer.

    Linear in time and memory. ValueError for an unknown one.
    """
    if extract not in EXTRACTORS:
        raise ValueError(f"unknown extraction {extract!r}; known are {', '.join(EXTRACTORS)}")
    if reason := too_long(response):
        return Extraction(None, False, reason)
    fault = blocks(response).fault
    if extract == "strict" and fault:
        return Extraction(None, False, fault)
    answer = EXTRACTORS[extract](behind_thinking(response))
    answer = None if answer is None or is_empty(answer) else answer.strip()
    return Extraction(answer, not fault, "" if answer else f"no answer ({extract})")


def behind_thinking(response: str) -> str:
    """The response behind its last think block; nothing where that is not closed."""
    rest = response.rpartition("</think>")[2]
    return "" if "<think>" in rest else rest


def answer_block(response: str) -> str | None:
    """The content of the last closed `<answer>` block, or of the last box inside it."""
    end = response.rfind("</answer>")
    start = response.rfind("<answer>", 0, end) if end >= 0 else -1
    if start < 0:
        return None
    content = response[start + len("<answer>") : end]
    inner = final_boxes(content)
    return content if inner is None else inner


_STATED = re.compile(r"\banswers?[ \t*_]*(?:(?:is|are)\b|[:=])[ \t*_:]*\n?[ \t]*", re.IGNORECASE)
_TRUTH = ("yes", "no", "true", "false")
_MAX_STATED = 2_000  # characters at the end in which an answer is stated


def stated_value(response: str) -> str | None:
    """What the response ends with behind "the answer is" or "Answer:", if it is as a whole a value or a choice."""
    end = response[-_MAX_STATED:].rstrip()
    if (lead := deque(_STATED.finditer(end), maxlen=1)) and (value := end[lead[0].end() :].strip("*_ \t\n")):
        is_line = "\n" not in value or value.startswith(("\\[", "$$"))
        value = value if value.endswith("..") else value.removesuffix(".").rstrip("*_")
        is_value = value.casefold() in _TRUTH or read(texts_of(value)[0]) is not None
        return value if is_line and is_value else None
    return None


def after_hashes(response: str) -> str | None:
    """The text after the last `####`, up to the end of its line: the form in which GSM8K's solutions end."""
    _, mark, rest = response.rpartition("####")
    return rest.strip().partition("\n")[0] if mark else None


# ---------------------------------------------------- the last number: with its sign, groups, fraction, power and root

_DIGIT = re.compile(rf"[\d{''.join(VULGAR)}]")
_DELIMITER = re.compile(r"\$|\\[()\[\]]|\n")
_BEFORE, _BEHIND = 300, 60  # characters of the line before and behind the last digit that are read
_MAX_LINES = 20  # that have digits and no number, such as lengths
_MAX_BEFORE, _MAX_BEHIND = 30, 10  # tokens before and behind the last number that may belong to it
_SIGNS, _BETWEEN = ("-", "+", "±"), ("*", "/", "^", "_", ":", ",")
_OPENING, _CLOSING = ("(", "[", "{", "√"), (")", "]", "}", "!", "%", "°")
_OPERATORS = (*_SIGNS, *_BETWEEN, *_OPENING, *_CLOSING)
_MINUS = ("minus", "negative")

Span = tuple[Token, int, int]  # with the places where it begins and ends in the text


def last_number(text: str) -> str | None:
    """The last number in a text, as written there; None without one."""
    text = visible(text)
    for _ in range(_MAX_LINES):
        if (digit := _DIGIT.search(text[::-1])) is None:
            return None
        place = len(text) - digit.end()
        start = text.rfind("\n", 0, place) + 1
        if place - start > _BEFORE:
            start = max(text.rfind(" ", start, place - _BEFORE), place - 10 * _BEFORE, start)
        line = text[start : place + _BEHIND].partition("\n")[0] if "\n" not in text[start:place] else text[start:place]
        if number_in_line := _last_in_line(line):
            return number_in_line
        text = text[:start]
    return None


def _last_in_line(line: str) -> str | None:
    """The longest part of a line around its last number that is one number without arithmetic left to do."""
    tokens = spans(line)
    last = max((place for place, span in enumerate(tokens) if span[0].kind in ("number", "vulgar")), default=-1)
    if last < 0:
        return None
    first, end = last, last
    while first > 0 and last - first < _MAX_BEFORE and _is_joined(line, tokens[first - 1], tokens[first]):
        first -= 1
    while end + 1 < len(tokens) and end - last < _MAX_BEHIND and _is_joined(line, tokens[end], tokens[end + 1]):
        end += 1
    while first < last and tokens[first][0].is_sign(*_BETWEEN, *_CLOSING):
        first += 1
    while end > last and tokens[end][0].is_sign(*_BETWEEN, *_SIGNS, *_OPENING):
        end -= 1
    starts = [place for place in range(first, last + 1) if _is_start(tokens, place, first)]
    ends = [place for place in range(end, last - 1, -1) if place == end or _is_end(tokens, place)]
    parts = [part for start in starts for stop in ends if (part := _part(line, tokens[start : stop + 1]))]
    return next(filter(_is_number, parts), line[tokens[first][1] : tokens[end][2]].strip())


def _is_joined(line: str, before: Span, after: Span) -> bool:
    """Whether two neighbouring tokens may belong to one number."""
    (left, _, left_end), (right, right_start, _) = before, after
    if _DELIMITER.search(line[left_end:right_start]) or not (_is_part(left) and _is_part(right)):
        return False
    if left.is_sign(":"):
        return left.gap == right.gap
    if "," in (left.text, right.text):
        return not right.gap
    is_letter = any(token.kind == "letter" and token.text.isascii() for token in (left, right))
    return not (right.gap and is_letter and not left.is_sign(*_OPERATORS) and not right.is_sign(*_OPERATORS))


def _is_part(token: Token) -> bool:
    is_known = token.kind in ("number", "vulgar", "function", "letter")
    return is_known or token.is_sign(*_OPERATORS) or token.is_word(*_MINUS)


def _is_operand(token: Token) -> bool:
    return token.kind in ("number", "vulgar", "letter") or token.is_sign(*_CLOSING)


def _is_start(tokens: list[Span], place: int, first: int) -> bool:
    """Whether a number may begin here: at a sign or behind one, behind a space, or where nothing is joined before."""
    token, before = tokens[place][0], tokens[place - 1][0] if place else Token("sign", "")
    if token.is_sign(*_SIGNS) or token.is_word(*_MINUS):
        is_dash = before.kind == "word" and (not token.gap or before.is_word(*_MINUS))  # Covid-19
        return not _is_operand(before) and not is_dash
    is_behind = before.is_sign(*_SIGNS, ",", ":", "(", "[", "{") or before.is_word(*_MINUS) or token.gap
    return place == first or is_behind


def _is_end(tokens: list[Span], place: int) -> bool:
    """Whether a number may end here: in front of a sign, a bracket or a space."""
    after = tokens[place + 1][0]
    return after.gap or after.is_sign(*_SIGNS, ",", ":", ")", "]", "}")


def _part(line: str, part: list[Span]) -> str:
    """The text of tokens, without brackets around all of them."""
    while (inner := bracket_content([token for token, _, _ in part])) is not None and inner[1]:
        part = part[1:-1]
    text = line[part[0][1] : part[-1][2]].strip()
    return text if text.endswith("..") else text.removesuffix(".")


def _is_number(text: str) -> bool:
    """Whether a text is one number; arithmetic that has a rational result is left to do."""
    value = read(text)
    if not (isinstance(value, Expression) and is_undone(value.node)):
        return _is_single(value)
    try:
        return rational(value.node) is None
    except (NoValueError, TooLargeError):
        return False


def _is_single(value: Value | None) -> bool:
    is_ratio = isinstance(value, Collection) and value.kind == "ratio"
    return is_ratio or isinstance(value, Expression | Amount | Numeral | Clock)


def num_answers(response: str) -> int:
    """The number of different answers in a response: in boxes, or in `<answer>` blocks if there is no box.

    0 for a response over the size limit.
    """
    if too_long(response):
        return 0
    answers = box_contents(response) or [part.partition("</answer>")[0] for part in response.split("<answer>")[1:]]
    return len({"".join(answer.split()) for answer in answers})


def first_answer(*extractors: Callable[[str], str | None]) -> Callable[[str], str | None]:
    """A function that tries several in order and takes the first answer that is not blank."""

    def first_of_all(response: str) -> str | None:
        answers = (extractor(response) for extractor in extractors)
        return next((answer for answer in answers if answer is not None and not is_empty(answer)), None)

    return first_of_all


EXTRACTORS: dict[str, Callable[[str], str | None]] = {
    "strict": answer_block,  # and only from a well-formed response
    "lenient": first_answer(answer_block, final_boxes, after_hashes, stated_value, last_number),
    "boxed": final_boxes,
    "last-number": first_answer(stated_value, last_number),
    "gsm8k": after_hashes,
}


def check_extraction(name: str) -> str:
    """Return the name of an extraction; ValueError for an unknown one."""
    if name not in EXTRACTORS:
        raise ValueError(f"unknown extraction {name!r}; known are {', '.join(EXTRACTORS)}")
    return name
