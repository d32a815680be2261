"""Learning beside the matrix ceiling: `python bench/trainer_speed.py`. One update of each model, precision and size of
micro-batch in turns, the machine's matrix products in that precision measured before and after each; 6 N operations a
trained token, medians. Prints a table in Markdown.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from itertools import product
from pathlib import Path

import torch
from workloads import WORKLOADS, ceiling, make_model

from reasoner.config.learning import AlgoConfig, OptimConfig
from reasoner.config.schema import Config
from reasoner.models.loading import load_policy
from reasoner.models.resolve import resolve_model
from reasoner.rl.algorithms import resolve_algorithm
from reasoner.rl.batch import Batch
from reasoner.trainer.train import train_step
from reasoner.trainer.trainer import Trainer

PROMPTS, GROUP, PROMPT, RESPONSE = 16, 8, 60, 128  # the last two in tokens
MODELS = {"embedded base": None, "hidden 256, 6 layers": (256, 6), "hidden 384, 6 layers": (384, 6)}


def make_trainer(size: tuple[int, int] | None, folder: Path) -> Trainer:
    if size is None:
        folder = resolve_model("base", runs=Path("runs"))
    else:
        make_model(replace(WORKLOADS["equal"], width=size[0], layers=size[1]), folder)
    cfg = Config(algo=AlgoConfig(group_size=GROUP, beta=0.0), optim=OptimConfig(warmup_steps=0))
    return Trainer(load_policy(folder, device=torch.device("cpu")), None, resolve_algorithm(cfg.algo), cfg)


def make_batch() -> Batch:
    torch.manual_seed(0)
    rows = PROMPTS * GROUP
    return Batch(
        prompt_ids=torch.randint(2, 500, (PROMPTS, PROMPT)),
        prompt_lengths=torch.full((PROMPTS,), PROMPT),
        prompt_of=torch.arange(PROMPTS).repeat_interleave(GROUP),
        completion_ids=torch.randint(2, 500, (rows, RESPONSE)),
        lengths=torch.full((rows,), RESPONSE),
        missing_eos=torch.zeros(rows, dtype=torch.bool),
        row_index=torch.arange(rows),
        rewards=(torch.arange(rows) % 2).float(),
        correct=torch.arange(rows) % 2 == 1,
        sampler_logprobs=torch.full((rows, RESPONSE), -6.0),
        advantages=torch.zeros(rows, RESPONSE),
        weights=torch.ones(rows, RESPONSE),
    )


def measured(trainer: Trainer, batch: Batch, dtype: str, micro_batch_tokens: int) -> tuple[float, float]:
    """(tokens a second, share of the ceiling) of one update."""
    optim = replace(trainer.cfg.optim, dtype=dtype, micro_batch_tokens=micro_batch_tokens)
    trainer.cfg = replace(trainer.cfg, optim=optim)
    before, began = ceiling(dtype=dtype), time.perf_counter()
    train_step(trainer, batch)
    rate = batch.completion_ids.numel() / (time.perf_counter() - began)
    top = (before + ceiling(dtype=dtype)) / 2
    return rate, 6 * sum(p.numel() for p in trainer.policy.parameters()) * rate / top


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--updates", type=int, default=5, help="measured, after one to warm up [5]")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--dtypes", nargs="+", choices=("float32", "bfloat16"), default=["float32"], help="[float32]")
    parser.add_argument("--tokens", nargs="+", type=int, default=[1024, 2048, 4096], help="of a micro-batch")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    measurements: dict[tuple[str, str, int], list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        trainers = {name: make_trainer(size, Path(folder, name)) for name, size in MODELS.items()}
        batch = make_batch()
        ready = {
            name: trainer.compute_advantages(trainer.compute_logprobs(batch)) for name, trainer in trainers.items()
        }
        for turn in range(args.updates + 1):
            for name, trainer in trainers.items():
                for dtype, tokens in product(args.dtypes, args.tokens):
                    said = measured(trainer, ready[name], dtype, tokens)
                    print(f"{turn} {name} {dtype} {tokens}: {said[0]:,.0f} tokens/s, {said[1]:.0%}", file=sys.stderr)
                    if turn:
                        measurements.setdefault((name, dtype, tokens), []).append(said)
    print("| model | parameters | precision | micro-batches of | tokens a second | share of the ceiling |")
    print("|---|---:|---|---:|---:|---:|")
    for (name, dtype, tokens), all_said in measurements.items():
        rate, share = (statistics.median(column) for column in zip(*all_said, strict=True))
        size = sum(p.numel() for p in trainers[name].policy.parameters()) / 1e6
        print(f"| {name} | {size:.1f}M | {dtype} | {tokens:,} | {rate:,.0f} | {share:.0%} |")


if __name__ == "__main__":
    main()
