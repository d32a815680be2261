"""Gradio endpoints for `gradio_client`: the queries of the pages, and Chat, whose calls wait in Gradio's queue."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any, get_type_hints

import gradio as gr
from gradio.events import api as add_api

from app.api import QUERIES, REQUEST_ERRORS, error_message, run_query
from app.chat import MAX_MODELS, ChatRequest, ChatWorkers
from app.run_library import RunLibrary
from reasoner.runs.json_files import finite


def add_endpoints(library: RunLibrary, workers: ChatWorkers, closed: Collection[str]) -> None:
    """Add an endpoint for each query to the present gr.Blocks, and `chat`, but for the `closed` ones."""
    for name in QUERIES.keys() - set(closed):
        add_api(_query(library, name), api_name=name, concurrency_limit=None)
    if "chat" not in closed:
        add_api(_chat(workers), api_name="chat", concurrency_limit=MAX_MODELS)


def _query(library: RunLibrary, name: str) -> Callable[..., dict[str, Any]]:
    own = list(inspect.signature(QUERIES[name], eval_str=True).parameters.values())[1:]  # without the library

    def query(*values: Any, **named: Any) -> dict[str, Any]:
        with _shown_errors():
            return run_query(library, name, inspect.Signature(own).bind(*values, **named).arguments)

    query.__doc__ = QUERIES[name].__doc__
    _describe(query, name, own, get_type_hints(QUERIES[name]))
    return query


def _chat(workers: ChatWorkers) -> Callable[..., Iterator[dict[str, Any]]]:
    fields = inspect.signature(ChatRequest).parameters.values()
    own = [field.replace(kind=field.POSITIONAL_OR_KEYWORD) for field in fields]

    def chat(*values: Any) -> Iterator[dict[str, Any]]:
        """Sample answers of a model ("base", or a run and a step of its checkpoints). Streams {"texts", "scores"}: the
        text of each sample so far, and its grade against `gold` when it has ended.
        """
        request = inspect.Signature(own).bind(*values).arguments
        with _shown_errors():
            events, number = workers.sample(request), request.get("samples", 1)
            texts, scores = [""] * number, [None] * number
            for event in events:
                if "error" in event:
                    raise ValueError(event["error"])
                if "text" in event:
                    texts[event["sample"]] += event["text"]
                if "score" in event:
                    scores[event["sample"]] = finite(event["score"])
                yield {"texts": texts, "scores": scores}

    _describe(chat, "chat", own, get_type_hints(ChatRequest))
    return chat


def _describe(function: Any, name: str, parameters: list[inspect.Parameter], hints: dict[str, Any]) -> None:
    """Give a function the name, the parameters and the types that clients are to see; its reply is an object."""
    function.__name__ = name
    function.__signature__ = inspect.Signature(parameters, return_annotation=dict[str, Any])  # without: no reply
    function.__annotations__ = {one.name: hints[one.name] for one in parameters}


@contextmanager
def _shown_errors() -> Iterator[None]:
    """Raise errors of a request as those that Gradio shows to its client."""
    try:
        yield
    except REQUEST_ERRORS as fault:
        raise gr.Error(error_message(fault), print_exception=False) from fault
