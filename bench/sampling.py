"""The transformers engine at an earlier commit and now: `python bench/sampling.py COMMIT`. Both sample the same prompts
from the same seeds, a process each, alternating, vLLM beside them where it can be imported. Prints a table in Markdown
of tokens a second (medians), the ratio, and how many completions are the same.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from workers import Worker, print_answer

HERE = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class Workload:
    """`prompts` questions, `samples` completions of each."""

    prompts: int
    samples: int
    max_tokens: int
    width: int = 0  # of a Qwen2 of random weights with `heads` query heads, four for a key head; 0: the embedded base
    layers: int = 0
    heads: int = 0


WORKLOADS = {
    "embedded base (1.4M)": Workload(64, 8, 256),
    "random weights (31M)": Workload(16, 8, 256, width=512, layers=10, heads=8),
}


class Side(Worker):
    """A process with an engine, of the code in `tree`. It is asked for samples by their seeds."""

    def __init__(self, tree: Path, engine: str, workload: Workload, folder: Path, threads: int) -> None:
        arguments = ["--work", json.dumps(asdict(workload)), engine, str(folder), str(threads)]
        super().__init__(__file__, arguments, tree=tree, threads=threads)


def work(workload: Workload, name: str, folder: Path, threads: int) -> None:
    """The process, from inside: sample once for every seed on standard input."""
    import torch

    from data.generated import problems
    from reasoner.config.schema import EngineConfig
    from reasoner.inference.factory import make_engine
    from reasoner.models.loading import load_tokenizer
    from reasoner.rollouts.prompts import load_template, render
    from reasoner.types import SamplingParams

    template, tokenizer = load_template("r1-zero"), load_tokenizer(folder)
    prompts = [render(problem, template, tokenizer) for problem in problems("train", workload.prompts)]
    sampling = SamplingParams(num_samples=workload.samples, max_tokens=workload.max_tokens, stop=template.stop)
    engine = make_engine(EngineConfig(name=name), folder, max_model_len=512, seed=0)
    torch.set_num_threads(threads)
    for line in sys.stdin:
        draw = random.Random(int(line))
        seeds = [[draw.getrandbits(62) for _ in range(workload.samples)] for _ in prompts]
        began, busy = time.perf_counter(), time.process_time()
        groups = engine.generate(prompts, sampling, seeds)
        seconds, busy = time.perf_counter() - began, time.process_time() - busy
        ids = [completion.token_ids for group in groups for completion in group]
        print_answer({"seconds": seconds, "busy": busy, "ids": ids})
    engine.close()


def make_folder(workload: Workload, folder: Path) -> Path:
    """The embedded base, or a Qwen2 of random weights whose end token comes after some tens of tokens on average."""
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    from reasoner.models.loading import load_tokenizer
    from reasoner.models.resolve import resolve_model

    base = resolve_model("base", runs=folder)
    if not workload.width:
        return base
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=512,
        hidden_size=workload.width,
        intermediate_size=workload.width * 3,
        num_hidden_layers=workload.layers,
        num_attention_heads=workload.heads,
        num_key_value_heads=max(1, workload.heads // 4),
        max_position_embeddings=512,
        tie_word_embeddings=False,
        initializer_range=0.06,
        bos_token_id=None,
        eos_token_id=list(range(6)),
        pad_token_id=1,
    )
    model = Qwen2ForCausalLM(config)
    assert model.generation_config is not None
    model.generation_config.eos_token_id = list(range(6))
    model.save_pretrained(folder)
    load_tokenizer(base).save_pretrained(folder)
    return folder


def measure(workload: Workload, old: Path, args: argparse.Namespace) -> dict[str, list[dict[str, Any]]]:
    """Every round of each side, without the first, which is for warming up."""
    trees = {"before": (old, "transformers"), "now": (HERE, "transformers")}
    if find_spec("vllm") is not None:
        trees["vLLM"] = (HERE, "vllm")
    rounds: dict[str, list[dict[str, Any]]] = {name: [] for name in trees}
    with tempfile.TemporaryDirectory() as spare, ExitStack() as stack:
        folder = make_folder(workload, Path(spare))
        sides = {
            name: stack.enter_context(Side(tree, engine, workload, folder, args.threads))
            for name, (tree, engine) in trees.items()
        }
        for number in range(args.rounds + 1):
            for name, side in sides.items() if number % 2 else reversed(sides.items()):
                result = side.ask(number)
                print(f"round {number}, {name}: {result['seconds']:.2f} s", file=sys.stderr)
                if number:
                    rounds[name].append(result)
    return rounds


def row(name: str, rounds: dict[str, list[dict[str, Any]]]) -> str:
    before, now = rounds["before"], rounds["now"]
    lengths = sorted(len(ids) for ids in now[0]["ids"])
    pairs = [
        (a, b) for one, other in zip(before, now, strict=True) for a, b in zip(one["ids"], other["ids"], strict=True)
    ]
    spread = f"{lengths[0]} to {lengths[-1]}, median {lengths[len(lengths) // 2]}"
    ratio, busy = (
        statistics.median(a[key] / b[key] for a, b in zip(before, now, strict=True)) for key in ("seconds", "busy")
    )
    rates = [f"{_rate(rounds[side]):,.0f}" if side in rounds else "" for side in ("before", "now", "vLLM")]
    same = f"{sum(a == b for a, b in pairs):,} of {len(pairs):,}"
    return f"| {name} | {spread} | {' | '.join(rates)} | {ratio:.2f} | {busy:.2f} | {same} |"


def _rate(rounds: list[dict[str, Any]]) -> float:
    """Tokens a second."""
    return statistics.median(sum(map(len, each["ids"])) / each["seconds"] for each in rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit")
    parser.add_argument("--only", choices=WORKLOADS, help="this workload alone")
    parser.add_argument("--rounds", type=int, default=5, help="measured, after one to warm up [5]")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    args = parser.parse_args()
    from before import tree_of

    columns = ["tokens of a completion", "before, tokens/s", "now, tokens/s", "vLLM, tokens/s"]
    lines = ["| " + " | ".join(["model", *columns, "now / before", "the same in processor time", "same completions"])]
    lines = [lines[0] + " |", "|---|---|---:|---:|---:|---:|---:|---:|"]
    with tree_of(args.commit) as old:
        for name in [args.only] if args.only else WORKLOADS:
            lines.append(row(name, measure(WORKLOADS[name], old, args)))
    print("\n".join(lines))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(Workload(**json.loads(sys.argv[2])), sys.argv[3], Path(sys.argv[4]), int(sys.argv[5]))
    else:
        main()
