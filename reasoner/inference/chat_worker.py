"""Worker process of the dashboard's Chat page: keeps one model loaded and streams the answer to one question at a time.

An item is a request, and its result {"done": true} or {"error": text}; before that it sends an event for every token.
SIGINT stops the answer in progress, not the process.
"""

from __future__ import annotations

import argparse
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

from tokenizers.decoders import DecodeStream

from data import Problem
from data.environments.worker import Channel, Send
from reasoner.config.schema import EngineConfig
from reasoner.inference.hf_engine import TransformersEngine
from reasoner.inference.model_spec import learnt_precision
from reasoner.models.loading import config_context, load_config, load_tokenizer
from reasoner.models.resolve import resolve_model
from reasoner.rollouts.prompts import check_text, load_template, render
from reasoner.rollouts.seeds import sample_seed
from reasoner.types import SamplingParams


class _Model:
    def __init__(self, folder: Path) -> None:
        self.files = _files(folder)
        self.tokenizer = load_tokenizer(folder)
        context = config_context(load_config(folder))
        self.engine = TransformersEngine(folder, EngineConfig(dtype=learnt_precision(folder)), max_model_len=context)


def main() -> None:
    """Answer requests until standard input ends. Errors become events."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=Path, required=True)
    args = parser.parse_args()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    channel = Channel()
    channel.ready()
    model: _Model | None = None
    for _, (request,) in channel.items():
        result: dict[str, Any] = {"done": True}
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            folder = resolve_model(request["model"], runs=args.runs, step=request["step"] or None)
            if model is None or model.files != _files(folder):
                model = _Model(folder)
            _answer(model, request, channel.send)
        except KeyboardInterrupt:
            result |= {"stopped": True}
        except (ValueError, OSError, RuntimeError) as error:
            result = {"error": str(error)}
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        channel.send(result=result)


def _files(folder: Path) -> list[tuple[Path, int, int]]:
    """A folder's files with time and size: a run replaces its best checkpoint under the same name."""
    files = [(path, path.stat()) for path in sorted(folder.iterdir())]
    return [(path, stat.st_mtime_ns, stat.st_size) for path, stat in files]


def _answer(model: _Model, request: dict[str, Any], send: Send) -> None:
    """Render the prompt, sample the completions and send an event for every token."""
    check_text(request["begin"], "the beginning of the response")
    prompt_template = load_template(request["prompt"])
    prompt_template = replace(prompt_template, prefill=prompt_template.prefill + request["begin"])
    problem = Problem("play", request["question"], request["gold"] or "0", "play", "")
    prompt = render(problem, prompt_template, model.tokenizer)
    send(prompt=prompt.text)
    sampling = SamplingParams(
        num_samples=1,
        temperature=request["temperature"],
        max_tokens=request["max_tokens"],
        stop=prompt_template.stop,
    )
    for sample in range(request["samples"]):
        stream = DecodeStream(skip_special_tokens=True)
        if prompt.prefill:
            send(sample=sample, text=prompt.prefill)

        def send_token(token: int, logprob: float, stream: DecodeStream = stream, sample: int = sample) -> None:
            text = stream.step(model.tokenizer.backend_tokenizer, token)
            if text:
                send(sample=sample, text=text, logprob=logprob)

        model.engine.on_token = send_token
        seed = sample_seed(request["seed"], "play", prompt.problem.id, sample)
        completion = model.engine.generate([prompt], sampling, [[seed]])[0][0]
        # What the reward grades: with special tokens, and up to a stop text.
        response = prompt.prefill + completion.text
        send(sample=sample, ended=completion.finish, tokens=len(completion.token_ids), response=response)


if __name__ == "__main__":
    main()
