"""Everything that the pages ask of the server, by name. A query is a function of the library and plain values."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from app.comparing import compare
from app.evaluations import evals, evaluation
from app.library import Library
from app.notes import annotate, notes
from app.overview import overview, runs
from app.play import models
from app.problems import problem, problems
from app.reflection import aha, words
from app.rollouts import difference, group, rollout, rollouts

QUERIES: dict[str, Callable[..., dict[str, Any]]] = {
    query.__name__: query
    for query in (
        runs, overview, rollouts, rollout, group, difference, problem, problems, aha, words, evals, evaluation, compare,
        notes, annotate, models,
    )
}  # fmt: skip


def answer(library: Library, query: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """What the query says to the values. ValueError for a query, a name or a type of value that it does not know."""
    if query not in QUERIES:
        raise ValueError(f"unknown query {query!r}; known are {', '.join(QUERIES)}")
    function = QUERIES[query]
    parameters = dict(list(inspect.signature(function).parameters.items())[1:])
    for name, value in given.items():
        if name not in parameters:
            raise ValueError(f"{query} takes no {name!r}; it takes {', '.join(parameters)}")
        holds, meaning = _KINDS[str(parameters[name].annotation)]
        if not holds(value):
            raise ValueError(f"{name} is {value!r}; it must be {meaning}")
    missing = [n for n, p in parameters.items() if p.default is inspect.Parameter.empty and n not in given]
    if missing:
        raise ValueError(f"{query} needs {' and '.join(missing)}")
    found = finite(function(library, **given))
    assert isinstance(found, dict)
    return found


def _are_texts(values: Iterable[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


# Of an annotation: which values of JSON it takes, and that in words.
_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "str": (lambda value: isinstance(value, str), "a text"),
    "int": (lambda value: type(value) is int and 0 <= value < 2**53, "a whole number from 0 on"),
    "bool": (lambda value: isinstance(value, bool), "true or false"),
    "list[str]": (lambda value: isinstance(value, list) and _are_texts(value), "a list of texts"),
    "Mapping[str, str] | None": (
        lambda value: value is None or (isinstance(value, dict) and _are_texts(value.values())),
        "an object of texts",
    ),
}


def finite(value: Any) -> Any:
    """The value with None for every number that JSON has no word for."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return value
