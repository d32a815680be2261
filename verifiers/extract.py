"""Answer extraction from a response, by a function of EXTRACTORS. Linear scans only: a response is hostile input."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from data.boxes import box_contents, final_boxes
from verifiers.answer_text import texts_of
from verifiers.answers.last_number import last_number
from verifiers.answers.layer import read
from verifiers.format import blocks
from verifiers.limits import too_long


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
    if answer is not None:
        answer = answer.strip() or None
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
        return next((answer for answer in answers if answer is not None and answer.strip()), None)

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
