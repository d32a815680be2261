"""Filters and orders of rollouts: one declaration of each field for users and the pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, get_args

from reasoner.config.other_names import did_you_mean
from reasoner.types import Finish
from verifiers import Verdict
from verifiers.reflection.outcomes import LABELS

MOST_STEP = 999_999_999  # the name of a shard has nine digits at most
MOST_NUMBER = 2**63 - 1

Bounds = tuple[Any, Any]  # the lowest and the highest value, inclusive; None is no bound
ORDERS = ("step", "tokens", "-tokens", "reward", "-reward", "-step")
# The causes of failures (reasoner.analysis.failures), with their meanings, in the order in which they are tried.
CAUSES = {
    "repeated": "the response repeats itself",
    "truncated": "the response was cut off at the limit of tokens",
    "not graded": "the grader refused the response, ran out of time, or crashed",
    "right in another form": "the right answer is in the response, but not in the form that is asked for",
    "no answer": "there is no answer",
    "malformed": "the response is not in the form that is asked for, and holds no right answer",
    "unparsable": "the answer cannot be parsed",
    "arithmetic slip": "a stated calculation is wrong and is not stated again correctly",
    "near the gold answer": "the answer differs by its sign, a power of ten, one, or at most 10 %",
    "other wrong answer": "none of these",
}


# ------------------------------------------------------------------------------------------------ readers of values


def _bounds(number: Callable[[str], Any], text: str) -> Bounds:
    """Parse "3", "3:8", "3:" or ":8" as (low, high)."""
    low, colon, high = text.partition(":")
    meaning = "a number, or LOW:HIGH with either left out"
    least, most = (_number(meaning, number, side) if side else None for side in (low, high))
    if least is not None and most is not None and least > most:
        raise ValueError("the lower bound comes first")
    return (least, most) if colon else (least, least)


def _number(meaning: str, number: Callable[[str], Any], text: str) -> Any:
    try:
        return number(text)
    except (ValueError, OverflowError) as error:
        limit = f" ({error})" if isinstance(error, OverflowError) else ""
        raise ValueError(f"it must be {meaning}{limit}") from error


def _int_up_to(most: int, text: str) -> int:
    if not text.isascii():
        raise ValueError(text)
    value = int(text)
    if abs(value) > most:
        raise OverflowError(f"at most {most:,}")
    return value


def _one_of(values: Sequence[str], text: str) -> str:
    if text not in values:
        raise ValueError(f"it must be one of {', '.join(values)}{did_you_mean(text, values)}")
    return text


# ------------------------------------------------------------------------------------------------ the filter


def _field(meaning: str = "", *, read: Callable[[str], Any] = str, values: Sequence[str] = ()) -> Any:
    """A field of Filter: what a user may write, and the reader of that, or the `values` to choose from."""
    if values and read is str:
        read = partial(_one_of, tuple(values))
    return field(default=None, metadata={"meaning": meaning or ", ".join(values), "read": read, "values": values})


@dataclass(frozen=True, slots=True)
class Filter:
    """Conditions on rollouts; None is any value. A tuple is the bounds of a column."""

    step: tuple[int | None, int | None] | None = _field(
        "N or LOW:HIGH, steps from 0", read=partial(_bounds, partial(_int_up_to, MOST_STEP))
    )
    problem: str | None = _field("an id")
    subject: str | None = _field("a family")
    level: int | None = _field("a level", read=partial(_number, "a whole number", partial(_int_up_to, MOST_NUMBER)))
    verdict: str | None = _field(values=[str(verdict) for verdict in Verdict])
    correct: bool | None = _field(read=lambda text: _one_of(("yes", "no"), text) == "yes", values=("yes", "no"))
    finish: str | None = _field(values=get_args(Finish))
    reward: tuple[float | None, float | None] | None = _field("N or LOW:HIGH", read=partial(_bounds, float))
    tokens: tuple[int | None, int | None] | None = _field(
        "N or LOW:HIGH", read=partial(_bounds, partial(_int_up_to, MOST_NUMBER))
    )
    failure: str | None = _field(
        f"{', '.join(CAUSES)} (found when the dashboard shows the page Failures)", values=tuple(CAUSES)
    )
    label: str | None = _field(
        f"of a reflection span: {', '.join(LABELS)} (found when the dashboard shows the page Reflection)",
        values=LABELS,
    )
    text: str | None = _field("a text in the completion, in capital or small letters")


ALL = Filter()
# By field what a user may write: its meaning, and the values to choose from; () for a text, a number or bounds.
CHOICES: dict[str, tuple[str, Sequence[str]]] = {
    one.name: (one.metadata["meaning"], one.metadata["values"]) for one in fields(Filter)
}


def read_filter(texts: Mapping[str, str | None]) -> Filter:
    """Parse a user's filter, texts by field; an empty one is any value. ValueError that names the field."""
    if unknown := texts.keys() - CHOICES.keys():
        raise ValueError(f"unknown filter {sorted(unknown)[0]!r}; known are {', '.join(CHOICES)}")
    values = {}
    for one in fields(Filter):
        if text := texts.get(one.name):
            try:
                values[one.name] = one.metadata["read"](text)
            except ValueError as error:
                raise ValueError(f"{one.name} is {text!r}; {error}") from error
    return Filter(**values)
