"""Results of comparisons: True, False, or None where another layer must decide."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from verifiers.answers.values import Value

Result = bool | None
Equality = Callable[[Value, Value], Result]  # of a gold and an answer
T = TypeVar("T")


def all_equal(results: Iterable[Result]) -> Result:
    """True if all are, False if one is False, else None."""
    is_decided = True
    for result in results:
        if result is False:
            return False
        is_decided = is_decided and result is not None
    return True if is_decided else None


def matched(gold: Sequence[T], answer: Sequence[T], equal: Callable[[T, T], Result]) -> Result:
    """Whether each value has an equal one of its own on the other side, in any order; both have the same length."""
    rest = list(answer)
    is_decided = True
    for value in gold:
        results = [equal(value, other) for other in rest]
        if True in results:
            del rest[results.index(True)]
        elif None in results:
            is_decided = False
        else:
            return False
    return True if is_decided else None
