"""Generated problems: five families, three levels (and two that are harder), and splits that share no calculation.

Each problem is a pure function of (family, level, split, index).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count, islice, zip_longest
from random import Random

from data.families import FAMILIES, LEVELS, Draft
from data.problem import Problem
from data.splits import SPLITS, Split

_PER_CELL = 200
_EASY_TO_TRAIN_ON = 100  # per family at level 1 in the train split: these are soon solved, in groups of zero variance
# Ids and seeds hold this word for the split: it was the split's name when the problems were first used, and they must
# not change with the name.
_WORD_OF: dict[str, str] = {split: split for split in SPLITS} | {"validation": "selection"}
_PATIENCE = 400  # consecutive indices without a new question, after which a cell counts as exhausted


def problems(split: str, limit: int | None = None, levels: Sequence[int] = LEVELS) -> list[Problem]:
    """Distinct problems of a split, round robin over families and levels, so that every prefix is balanced.

    At most 200 of a family and level (100 at level 1 of the train split), fewer if there are no more. ValueError for an
    unknown split.
    """
    if split not in SPLITS:
        raise ValueError(f"unknown split {split!r} of generated problems; known are {', '.join(SPLITS)}")
    cells = [
        islice(_distinct(family, level, split), _EASY_TO_TRAIN_ON if (split, level) == ("train", 1) else _PER_CELL)
        for level in levels
        for family in FAMILIES
    ]
    rounds = zip_longest(*cells)  # one problem of each in turn, until all are exhausted
    return list(islice((problem for row in rounds for problem in row if problem is not None), limit))


def draft(family: str, level: int, split: Split, index: int) -> Draft:
    """The draft of problem number `index` of a family, level and split."""
    rng = Random(f"{family}/{level}/{_WORD_OF[split]}/{index}")
    while (candidate := FAMILIES[family](level, rng)).split != split:
        pass
    return candidate


def _distinct(family: str, level: int, split: Split) -> Iterator[Problem]:
    seen: set[tuple[object, ...]] = set()
    last_new = 0
    for index in count():
        if index - last_new > _PATIENCE:
            return
        candidate = draft(family, level, split, index)
        # Another wording makes a new problem for training, but not for evaluation.
        key = (candidate.question,) if split == "train" else (candidate.steps, candidate.numbers, candidate.target)
        if key in seen:
            continue
        seen.add(key)
        last_new = index
        yield Problem(
            id=f"generated/{_WORD_OF[split]}/{family}-{level}-{index}",
            question=candidate.question,
            answer=candidate.answer,
            source="generated",
            split=split,
            level=level,
            subject=family,
            verifier="countdown" if family == "countdown" else "maths",
        )
