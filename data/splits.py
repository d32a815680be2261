"""The split that each calculation belongs to, so that no split states a calculation of another one.

A *fact* is the content of a step, whatever its form: `347*6=2082`, `6*347`, `2082/6` and `2082/347` are one fact, and
so are `286+347`, `633-286` and `633-347`. Every fact that is not elementary belongs to exactly one split, by a hash.
This keeps the splits disjoint: the corpus of the embedded base states no fact of another split in any form.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Literal

from data.arithmetic import Equation

Split = Literal["corpus", "train", "validation", "heldout"]

# From the least to the most restricted, with the upper end of each split's range of the hash (per cent).
SPLITS: dict[Split, int] = {"corpus": 70, "train": 85, "validation": 90, "heldout": 100}


def fact(step: Equation) -> tuple[str, int, int]:
    """The fact of a step, as an addition or a multiplication with its smaller operand first."""
    kind = "+" if step.op in "+-" else "*"
    operands = (step.left, step.right) if step.op == kind else (step.right, step.value)
    return kind, min(operands), max(operands)


def is_elementary(step: Equation) -> bool:
    """Whether a step is simple enough for every split: the tables to 12, factors of one significant digit, and sums
    with a small or round part.
    """
    kind, a, b = fact(step)
    if kind == "+":
        return a < 100 or a % 10 == 0 or b % 10 == 0
    return b <= 12 or a <= 1 or (_is_round(a) and _is_round(b))


def _is_round(number: int) -> bool:
    return number == 0 or len(str(number).rstrip("0")) == 1


@lru_cache(maxsize=200_000)
def split_of_key(key: str) -> Split:
    """The split of a key, by its hash."""
    percent = int.from_bytes(hashlib.blake2b(key.encode(), digest_size=4).digest()) % 100
    return next(split for split, end in SPLITS.items() if percent < end)


def split_of_step(step: Equation) -> Split:
    """The only split whose problems may use this step; "corpus" for elementary steps, which every split may use."""
    if is_elementary(step):
        return "corpus"
    kind, a, b = fact(step)
    return split_of_key(f"{a}{kind}{b}")
