"""Gradio endpoints for `gradio_client`: the queries of the pages, and Chat, whose calls wait in Gradio's queue."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any, get_type_hints

import gradio as gr
from gradio.events import api as add_api

from app.api import QUERIES, client_function, described, finite, run_query, shown_errors
from app.chat import MAX_MODELS, ChatRequest, ChatWorkers
from app.run_library import RunLibrary


def add_endpoints(library: RunLibrary, workers: ChatWorkers, closed: Collection[str]) -> None:
    """Add an endpoint for each query to the present gr.Blocks, and `chat`, but for the `closed` ones."""
    for name in QUERIES.keys() - set(closed):
        add_api(client_function(partial(run_query, library), name, _error), api_name=name, concurrency_limit=None)
    if "chat" not in closed:
        add_api(_chat(workers), api_name="chat", concurrency_limit=MAX_MODELS)


def _error(message: str) -> gr.Error:
    return gr.Error(message, print_exception=False)


def _chat(workers: ChatWorkers) -> Callable[..., Iterator[dict[str, Any]]]:
    fields = inspect.signature(ChatRequest).parameters.values()
    own = inspect.Signature([field.replace(kind=field.POSITIONAL_OR_KEYWORD) for field in fields])

    def chat(*values: Any) -> Iterator[dict[str, Any]]:
        """Sample answers of a model ("base", or a run and a step of its checkpoints). Streams {"texts", "scores"}: the
        text of each sample so far, and its grade against `gold` when it has ended.
        """
        request = own.bind(*values).arguments
        with shown_errors(_error):
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

    return described(chat, "chat", own, get_type_hints(ChatRequest))
