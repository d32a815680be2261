"""Sample answers to a question from a run's model and stream the tokens. Each model runs in its own process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any

from app.run_library import Library
from app.run_files import read_settings
from reasoner.config.schema import SamplingConfig
from reasoner.rollouts.prompts import check_text
from verifiers import extract, grade, score_response
from verifiers.rules import RULES

_MOST_MODELS = 2  # loaded at once
_MOST_SAMPLES = 16


def models(library: Library) -> dict[str, Any]:
    """List the available models: the embedded base model, and the checkpoints of the runs."""
    entries = [{"model": "base", "steps": [], "defaults": {}}]
    for run_dir in library.runs():
        digits = [path.name.removeprefix("step-") for path in (run_dir / "checkpoints").glob("step-??????")]
        steps = sorted(number for number in digits if number.isdecimal())
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
        "rules": list(RULES),
        "most_samples": _MOST_SAMPLES,
        "max_tokens": SamplingConfig().max_tokens,
    }


class Players:
    """The processes that run the models. Each answers one request at a time."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._lock = threading.Lock()
        self._idle: dict[tuple[str, str], _Player] = {}
        self._busy = 0

    def ask(self, values: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Start sampling. Yields events: {"loading"}, {"prompt"}, {"sample", "text", "logprob"} per token, {"sample",
        "score"}, {"done"}.

        ValueError, before the first event, for an invalid request. Closing the iterator stops the model.
        """
        request = _checked(self._library, values)
        key = (request["model"], request["step"])
        with self._lock:
            if self._busy >= _MOST_MODELS:
                raise ValueError(f"{_MOST_MODELS} questions are being answered; stop one, or wait")
            self._busy += 1
            player = self._idle.pop(key, None)
            while len(self._idle) + self._busy > _MOST_MODELS and self._idle:
                self._idle.pop(next(iter(self._idle))).close()
        events = self._events(key, player, request)
        return chain([next(events)], events)  # started here, so that closing it runs the generator's `finally`

    def _events(
        self, key: tuple[str, str], player: _Player | None, request: dict[str, Any]
    ) -> Iterator[dict[str, Any]]:
        texts: dict[int, str] = {}
        try:
            if player is None:
                yield {"loading": key[0]}
                player = _Player(self._library.runs_dir)
            for event in player.ask(request):
                if "text" in event:
                    texts[event["sample"]] = texts.get(event["sample"], "") + event["text"]
                if "ended" in event and request["gold"]:
                    yield event | {"score": graded(texts[event["sample"]], request["gold"], request["rule"])}
                else:
                    yield event
        finally:
            with self._lock:
                self._busy -= 1
                if player is not None and player.is_ready():
                    self._idle[key] = player
                elif player is not None:
                    player.close()

    def close(self) -> None:
        for player in self._idle.values():
            player.close()


def _checked(library: Library, values: dict[str, Any]) -> dict[str, Any]:
    known = {entry["model"]: entry for entry in models(library)["models"]}
    model, step = str(values.get("model", "base")), str(values.get("step", ""))
    if model not in known:
        raise ValueError(f"unknown model {model!r}; known are {', '.join(known)}")
    if model != "base":
        library.run(model)  # ValueError for a run with links that lead outside it
    if step and step not in known[model]["steps"]:
        raise ValueError(f"{model} has no checkpoint {step!r}; there are {', '.join(known[model]['steps']) or 'none'}")
    for name in ("question", "begin", "gold", "prompt"):
        check_text(str(values.get(name, "")), f"the {name}")
    question = str(values.get("question", "")).strip()
    if not question:
        raise ValueError("there is no question")
    gold, rule = str(values.get("gold", "")).strip(), str(values.get("rule", "maths"))
    if gold:
        grade("0", gold, rule)  # ValueError for an invalid gold answer, before sampling
    return {
        "model": model,
        "step": step,
        "question": question,
        "begin": str(values.get("begin", "")),
        "gold": gold,
        "rule": rule,
        "temperature": _within(values, "temperature", 1.0, 0.0, 5.0),
        "samples": int(_within(values, "samples", 1, 1, _MOST_SAMPLES)),
        "max_tokens": int(_within(values, "max_tokens", 256, 1, 32_768)),
        "seed": int(_within(values, "seed", 0, 0, 2**31)),
        "prompt": str(values.get("prompt") or known[model]["defaults"].get("prompt", "r1-zero")),
    }


def _within(values: dict[str, Any], name: str, default: float, low: float, high: float) -> float:
    value = values.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise ValueError(f"{name} is {value!r}; it must lie between {low:g} and {high:g}")
    return value


def graded(response: str, gold: str, rule: str) -> dict[str, Any]:
    """Grade a response as the reward does, and its last answer anywhere under lenient extraction."""
    score = score_response(response, gold, rule)
    anywhere = extract(response, "lenient").answer
    lenient = None if anywhere is None else bool(grade(anywhere, gold, rule))
    return {name: value for name, value in asdict(score).items() if name != "seconds"} | {
        "anywhere": anywhere,
        "lenient": lenient,
    }


class _Player:
    """A process of reasoner.inference.chat_worker: it reads one line of JSON and writes lines of JSON."""

    def __init__(self, runs_dir: Path) -> None:
        root = str(Path(__file__).parents[1])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "reasoner.inference.chat_worker", "--runs", str(runs_dir)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))},
        )
        self._is_busy = False

    def ask(self, request: dict[str, Any]) -> Iterator[dict[str, Any]]:
        assert self._process.stdin is not None
        self._is_busy = True
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        try:
            yield from self._until_done()
        finally:
            if self._is_busy and self._process.poll() is None:  # the page was closed, or Stop was pressed
                self._process.send_signal(signal.SIGINT)
                for _ in self._until_done():
                    pass

    def _until_done(self) -> Iterator[dict[str, Any]]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            event: dict[str, Any] = json.loads(line)
            self._is_busy = "done" not in event and "error" not in event
            yield event
            if not self._is_busy:
                return
        self._is_busy = False
        yield {"error": f"the model's process ended with status {self._process.wait()}"}

    def is_ready(self) -> bool:
        return self._process.poll() is None and not self._is_busy

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
