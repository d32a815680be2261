"""Results of comparisons of values: True, False, or None where another layer must decide."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from verifiers.answers.values import Value

Result = bool | None
Equality = Callable[[Value, Value], Result]  # of a gold and an answer


def all_equal(results: Iterable[Result]) -> Result:
    """True if all are, False if one is False, else None."""
    is_decided = True
    for result in results:
        if result is False:
            return False
        is_decided = is_decided and result is not None
    return True if is_decided else None
