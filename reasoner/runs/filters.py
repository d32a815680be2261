"""Filters and orders of rollouts: one declaration of each field for users, the index and the pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, get_args

from reasoner.config.other_names import did_you_mean
from reasoner.runs.word_search import match
from reasoner.types import Finish
from verifiers import Verdict
from verifiers.reflection.outcomes import LABELS

ROWS = 2**24  # rollouts of a step, at most
MOST_STEP = 999_999_999  # the name of a shard has nine digits at most
MOST_NUMBER = 2**63 - 1  # of SQLite

Bounds = tuple[Any, Any]  # the lowest and the highest value, inclusive; None is no bound


def ids_of_step(step: int) -> tuple[int, int]:
    """The smallest and the largest id that a rollout of the step can have. The index is ordered by id, and not by step:
    a condition on the step alone reads all rollouts of the run.
    """
    return step * ROWS, (step + 1) * ROWS - 1


ORDERS = {
    "step": "id",
    "tokens": "tokens, id",
    "-tokens": "tokens DESC, id",
    "reward": "reward, id",
    "-reward": "reward DESC, id",
    "-step": "id DESC",
}
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
    "near the gold answer": "the answer differs by its sign, a power of ten, one, one digit, or at most 10 %",
    "other wrong answer": "none of these",
}


# ------------------------------------------------------------------------------------------------ readers of values


def _bounds(number: Callable[[str], Any], text: str) -> Bounds:
    """Parse "3", "3:8", "3:" or ":8" as (low, high)."""
    low, colon, high = text.partition(":")
    try:
        least, most = (number(low) if low else None), (number(high) if high else None)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"it must be a number, or LOW:HIGH with either left out{_limit(error)}") from error
    if least is not None and most is not None and least > most:
        raise ValueError("the lower bound comes first")
    return (least, most) if colon else (least, least)


def _int(text: str) -> int:
    try:
        return _int_up_to(MOST_NUMBER, text)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"it must be a whole number{_limit(error)}") from error


def _limit(error: Exception) -> str:
    return f" ({error})" if isinstance(error, OverflowError) else ""


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


def _field(
    sql: str,
    meaning: str = "",
    *,
    read: Callable[[str], Any] = str,
    values: Sequence[str] = (),
    stored: Callable[[Any], Any] = lambda value: value,
) -> Any:
    """A field of Filter: its condition in SQL, or of bounds the expression that they hold for; what a user may write;
    the reader of that, or the `values` to choose from; the value in the index.
    """
    if values and read is str:
        read = partial(_one_of, tuple(values))
    about = {"sql": sql, "meaning": meaning or ", ".join(values), "read": read, "values": values, "stored": stored}
    return field(default=None, metadata=about)


def _ids(steps: Bounds) -> Bounds:
    first, last = steps
    return None if first is None else ids_of_step(first)[0], None if last is None else ids_of_step(last)[1]


@dataclass(frozen=True, slots=True)
class Filter:
    """Conditions on rollouts; None is any value."""

    step: tuple[int | None, int | None] | None = _field(
        "id", "N or LOW:HIGH, steps from 0", read=partial(_bounds, partial(_int_up_to, MOST_STEP)), stored=_ids
    )
    problem: str | None = _field("problem = ?", "an id")
    subject: str | None = _field("subject = ?", "a family")
    level: int | None = _field("level = ?", "a level", read=_int)
    verdict: str | None = _field("verdict = ?", values=[str(verdict) for verdict in Verdict])
    correct: bool | None = _field(
        "(verdict = 'correct') = ?", read=lambda text: _one_of(("yes", "no"), text) == "yes", values=("yes", "no")
    )
    finish: str | None = _field("finish = ?", values=get_args(Finish))
    reward: tuple[float | None, float | None] | None = _field("reward", "N or LOW:HIGH", read=partial(_bounds, float))
    tokens: tuple[int | None, int | None] | None = _field(
        "tokens", "N or LOW:HIGH", read=partial(_bounds, partial(_int_up_to, MOST_NUMBER))
    )
    failure: str | None = _field(
        "id IN (SELECT id FROM failures WHERE cause = ?)",
        f"{', '.join(CAUSES)} (found when the dashboard shows the page Failures)",
        values=tuple(CAUSES),
    )
    label: str | None = _field(
        "id IN (SELECT id FROM spans WHERE label = ?)",
        f"with a reflection span of this label: {', '.join(LABELS)} (needs `reasoner reflection RUN` first)",
        values=LABELS,
    )
    text: str | None = _field(
        "id IN (SELECT rowid FROM words WHERE words MATCH ?)",
        'words of the completion, "a phrase", begin*, -without',
        stored=match,
    )


ALL = Filter()
FIELDS: dict[str, str] = {one.name: one.metadata["meaning"] for one in fields(Filter)}  # what a user may write
# What the pages draw their fields from: the meaning, and the values to choose from; () for a text, a number or bounds.
CHOICES: dict[str, tuple[str, Sequence[str]]] = {
    one.name: (one.metadata["meaning"], one.metadata["values"]) for one in fields(Filter)
}


def read_filter(texts: Mapping[str, str | None]) -> Filter:
    """Parse a user's filter, texts by field; an empty one is any value. ValueError that names the field."""
    if unknown := texts.keys() - FIELDS.keys():
        raise ValueError(f"unknown filter {sorted(unknown)[0]!r}; known are {', '.join(FIELDS)}")
    values = {}
    for one in fields(Filter):
        if text := texts.get(one.name):
            try:
                values[one.name] = one.metadata["read"](text)
            except ValueError as error:
                raise ValueError(f"{one.name} is {text!r}; {error}") from error
    return Filter(**values)


def sql(where: Filter) -> tuple[str, list[Any]]:
    """Translate the filter into a WHERE clause and its values."""
    # A range of steps is a range of row ids, which is faster to scan than any index. A plus sign before a column keeps
    # SQLite from using that column's index.
    plus = "" if where.step is None else "+"
    conditions, values = ["1"], []
    for one in fields(where):
        if (value := getattr(where, one.name)) is None:
            continue
        condition, value = one.metadata["sql"], one.metadata["stored"](value)
        sign = "" if condition.startswith(("id", "(")) else plus
        bounds = zip((">= ?", "<= ?"), value, strict=True) if isinstance(value, tuple) else [("", value)]
        for comparison, bound in bounds:
            if bound is not None:
                conditions.append(f"{sign}{condition} {comparison}".rstrip())
                values.append(bound)
    return " AND ".join(conditions), values
