"""The queries of the pages, by name. A query is a function of the library and plain values that returns JSON."""

from __future__ import annotations

import html
import inspect
import json
import math
import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from app.chat import models
from app.compare import compare
from app.disagreements import disagreements, judge_answer
from app.evaluations import evals, evaluation
from app.failures import failures
from app.notes import annotate, notes
from app.overview import overview, runs
from app.problems import problem, problems
from app.reflection import reflection, words
from app.rollouts import difference, group, rollout, rollouts
from app.run_library import RunLibrary
from reasoner.runs.filters import CHOICES

QUERIES: dict[str, Callable[..., dict[str, Any]]] = {
    query.__name__: query
    for query in (
        runs, overview, rollouts, rollout, group, difference, problem, problems, failures, reflection, words, evals,
        evaluation, compare, notes, annotate, models, disagreements, judge_answer,
    )
}  # fmt: skip

REQUEST_ERRORS = (ValueError, OSError, OverflowError, sqlite3.Error)  # shown to the user; others are bugs
_LONGEST_MESSAGE = 2000  # characters: a message may hold a value of the request


def page_facts(closed: Collection[str]) -> str:
    """Elements of a page's head that its scripts read: the pages and queries that it does not offer, and the fields of
    a filter of rollouts with the values to choose from.
    """
    facts = {"closed": " ".join(closed), "filters": json.dumps(CHOICES)}
    return "".join(f'<meta name="reasoner-{name}" content="{html.escape(text)}">' for name, text in facts.items())


def error_message(error: Exception) -> str:
    """The message of an error of REQUEST_ERRORS, as clients get it."""
    text = str(error)
    return text if len(text) <= _LONGEST_MESSAGE else text[: _LONGEST_MESSAGE - 1] + "…"


def run_query(library: RunLibrary, query: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Call a query by name and return its JSON. ValueError for an unknown query, and for unknown, missing or mistyped
    arguments.
    """
    if query not in QUERIES:
        raise ValueError(f"unknown query {query!r}; known are {', '.join(QUERIES)}")
    function = QUERIES[query]
    parameters = dict(list(inspect.signature(function).parameters.items())[1:])
    for name, value in arguments.items():
        if name not in parameters:
            raise ValueError(f"{query} takes no {name!r}; it takes {', '.join(parameters)}")
        holds, meaning = _KINDS[str(parameters[name].annotation)]
        if not holds(value):
            raise ValueError(f"{name} is {value!r}; it must be {meaning}")
    missing = [n for n, p in parameters.items() if p.default is inspect.Parameter.empty and n not in arguments]
    if missing:
        raise ValueError(f"{query} needs {' and '.join(missing)}")
    reply = finite(function(library, **arguments))
    assert isinstance(reply, dict)
    return reply


def _are_texts(values: Iterable[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


# By annotation of a parameter: the check of its JSON value, and the allowed values in words.
_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "str": (lambda value: isinstance(value, str), "a text"),
    "int": (lambda value: type(value) is int and 0 <= value < 2**53, "a whole number from 0 on"),
    "bool": (lambda value: isinstance(value, bool), "true or false"),
    "list[str]": (lambda value: isinstance(value, list) and _are_texts(value), "a list of texts"),
    "dict[str, str] | None": (
        lambda value: value is None or (isinstance(value, dict) and _are_texts(value.values())),
        "an object of texts",
    ),
}


def finite(value: Any) -> Any:
    """Replace NaN and infinity, which JSON does not have, by None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return value
