"""The strict R1-Zero form: exactly one think block, then exactly one answer block, only white space around them.

A text without a letter, a digit, a symbol or a bracket is empty: dots, dashes and characters of no width earn nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from unicodedata import category

TAGS = ("<think>", "</think>", "<answer>", "</answer>")


@dataclass(frozen=True, slots=True)
class Blocks:
    """The blocks of a response. `fault` is "" for a well-formed response and otherwise names the first failure."""

    think: str = ""
    answer: str = ""
    fault: str = ""


def blocks(response: str) -> Blocks:
    """Split a response (with its prefilled `<think>`) at its tags, which are lower case. Linear time: no regex."""
    for tag in TAGS:
        if (count := response.count(tag)) != 1:
            return Blocks(fault=f"no {tag}" if count == 0 else f"{count} times {tag}")
    starts = [response.index(tag) for tag in TAGS]
    if starts != sorted(starts):
        return Blocks(fault="tags out of order")
    ends = [start + len(tag) for start, tag in zip(starts, TAGS, strict=True)]
    before, think, between, answer, after = (
        response[left:right].strip() for left, right in zip([0, *ends], [*starts, len(response)], strict=True)
    )
    faults = {
        "text before <think>": before,
        "text between the blocks": between,
        "text after </answer>": after,
        "empty think block": is_empty(think),
        "empty answer block": is_empty(answer),
    }
    return Blocks(think, answer, next((fault for fault, is_there in faults.items() if is_there), ""))


def is_empty(text: str) -> bool:
    r"""Whether a text says nothing; `\{\}` is the empty set."""
    return not any(category(each)[0] in "LNS" or category(each) == "Ps" for each in text)
