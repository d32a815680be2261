"""Size limits, checked before any parser sees a text. A text over a limit is REFUSED, which is not WRONG."""

from __future__ import annotations

import re
from math import log10

MAX_RESPONSE_CHARACTERS = 1_000_000  # of a whole response
MAX_CHARACTERS = 2_000  # of an answer
MAX_DIGITS = 500  # of one number
MAX_DEPTH = 40  # of brackets in brackets
MAX_EXPONENT_DIGITS = 4  # of a literal exponent, of the number under a factorial and of an entry of a binomial

_LONG_NUMBER = re.compile(rf"\d{{{MAX_DIGITS + 1}}}")
_BIG_EXPONENT = re.compile(rf"\^[{{(]*[-+]?\d{{{MAX_EXPONENT_DIGITS + 1}}}")
_BIG_FACTORIAL = re.compile(rf"\d{{{MAX_EXPONENT_DIGITS}}}[)}}]*!|![)}}\s]*!")
_BIG_BINOMIAL = re.compile(rf"binom[^a-z]{{0,20}}\d{{{MAX_EXPONENT_DIGITS + 1}}}")
_TOWER = re.compile(r"\^[{(]*(\d+)[)}]*\^[{(]*(\d+)(?![)}]*\^)")
_LONG_TOWER = re.compile(r"\^[{(]*[^{}()^]{1,20}[)}]*\^[{(]*[^{}()^]{1,20}[)}]*\^")


def too_long(response: str) -> str:
    """The limit that a whole response exceeds, in words; "" for none. Checked before anything scans the response."""
    return f"over {MAX_RESPONSE_CHARACTERS} characters" if len(response) > MAX_RESPONSE_CHARACTERS else ""


def too_big(text: str) -> str:
    """The limit that an answer exceeds, in words; "" for none. Cheap: checked for every answer before anything else."""
    if len(text) > MAX_CHARACTERS:
        return f"over {MAX_CHARACTERS} characters"
    if _LONG_NUMBER.search(text):
        return f"a number of over {MAX_DIGITS} digits"
    depth = deepest = 0
    for character in text:
        if character in "([{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in ")]}":
            depth -= 1
    return f"brackets over {MAX_DEPTH} deep" if deepest > MAX_DEPTH else ""


def too_costly(text: str) -> str:
    """The limit that evaluating an expression would exceed, in words ("a power too large"); "" for none."""
    if _BIG_EXPONENT.search(text) or _LONG_TOWER.search(text) or any(map(_is_big_tower, _TOWER.finditer(text))):
        return "a power too large"
    return "a factorial too large" if _BIG_FACTORIAL.search(text) or _BIG_BINOMIAL.search(text) else ""


def _is_big_tower(match: re.Match[str]) -> bool:
    base, exponent = int(match[1]), int(match[2])
    return base > 1 and exponent * log10(base) > MAX_EXPONENT_DIGITS
