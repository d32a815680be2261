"""The answer inside a sentence, and what a sentence must not do: hedge, deny, or list candidates."""

from __future__ import annotations

import re

_HEDGES = (
    "not", "neither", "nor", "maybe", "perhaps", "possibly", "probably", "either", "guess", "unsure", "unknown",
    "think", "could", "might", "cannot", "can't", "isn't", "unless", "depends", "wrong", "incorrect", "about", "around",
    "roughly", "approximately", "but",
)  # fmt: skip
_HEDGE = re.compile(rf"\b(?:{'|'.join(_HEDGES)})\b", re.IGNORECASE)
_COMMAND = re.compile(r"\\(?:text\b|[a-zA-Z]+)")
_WORD = re.compile(r"[A-Za-z]{2,}")
# After which the answer comes; the last one counts.
_LEAD = re.compile(
    r"\b(?:is|are|equals|be|was|get|gives)\b\s*:?\s*|(?:\banswer|\bresult|\bsolution)\s*[:=]\s*", re.IGNORECASE
)
_NUMBER = re.compile(r"(?<![\w.])-?(?:\\dollar\s?)?\d[\d,]*(?:\.\d+)?%?")


def words(text: str) -> list[str]:
    """The words of two letters and more outside LaTeX commands, those inside `\\text{}` included."""
    return _WORD.findall(_COMMAND.sub(" ", text))


def hedges(text: str, gold: str) -> bool:
    """The answer denies, doubts or qualifies, in a word that the gold does not use."""
    return any(hedge.casefold() not in gold.casefold() for hedge in _HEDGE.findall(text))


def plain(text: str) -> str:
    """The answer that a sentence states: what follows its last "is", or else its only number; or else the text."""
    if len(words(text)) < 2:
        return text
    lead = next(reversed(list(_LEAD.finditer(text))), None)
    if lead and text[lead.end() :].strip(" .}"):
        after = text[lead.end() :].strip()
        return after if re.search(r"\d|\\", after) or not re.search(r"\d", text) else text[: lead.start()].strip()
    numbers = _NUMBER.findall(text)
    return numbers[0].rstrip(",") if len(numbers) == 1 else text
