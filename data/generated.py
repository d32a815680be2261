"""Generated problems: five families, three levels, four splits that share no calculation.

Each problem is a pure function of (family, level, split, index).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, islice
from random import Random

from data.arithmetic import SPLITS, Split
from data.families import FAMILIES, LEVELS, Draft, draw
from data.problem import Problem

CELLS = tuple((family, level) for level in LEVELS for family in FAMILIES)
PROBLEMS_PER_CELL = 200
EASY_TO_TRAIN_ON = 100  # of a family at level 1: soon all answers to those are right, and such a group teaches nothing
_PATIENCE = 400  # indices in a row without a new question, after which a cell counts as exhausted


def problems(split: str, limit: int | None = None) -> list[Problem]:
    """Distinct problems of a split, one family and level after the other in turn, so that every beginning is balanced.

    At most 200 of a family and level, 100 of level 1 to train on; fewer where there are no more. ValueError for an
    unknown split.
    """
    if split not in SPLITS:
        raise ValueError(f"unknown split {split!r} of generated problems; known are {', '.join(SPLITS)}")
    cells: list[Iterator[Problem]] = [
        islice(
            _distinct(family, level, split),
            EASY_TO_TRAIN_ON if (split, level) == ("train", 1) else PROBLEMS_PER_CELL,
        )
        for family, level in CELLS
    ]
    return list(islice(_in_turn(cells), limit))


def draft(family: str, level: int, split: Split, index: int) -> Draft:
    """The draft behind problem number `index` of a family, level and split."""
    rng = Random(f"{family}/{level}/{split}/{index}")
    while (drawn := draw(family, level, rng)).split != split:
        pass
    return drawn


def _distinct(family: str, level: int, split: Split) -> Iterator[Problem]:
    seen: set[tuple[object, ...]] = set()
    last_new = 0
    for index in count():
        if index - last_new > _PATIENCE:
            return
        drawn = draft(family, level, split, index)
        # The wording and the names make a new problem to train on, but not one to measure by.
        key = (drawn.question,) if split == "train" else (drawn.steps, drawn.numbers, drawn.target)
        if key in seen:
            continue
        seen.add(key)
        last_new = index
        yield Problem(
            id=f"generated/{split}/{family}-{level}-{index}",
            question=drawn.question,
            answer=drawn.answer,
            source="generated",
            split=split,
            level=level,
            subject=family,
            verifier="countdown" if family == "countdown" else "maths",
        )


def _in_turn(cells: list[Iterator[Problem]]) -> Iterator[Problem]:
    """One of each that still has one, again and again."""
    while cells:
        remaining = []
        for cell in cells:
            problem = next(cell, None)
            if problem is not None:
                remaining.append(cell)
                yield problem
        cells = remaining
