"""Utilities of completions of the embedded base, for `--judge utility:bench/utilities.py:NAME`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from verifiers.equations import equations, plain

_MOST = 4  # wrong or repeated equations that count


def quality(
    completions: Sequence[str],
    completion_ids: Sequence[Sequence[int]],
    correct: Sequence[bool],
    well_formed: Sequence[bool],
) -> list[float]:
    """2 for a right answer and 0.5 for the form, less a hundredth per token, 0.3 per wrong equation, and 0.3 per
    equation that occurred before, each at most four times.
    """
    values = []
    for text, ids, is_correct, is_formed in zip(completions, completion_ids, correct, well_formed, strict=True):
        own = equations(plain(text))
        wrong = sum(not equation.is_correct for equation in own)
        repeated = sum(number - 1 for number in Counter(equation.statement for equation in own).values())
        penalties = 0.3 * (min(_MOST, wrong) + min(_MOST, repeated))
        values.append(2.0 * is_correct + 0.5 * is_formed - len(ids) / 100 - penalties)
    return values


def concise(
    completions: Sequence[str],
    completion_ids: Sequence[Sequence[int]],
    correct: Sequence[bool],
    well_formed: Sequence[bool],
) -> list[float]:
    """`quality` less three more hundredths per token: length weighs much, which the rule for right answers ignores."""
    values = quality(completions, completion_ids, correct, well_formed)
    return [value - 0.03 * len(ids) for value, ids in zip(values, completion_ids, strict=True)]


def brevity(completion_ids: Sequence[Sequence[int]]) -> list[float]:
    """Minus a tenth of the tokens: what the backbone of a reward model surely sees."""
    return [-len(ids) / 10 for ids in completion_ids]


UTILITIES = {"quality": quality, "concise": concise}  # what bench/rlhf.py measures
