"""The process behind the dashboard's Play page: holds one model, answers one question at a time, token by token.

A line of JSON on standard input is a question; lines of JSON on standard output are what happens. SIGINT stops the
answer that is under way and nothing else.
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
from reasoner.models.loading import load_config, load_tokenizer
from reasoner.models.resolve import locate
from reasoner.rollouts.prompts import check_text, render, template
from reasoner.rollouts.seeds import sample_seed
from reasoner.types import Sampling


class _Model:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tokenizer = load_tokenizer(folder)
        context = int(load_config(folder).max_position_embeddings)
        self.engine = TransformersEngine(folder, EngineConfig(), max_model_len=context)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=Path, required=True)
    args = parser.parse_args()
    out = os.fdopen(os.dup(1), "w")  # libraries that print go to standard error
    os.dup2(2, 1)
    model: _Model | None = None
    while line := _next_line():
        try:
            asked = json.loads(line)
            folder = locate(asked["model"], runs=args.runs, step=asked["step"] or None)
            if model is None or model.folder != folder:
                model = _Model(folder)
            _answer(model, asked, out)
            _say(out, done=True)
        except KeyboardInterrupt:
            _say(out, done=True, stopped=True)
        except (ValueError, OSError, RuntimeError) as error:
            _say(out, error=str(error))


def _next_line() -> str:
    """The next question. A SIGINT that comes after the end of an answer stops nothing."""
    while True:
        try:
            return sys.stdin.readline()
        except KeyboardInterrupt:
            continue


def _answer(model: _Model, asked: dict[str, Any], out: Any) -> None:
    chosen = template(asked["prompt"])
    prompt = render(Problem("play", asked["question"], asked["gold"] or "0", "play", ""), chosen, model.tokenizer)
    if asked["begin"]:
        check_text(asked["begin"], "the beginning of the response")
        text = prompt.text + asked["begin"]
        ids = model.tokenizer(text, add_special_tokens=False)["input_ids"]
        prompt = replace(prompt, text=text, prefill=prompt.prefill + asked["begin"], token_ids=tuple(ids))
    _say(out, prompt=prompt.text)
    sampling = Sampling(1, asked["temperature"], 1.0, 0, asked["max_tokens"], chosen.stop)
    for sample in range(asked["samples"]):
        stream = DecodeStream(skip_special_tokens=True)
        if prompt.prefill:
            _say(out, sample=sample, text=prompt.prefill)

        def show(token: int, logprob: float, stream: DecodeStream = stream, sample: int = sample) -> None:
            text = stream.step(model.tokenizer.backend_tokenizer, token)
            if text:
                _say(out, sample=sample, text=text, logprob=logprob)

        model.engine.watcher = show
        seed = sample_seed(asked["seed"], "play", prompt.problem.id, sample)
        completion = model.engine.sample([prompt], sampling, [[seed]])[0][0]
        _say(out, sample=sample, ended=completion.finish, tokens=len(completion.token_ids))


def _say(out: Any, **event: Any) -> None:
    out.write(json.dumps(event) + "\n")
    out.flush()


if __name__ == "__main__":
    main()
