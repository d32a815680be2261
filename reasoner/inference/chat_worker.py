"""Worker process of the dashboard's Chat page: keeps one model loaded and streams the answer to one question at a time.

Reads one JSON request per line on standard input; writes JSON events, one per line, on standard output. SIGINT stops
the answer in progress, not the process.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from tokenizers.decoders import DecodeStream

from data import Problem
from reasoner.config.schema import EngineConfig
from reasoner.inference.hf_engine import TransformersEngine
from reasoner.models.loading import config_context, load_config, load_tokenizer
from reasoner.models.resolve import resolve_model
from reasoner.rollouts.prompts import check_text, load_template, render
from reasoner.rollouts.seeds import sample_seed
from reasoner.types import SamplingParams


class _Model:
    """A model folder's tokenizer and engine."""

    def __init__(self, folder: Path) -> None:
        self.files = _files(folder)
        self.tokenizer = load_tokenizer(folder)
        context = config_context(load_config(folder))
        self.engine = TransformersEngine(folder, EngineConfig(), max_model_len=context)


def main() -> None:
    """Answer requests until standard input ends. Errors become events."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=Path, required=True)
    args = parser.parse_args()
    out = os.fdopen(os.dup(1), "w")  # what libraries print goes to standard error
    os.dup2(2, 1)
    model: _Model | None = None
    while line := _next_request():
        try:
            request = json.loads(line)
            folder = resolve_model(request["model"], runs=args.runs, step=request["step"] or None)
            if model is None or model.files != _files(folder):
                model = _Model(folder)
            _answer(model, request, out)
            _send(out, done=True)
        except KeyboardInterrupt:
            _send(out, done=True, stopped=True)
        except (ValueError, OSError, RuntimeError) as error:
            _send(out, error=str(error))


def _files(folder: Path) -> list[tuple[Path, int, int]]:
    """A folder's files with time and size: a run replaces its best checkpoint under the same name."""
    files = [(path, path.stat()) for path in sorted(folder.iterdir())]
    return [(path, stat.st_mtime_ns, stat.st_size) for path, stat in files]


def _next_request() -> str:
    """Read the next request. A SIGINT between two answers is ignored."""
    while True:
        try:
            return sys.stdin.readline()
        except KeyboardInterrupt:
            continue


def _answer(model: _Model, request: dict[str, Any], out: Any) -> None:
    """Render the prompt, sample the completions and send an event for every token."""
    check_text(request["begin"], "the beginning of the response")
    prompt_template = load_template(request["prompt"])
    prompt_template = replace(prompt_template, prefill=prompt_template.prefill + request["begin"])
    problem = Problem("play", request["question"], request["gold"] or "0", "play", "")
    prompt = render(problem, prompt_template, model.tokenizer)
    _send(out, prompt=prompt.text)
    sampling = SamplingParams(
        num_samples=1,
        temperature=request["temperature"],
        max_tokens=request["max_tokens"],
        stop=prompt_template.stop,
    )
    for sample in range(request["samples"]):
        stream = DecodeStream(skip_special_tokens=True)
        if prompt.prefill:
            _send(out, sample=sample, text=prompt.prefill)

        def send_token(token: int, logprob: float, stream: DecodeStream = stream, sample: int = sample) -> None:
            text = stream.step(model.tokenizer.backend_tokenizer, token)
            if text:
                _send(out, sample=sample, text=text, logprob=logprob)

        model.engine.on_token = send_token
        seed = sample_seed(request["seed"], "play", prompt.problem.id, sample)
        completion = model.engine.generate([prompt], sampling, [[seed]])[0][0]
        # What the reward grades: with special tokens, and up to a stop text.
        response = prompt.prefill + completion.text
        _send(out, sample=sample, ended=completion.finish, tokens=len(completion.token_ids), response=response)


def _send(out: Any, **event: Any) -> None:
    """Write one event as a line of JSON."""
    out.write(json.dumps(event) + "\n")
    out.flush()


if __name__ == "__main__":
    main()
