"""The queries of the pages, by name. A query is a function of the library and plain values that returns JSON."""

from __future__ import annotations

import html
import inspect
import json
import math
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar, get_type_hints

from pydantic import validate_call

from app.arguments import STRICT, named_argument
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

_T = TypeVar("_T")
QUERIES: dict[str, Callable[..., dict[str, Any]]] = {
    query.__name__: query
    for query in (
        runs, overview, rollouts, rollout, group, difference, problem, problems, failures, reflection, words, evals,
        evaluation, compare, notes, annotate, models, disagreements, judge_answer,
    )
}  # fmt: skip

_CHECKED = {name: validate_call(config=STRICT)(query) for name, query in QUERIES.items()}
REQUEST_ERRORS = (ValueError, OSError, OverflowError)  # shown to the user; others are bugs
_LONGEST_MESSAGE = 2000  # characters: a message may hold a value of the request


def page_facts(closed: Collection[str]) -> str:
    """Elements of a page's head that its scripts read: the pages and queries that it does not offer, and the fields of
    a filter of rollouts with their meanings and the values to choose from.
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
    with named_argument():
        reply = finite(_CHECKED[query](library, **arguments))
    assert isinstance(reply, dict)
    return reply


def finite(value: Any) -> Any:
    """Replace NaN and infinity, which JSON does not have, by None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return value


# ------------------------------------------------------------------------------------------------ for frameworks


def client_function(
    ask: Callable[[str, Mapping[str, Any]], dict[str, Any]], name: str, error: Callable[[str], Exception]
) -> Callable[..., dict[str, Any]]:
    """A query as a function with its parameters but the library, its types and its docstring. `ask` answers by name
    and arguments; `error` makes the error that the framework shows from a message.
    """
    signature = inspect.signature(QUERIES[name], eval_str=True)
    own = signature.replace(parameters=list(signature.parameters.values())[1:])

    def function(*values: Any, **named: Any) -> dict[str, Any]:
        with shown_errors(error):
            return ask(name, own.bind(*values, **named).arguments)

    function.__doc__ = QUERIES[name].__doc__
    return described(function, name, own, get_type_hints(QUERIES[name]))


def described(
    function: Callable[..., _T], name: str, signature: inspect.Signature, hints: Mapping[str, Any]
) -> Callable[..., _T]:
    """The function with the name, parameters and types that clients are to see."""
    function.__name__, function.__signature__ = name, signature  # type: ignore[attr-defined]
    function.__annotations__ = {key: hints[key] for key in signature.parameters}
    return function


@contextmanager
def shown_errors(error: Callable[[str], Exception]) -> Iterator[None]:
    """Raise errors of a request as those that a framework shows to its client."""
    try:
        yield
    except REQUEST_ERRORS as fault:
        raise error(error_message(fault)) from fault
