"""Problems of one calculation, in plain words: what a small instruction model sometimes solves.

Sums, differences and products of small numbers, and word problems of one step. The split of a problem is a function of
its two numbers, so no split holds a calculation of another one, in whatever words.
"""

from __future__ import annotations

import hashlib
from itertools import product

from data.arithmetic import Operator, equation
from data.problem import Problem

SPLITS = {"train": 70, "validation": 80, "heldout": 100}  # upper ends of the hash's range, per cent
_SIZES = {"train": 3000, "validation": 60, "heldout": 600}  # most problems
_TEXTS = {
    "+": (
        "What is {a} + {b}?",
        "Tom has {a} apples and gets {b} more. How many apples does he have now?",
        "There are {a} boys and {b} girls in a club. How many children are there?",
    ),
    "-": (
        "What is {a} - {b}?",
        "Anna has {a} stickers and gives away {b}. How many stickers are left?",
        "A bus carries {a} people and {b} get off. How many people stay on the bus?",
    ),
    "*": (
        "What is {a} * {b}?",
        "A box holds {a} pens. How many pens are in {b} boxes?",
        "Each of {b} friends pays {a} dollars. How many dollars do they pay together?",
    ),
}
_RANGES: dict[Operator, tuple[range, range]] = {
    "+": (range(11, 100), range(11, 100)),
    "-": (range(20, 100), range(2, 100)),
    "*": (range(3, 30), range(3, 10)),
}


def split_of(operator: str, a: int, b: int) -> str:
    """The split of a calculation; the order of the operands of a sum or a product does not matter.

    A difference a - b has the split of the sum that it undoes where a - b <= b, and one of its own otherwise.
    """
    low, high = sorted((a, b)) if operator != "-" else (a - b, b)
    name = "*" if operator == "*" else "+"
    share = int.from_bytes(hashlib.sha256(f"{name} {low} {high}".encode()).digest()[:4]) % 100
    return next(split for split, end in SPLITS.items() if share < end)


def problems(split: str, limit: int | None = None) -> list[Problem]:
    """The problems of a split (a key of SPLITS) in an order fixed by a hash."""
    rows: list[Problem] = []
    for operator, (left, right) in _RANGES.items():
        pairs = [(a, b) for a, b in product(left, right) if operator != "-" or b < a]
        pairs = sorted(pairs, key=lambda pair: hashlib.sha256(f"{operator}{pair}".encode()).digest())
        pairs = [pair for pair in pairs if split_of(operator, *pair) == split][: _SIZES[split] // 3]
        rows += [_problem(split, operator, *pair, number) for number, pair in enumerate(pairs)]
    return sorted(rows, key=lambda row: hashlib.sha256(row.id.encode()).digest())[:limit]


def _problem(split: str, operator: Operator, a: int, b: int, number: int) -> Problem:
    """The problem of a calculation; `number` chooses its wording."""
    texts = _TEXTS[operator]
    kind = "calculation" if number % len(texts) == 0 else "word problem"
    return Problem(
        id=f"{split}/{a}{operator}{b}",
        question=texts[number % len(texts)].format(a=a, b=b),
        answer=str(equation(a, operator, b).value),
        source="one-step",
        split=split,
        subject=f"{kind} {operator}",
    )
