"""Plain numbers: most answers are integers or decimals, which need no grammar."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from verifiers.limits import MAX_DIGITS


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
