"""Written calculations: single steps, the same step worked by place value, and the split that each step belongs to.

A *fact* is the content of a step, whatever its form: `347*6=2082`, `6*347`, `2082/6` and `2082/347` are one fact, and
so are `286+347`, `633-286` and `633-347`. Every fact that is not elementary belongs to exactly one split, by a hash.
This keeps the splits disjoint: the corpus of the embedded base states no fact of another split in any form.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

Operator = Literal["+", "-", "*", "/"]
Split = Literal["corpus", "train", "validation", "heldout"]

# From the least to the most restricted, with the upper end of each split's range of the hash (per cent).
SPLITS: dict[Split, int] = {"corpus": 70, "train": 85, "validation": 90, "heldout": 100}
_RANK = {split: rank for rank, split in enumerate(SPLITS)}


@dataclass(frozen=True, slots=True)
class Equation:
    """`left op right = value`, all whole numbers."""

    left: int
    op: Operator
    right: int
    value: int

    @property
    def expression(self) -> str:
        return f"{self.left}{self.op}{self.right}"

    def __str__(self) -> str:
        return f"{self.expression}={self.value}"


def equation(left: int, op: Operator, right: int) -> Equation:
    """The equation with its correct value. A division must be exact."""
    if op == "/":
        quotient, remainder = divmod(left, right)
        assert remainder == 0, f"{left}/{right} is not exact"
        return Equation(left, op, right, quotient)
    return Equation(left, op, right, {"+": left + right, "-": left - right, "*": left * right}[op])


# ---------------------------------------------------------------------------------------------------------- facts


def fact(step: Equation) -> tuple[str, int, int]:
    """The fact of a step, as an addition or a multiplication with its smaller operand first."""
    match step.op:
        case "+":
            kind, a, b = "+", step.left, step.right
        case "-":
            kind, a, b = "+", step.right, step.value
        case "*":
            kind, a, b = "*", step.left, step.right
        case "/":
            kind, a, b = "*", step.right, step.value
    return kind, min(a, b), max(a, b)


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


def strictest(splits: list[Split]) -> Split:
    """The most restricted of several splits; "corpus" for an empty list."""
    return max(splits, key=_RANK.__getitem__, default="corpus")


# ---------------------------------------------------------------------------------------------- work by place value


def places(number: int) -> list[int]:
    """347 -> [300, 40, 7]; zeros are left out."""
    digits = str(number)
    return [int(d) * 10 ** (len(digits) - 1 - i) for i, d in enumerate(digits) if d != "0"]


def work(step: Equation) -> list[Equation]:
    """Work a step out in elementary steps, the last of which has its value; [] if there is nothing simpler."""
    chain = _WORK[step.op](step.left, step.right)
    return chain if len(chain) > 1 else []


def _work_sum(a: int, b: int) -> list[Equation]:
    return _running(a, "+", places(b))


def _work_difference(a: int, b: int) -> list[Equation]:
    return _running(a, "-", places(b))


def _work_product(a: int, b: int) -> list[Equation]:
    parts = [equation(p, "*", q) for p in places(a) for q in places(b)]
    if len(parts) == 1:
        return []
    values = [part.value for part in parts]
    return parts + _running(values[0], "+", values[1:])


def _work_quotient(a: int, b: int) -> list[Equation]:
    chain: list[Equation] = []
    parts = places(a // b)
    rest = a
    for part in parts:
        chain.append(equation(b, "*", part))
        if part != parts[-1]:
            chain.append(equation(rest, "-", chain[-1].value))
            rest = chain[-1].value
    return chain + _running(parts[0], "+", parts[1:]) if len(parts) > 1 else []


def _running(start: int, op: Operator, parts: list[int]) -> list[Equation]:
    """The chain "start op part", then "its value op the next part", and so on."""
    chain: list[Equation] = []
    for part in parts:
        chain.append(equation(start, op, part))
        start = chain[-1].value
    return chain


_WORK = {"+": _work_sum, "-": _work_difference, "*": _work_product, "/": _work_quotient}
