"""The queries of the pages, by name. A query is a function of the library and plain values that returns JSON."""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Collection, Mapping
from typing import Any

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
from reasoner.runs.json_files import finite

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
