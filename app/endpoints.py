"""Gradio endpoints for `gradio_client`: the queries of the pages, and Chat, whose calls wait in Gradio's queue."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator
from typing import Any, get_type_hints

import gradio as gr
from gradio.events import api as add_api

from app.api import QUERIES, REQUEST_ERRORS, error_message, finite, run_query
from app.chat import MAX_MODELS, ChatWorkers
from app.run_library import RunLibrary


def add_endpoints(library: RunLibrary, workers: ChatWorkers, closed: Collection[str]) -> None:
    """Add an endpoint for each query to the present gr.Blocks, and `chat`, but for the `closed` ones."""
    for name in QUERIES.keys() - set(closed):
        add_api(_endpoint(library, name), api_name=name, concurrency_limit=None)
    if "chat" not in closed:
        add_api(_chat(workers), api_name="chat", concurrency_limit=MAX_MODELS)


def _endpoint(library: RunLibrary, name: str) -> Callable[..., dict[str, Any]]:
    """A function with the parameters, types and docstring of the query, without the library."""
    query = QUERIES[name]
    signature = inspect.signature(query, eval_str=True)
    own = signature.replace(parameters=list(signature.parameters.values())[1:])

    def endpoint(*values: Any) -> dict[str, Any]:
        arguments = own.bind(*values)
        try:
            return run_query(library, name, arguments.arguments)
        except REQUEST_ERRORS as error:
            raise gr.Error(error_message(error), print_exception=False) from error

    endpoint.__name__, endpoint.__doc__ = name, query.__doc__
    endpoint.__signature__ = own  # type: ignore[attr-defined]
    endpoint.__annotations__ = {key: hint for key, hint in get_type_hints(query).items() if key != "library"}
    return endpoint


def _chat(workers: ChatWorkers) -> Callable[..., Iterator[dict[str, Any]]]:
    def chat(
        question: str,
        model: str = "base",
        step: str = "",
        gold: str = "",
        verifier: str = "maths",
        begin: str = "",
        samples: int = 1,
        max_tokens: int = 256,
        temperature: float = 1.0,
        seed: int = 0,
    ) -> Iterator[dict[str, Any]]:
        """Sample answers of a model ("base", or a run and a step of its checkpoints). Streams {"texts", "scores"}: the
        text of each sample so far, and its grade against `gold` when it has ended.
        """
        request = {
            "question": question, "model": model, "step": step, "gold": gold, "verifier": verifier, "begin": begin,
            "samples": samples, "max_tokens": max_tokens, "temperature": temperature, "seed": seed,
        }  # fmt: skip
        texts, scores = [""] * max(1, int(samples)), [None] * max(1, int(samples))
        try:
            for event in workers.sample(request):
                if "error" in event:
                    raise ValueError(event["error"])
                if "text" in event:
                    texts[event["sample"]] += event["text"]
                if "score" in event:
                    scores[event["sample"]] = finite(event["score"])
                yield {"texts": texts, "scores": scores}
        except REQUEST_ERRORS as error:
            raise gr.Error(error_message(error), print_exception=False) from error

    return chat
