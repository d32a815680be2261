"""Sample answers to a question from a run's model and stream the tokens. Each model runs in its own process."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from itertools import chain
from math import inf
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field

from app.arguments import STRICT, named_argument
from app.run_library import RunLibrary
from data.child_process import ChildProcess, project_variables
from reasoner.config.schema import SamplingConfig
from reasoner.rollouts.prompts import check_text, load_template
from reasoner.runs.run_dir import list_checkpoints, read_settings
from verifiers import extract_answer, grade, score_response
from verifiers.equivalence import VERIFIERS

MAX_MODELS = 2  # loaded at once
_MAX_SAMPLES = 16


def models(library: RunLibrary) -> dict[str, Any]:
    """List the available models: the embedded base model, and the checkpoints of the runs."""
    entries = [{"model": "base", "steps": [], "defaults": {}}]
    for run_dir in library.runs():
        steps = [path.name.removeprefix("step-") for path in list_checkpoints(run_dir)]
        best = ["best"] if (run_dir / "checkpoints" / "best").is_dir() else []
        if steps or best:
            try:
                cfg = read_settings(library.run(run_dir.name))["config"]
            except (ValueError, OSError):  # the list of runs shows the reason
                continue
            names = {
                "temperature": "sampling.temperature",
                "max_tokens": "sampling.max_tokens",
                "prompt": "prompt.style",
            }
            defaults = {name: cfg[key] for name, key in names.items() if key in cfg}
            entries.append(
                {"model": run_dir.name, "steps": [*best, *(str(int(s)) for s in reversed(steps))], "defaults": defaults}
            )
    return {
        "models": entries,
        "verifiers": list(VERIFIERS),
        "max_samples": _MAX_SAMPLES,
        "max_tokens": SamplingConfig().max_tokens,
    }


class ChatWorkers:
    """The processes that run the models. Each answers one request at a time."""

    def __init__(self, library: RunLibrary) -> None:
        self._library = library
        self._lock = threading.Lock()
        self._idle: dict[tuple[str, str], _ChatWorker] = {}
        self._busy = 0

    def sample(self, values: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Sample completions of a question. Yields events: {"loading"}, {"prompt"}, {"sample", "text", "logprob"} for
        each token, {"sample", "score"}, {"done"}.

        ValueError, before the first event, for an invalid request. Closing the iterator stops the model.
        """
        request = _read_request(self._library, values)
        key = (request["model"], request["step"])
        with self._lock:
            if self._busy >= MAX_MODELS:
                raise ValueError(f"{MAX_MODELS} models are sampling; stop one, or wait")
            self._busy += 1
            worker = self._idle.pop(key, None)
            while len(self._idle) + self._busy > MAX_MODELS and self._idle:
                self._idle.pop(next(iter(self._idle))).close()
        events = self._events(key, worker, request)
        return chain([next(events)], events)  # started here, so that closing it runs the generator's `finally`

    def _events(
        self, key: tuple[str, str], worker: _ChatWorker | None, request: dict[str, Any]
    ) -> Iterator[dict[str, Any]]:
        try:
            if worker is None:
                yield {"loading": key[0]}
                worker = _ChatWorker(self._library.runs_dir)
            for event in worker.sample(request):
                response = event.pop("response", None)
                if response is not None and request["gold"]:
                    event["score"] = grade_response(response, request)
                yield event
        finally:
            with self._lock:
                self._busy -= 1
                if worker is not None and worker.is_ready():
                    self._idle[key] = worker
                elif worker is not None:
                    worker.close()

    def close(self) -> None:
        for worker in self._idle.values():
            worker.close()


class ChatRequest(BaseModel):
    """A question of a model: "base", or a run at a step of its checkpoints. `gold`: the answer to grade by, if any."""

    model_config = STRICT

    question: str
    model: str = "base"
    step: str = ""
    gold: str = ""
    verifier: str = "maths"
    begin: str = ""
    samples: Annotated[int, Field(ge=1, le=_MAX_SAMPLES)] = 1
    max_tokens: Annotated[int, Field(ge=1, le=32_768)] = 256
    temperature: Annotated[float, Field(ge=0, le=5)] = 1.0
    seed: Annotated[int, Field(ge=0, le=2**31)] = 0
    prompt: str = ""


def _read_request(library: RunLibrary, values: dict[str, Any]) -> dict[str, Any]:
    """The request for a worker from the fields of a ChatRequest. ValueError for an invalid one."""
    with named_argument():
        request = ChatRequest.model_validate(values)
    question, gold = request.question.strip(), request.gold.strip()
    entries = {entry["model"]: entry for entry in models(library)["models"]}
    model, step = request.model, request.step
    if model not in entries:
        raise ValueError(f"unknown model {model!r}; known are {', '.join(entries)}")
    if model != "base":
        library.run(model)  # ValueError for a run with links that lead outside it
    if step and step not in entries[model]["steps"]:
        raise ValueError(
            f"{model} has no checkpoint {step!r}; there are {', '.join(entries[model]['steps']) or 'none'}"
        )
    for name in ("question", "begin", "gold", "prompt"):
        check_text(getattr(request, name), f"the {name}")
    if not question:
        raise ValueError("there is no question")
    if gold:
        grade("0", gold, request.verifier)  # ValueError for an invalid gold answer, before sampling
    prompt = request.prompt or str(entries[model]["defaults"].get("prompt", "r1-zero"))
    return vars(request) | {"question": question, "gold": gold, "prompt": prompt}


def grade_response(response: str, request: Mapping[str, Any]) -> dict[str, Any]:
    """Grade a response as the reward does, by the gold, verifier, question and prompt template of a request; and the
    last answer anywhere in it, found by lenient extraction.
    """
    gold, verifier, question = request["gold"], request["verifier"], request["question"]
    extract = load_template(request["prompt"]).extract
    score = score_response(response, gold, verifier, question=question, extract=extract)
    answer = extract_answer(response, "lenient").answer
    is_correct = None if answer is None else bool(grade(answer, gold, verifier, question=question))
    fields = {name: value for name, value in asdict(score).items() if name != "seconds"}
    return fields | {"lenient_answer": answer, "is_leniently_correct": is_correct}


class _ChatWorker:
    """A process of reasoner.inference.chat_worker."""

    def __init__(self, runs_dir: Path) -> None:
        command = [sys.executable, "-m", "reasoner.inference.chat_worker", "--runs", str(runs_dir)]
        self._child = ChildProcess(command, variables=project_variables())

    def sample(self, request: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Send the request; yields the worker's events. Closing the iterator interrupts the worker."""
        self._child.send("sample", [[request]], inf)
        try:
            yield from self._until_done()
        finally:
            if self._child.is_running and self._child.is_busy:  # the page was closed, or Stop was pressed
                self._child.interrupt()
                for _ in self._until_done():
                    pass

    def _until_done(self) -> Iterator[dict[str, Any]]:
        while (event := self._child.next_event()) is not None:
            yield event.get("result", event)
            if "result" in event:
                return
        reason = "" if self._child.is_ready else f": {self._child.startup_error()}"
        yield {"error": f"the model's process ended with status {self._child.kill()}{reason}"}

    def is_ready(self) -> bool:
        return self._child.is_running and not self._child.is_busy

    def close(self) -> None:
        self._child.kill()
