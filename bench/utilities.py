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
    return _utilities(completions, completion_ids, correct, well_formed, per_token=0.01)


def concise(
    completions: Sequence[str],
    completion_ids: Sequence[Sequence[int]],
    correct: Sequence[bool],
    well_formed: Sequence[bool],
) -> list[float]:
    """`quality` with four hundredths per token: what a rule for right answers does not see weighs as much as they."""
    return _utilities(completions, completion_ids, correct, well_formed, per_token=0.04)


def _utilities(
    completions: Sequence[str],
    completion_ids: Sequence[Sequence[int]],
    correct: Sequence[bool],
    well_formed: Sequence[bool],
    *,
    per_token: float,
) -> list[float]:
    values = []
    for text, ids, is_correct, is_formed in zip(completions, completion_ids, correct, well_formed, strict=True):
        own = equations(plain(text))
        wrong = sum(not equation.is_correct for equation in own)
        repeated = sum(number - 1 for number in Counter(equation.statement for equation in own).values())
        penalties = 0.3 * (min(_MOST, wrong) + min(_MOST, repeated))
        values.append(2.0 * is_correct + 0.5 * is_formed - per_token * len(ids) - penalties)
    return values


def brevity(completion_ids: Sequence[Sequence[int]]) -> list[float]:
    """Minus a tenth of the tokens: what the backbone of a reward model surely sees."""
    return [-len(ids) / 10 for ids in completion_ids]


UTILITIES = {"quality": quality, "concise": concise}  # what bench/rlhf.py measures
