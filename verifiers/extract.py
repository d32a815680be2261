"""The answer text inside a response, under a named policy. Linear scans only: a response is hostile input."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from data.gold import boxed, last_boxed
from verifiers.limits import too_long
from verifiers.tags import blocks


@dataclass(frozen=True, slots=True)
class Extraction:
    """`answer` is None where the policy finds none, and `reason` says why."""

    answer: str | None
    well_formed: bool  # the strict form, whatever the policy
    reason: str = ""


def extract(response: str, policy: str = "strict") -> Extraction:
    """The answer of a response under a policy of EXTRACTORS; none of a response that is too long.

    Linear in time and memory. ValueError for an unknown policy.
    """
    if policy not in EXTRACTORS:
        raise ValueError(f"unknown extraction policy {policy!r}; known are {', '.join(EXTRACTORS)}")
    if reason := too_long(response):
        return Extraction(None, False, reason)
    fault = blocks(response).fault
    if policy == "strict" and fault:
        return Extraction(None, False, fault)
    answer = EXTRACTORS[policy](response)
    if answer is not None:
        answer = answer.strip() or None
    return Extraction(answer, not fault, "" if answer else f"no answer ({policy})")


def answer_block(response: str) -> str | None:
    """The content of the last closed `<answer>` block, or of the last box inside it."""
    end = response.rfind("</answer>")
    start = response.rfind("<answer>", 0, end) if end >= 0 else -1
    if start < 0:
        return None
    content = response[start + len("<answer>") : end]
    inner = last_boxed(content)
    return content if inner is None else inner


# A sign belongs to the number unless something stands before it that it could be subtracted from.
_NUMBER = re.compile(r"(?:(?<![\w)}])-)?(?:\d[\d,]*(?:\.\d+)?|\.\d+)(?:/\d+)?%?")


def last_number(response: str) -> str | None:
    """The last number anywhere: integer, decimal, a/b or percentage."""
    number = None
    for match in _NUMBER.finditer(response):
        number = match[0].rstrip(",")
    return number


def after_hashes(response: str) -> str | None:
    """What follows the last `####` on its line, as GSM8K's solutions end."""
    _, mark, rest = response.rpartition("####")
    return rest.strip().partition("\n")[0] if mark else None


def answers_given(response: str) -> int:
    """How many different answers a response gives: in boxes, or in `<answer>` blocks where there is no box.

    0 for a response that is too long to be read.
    """
    if too_long(response):
        return 0
    given = boxed(response) or [part.partition("</answer>")[0] for part in response.split("<answer>")[1:]]
    return len({"".join(answer.split()) for answer in given})


def first_found(*policies: Callable[[str], str | None]) -> Callable[[str], str | None]:
    """The answer of the first policy that finds one that is not blank."""

    def found(response: str) -> str | None:
        answers = (policy(response) for policy in policies)
        return next((answer for answer in answers if answer is not None and answer.strip()), None)

    return found


EXTRACTORS: dict[str, Callable[[str], str | None]] = {
    "strict": answer_block,  # and only from a well-formed response
    "lenient": first_found(answer_block, last_boxed, after_hashes, last_number),
    "boxed": last_boxed,
    "last-number": last_number,
    "gsm8k": after_hashes,
}
