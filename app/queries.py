"""Everything that the pages ask of the server, by name. A query is a function of the library and plain values."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
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
        kind = _KINDS[str(parameters[name].annotation)]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise ValueError(f"{name} is {value!r}; it must be {parameters[name].annotation}")
    missing = [n for n, p in parameters.items() if p.default is inspect.Parameter.empty and n not in given]
    if missing:
        raise ValueError(f"{query} needs {' and '.join(missing)}")
    found = finite(function(library, **given))
    assert isinstance(found, dict)
    return found


_KINDS: dict[str, Any] = {
    "str": str,
    "int": int,
    "bool": bool,
    "list[str]": list,
    "Mapping[str, str] | None": (dict, type(None)),
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
