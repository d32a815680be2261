"""A process of bench/scaling.py: steps of the embedded base, alone or as one of two ranks, with the seconds of their
parts and of each collective operation.

The learning rate is 0: every step samples with the same weights, so that a rank and a process by itself have the same
completions of the same prompts to sample, grade and learn from.
"""

from __future__ import annotations

import json
import os
import pickle
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import torch
from workers import print_answer

from data import load, sample_indices
from reasoner.config.resolve import resolve
from reasoner.distributed.world import World, open_world
from reasoner.models.loading import context_length, load_tokenizer
from reasoner.models.resolve import resolve_model
from reasoner.rl.batch import collate
from reasoner.rl.token_stats import TokenStats
from reasoner.rollouts.prompts import load_template
from reasoner.runs import rollouts as store
from reasoner.runtime import setup_torch
from reasoner.trainer.components import build_trainer, open_generator, render_prompts
from reasoner.trainer.rollout_generator import RolloutGenerator
from reasoner.trainer.step_metrics import rollout_metrics, stored_advantages
from reasoner.trainer.train import train_step

T = TypeVar("T")
MEASURE = -1  # instead of the number of a step: see main()
_REPEATS = 7


@dataclass(frozen=True)
class Options:
    """What both processes do in a step."""

    prompts: int  # of each process
    group_size: int
    max_tokens: int
    engine: str


@dataclass(frozen=True)  # without slots: super() does not work in a dataclass with slots
class MeasuredWorld(World):
    """A world that records each collective operation: (what it gives, bytes of this rank, seconds waiting, seconds)."""

    calls: list[tuple[str, int, float, float]] = field(default_factory=list, compare=False)

    def sum_(self, tensor: torch.Tensor, waiting_for: str) -> None:
        with self._measured(waiting_for, tensor.numel() * tensor.element_size()):
            super().sum_(tensor, waiting_for)

    def gather(self, value: T, waiting_for: str) -> list[T]:
        size = len(pickle.dumps(value)) if self.size > 1 else 0
        with self._measured(waiting_for, size):
            return super().gather(value, waiting_for)

    @contextmanager
    def _measured(self, name: str, size: int) -> Iterator[None]:
        if self.size == 1:
            yield
            return
        start = time.monotonic()
        torch.distributed.barrier(group=self.group)
        ready = time.monotonic()
        yield
        self.calls.append((name, size, ready - start, time.monotonic() - ready))


class Laps:
    """Seconds by name."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def lap(self, name: str) -> Iterator[None]:
        start = time.monotonic()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - start


@contextmanager
def timed_engine(generator: RolloutGenerator, laps: Laps) -> Iterator[None]:
    """A block in which the calls of the engine are a lap of their own."""
    generate = generator.engine.generate

    def timed(*arguments: Any, **options: Any) -> Any:
        with laps.lap("sampling"):
            return generate(*arguments, **options)

    vars(generator.engine)["generate"] = timed
    try:
        yield
    finally:
        del vars(generator.engine)["generate"]


@contextmanager
def stepper(options: Options, share: int, world: MeasuredWorld) -> Iterator[Callable[[int], dict[str, Any]]]:
    """A function that makes the step of a number and returns its times, or for MEASURE those of the work for all rows,
    which every rank does (shared), or the first alone (files). `share`: the half of a step's prompts that a process by
    itself takes: 0 or 1, as the rank of that number.
    """
    values = {
        "model": "base", "engine.name": options.engine, "algo.group_size": options.group_size, "threads": 1,
        "data.prompts_per_step": options.prompts * world.size, "sampling.max_tokens": options.max_tokens,
    }  # fmt: skip
    cfg = resolve([("bench", values)]).config
    cfg = replace(cfg, optim=replace(cfg.optim, lr=0.0))
    device = setup_torch(threads=1, seed=0)
    folder = resolve_model("base", runs=Path("runs"))
    template, tokenizer = load_template(cfg.prompt.style), load_tokenizer(folder)
    paths = {"start_from": folder, "base": folder}
    trainer = build_trainer(cfg, tokenizer, **paths, device=device, world=world)
    prompts = render_prompts(load(cfg.data.train), cfg, template, tokenizer, context_length(trainer.policy))
    with (
        open_generator(cfg, prompts, template, trainer, model_folder=folder) as generator,
        tempfile.TemporaryDirectory() as work,
    ):
        (Path(work) / "rollouts").mkdir()

        def step(number: int) -> dict[str, Any]:
            world.calls.clear()
            laps, start = Laps(), time.monotonic()
            chosen = [prompts[i] for i in sample_indices(len(prompts), number, 2 * options.prompts, 0)]
            with laps.lap("generate"), timed_engine(generator, laps):
                groups = generator.sample(chosen if world.size > 1 else chosen[share::2], number)
            with generator.asleep():
                with laps.lap("shared"):
                    batch = collate(groups).to(device)
                with laps.lap("passes"):
                    batch = trainer.compute_logprobs(batch)
                with laps.lap("shared"):
                    batch = trainer.compute_advantages(batch)
                with laps.lap("passes"):
                    stats = TokenStats(keeps_tokens=True)
                    train_step(trainer, batch, stats)
                    trainer.free_gradients()
            with laps.lap("sync"):
                generator.update_weights(trainer.policy, version=number + 1)
            with laps.lap("shared"):
                rollout_metrics(groups)
            if world.is_first:
                with laps.lap("files"):
                    store.write_step(Path(work), 0, groups, stored_advantages(batch, []), stats.tokens)
            return {
                "total": time.monotonic() - start,
                "laps": laps.seconds,
                "calls": list(world.calls),
                "completions": sum(len(group.completions) for group in groups),
                "rollout_bytes": len(pickle.dumps(groups)),
                "gradient_bytes": 4 * sum(p.numel() for p in trainer.policy.parameters()),
            }

        def row_seconds() -> dict[str, list[tuple[int, float]]]:
            """(completions, median seconds) of the work for all rows, for the groups of a step once and four times."""
            groups = generator.sample([prompts[i] for i in range(options.prompts)], 0)
            times: dict[str, list[tuple[int, float]]] = {"shared": [], "files": []}
            for copies in (1, 4):
                many, laps = groups * copies, [Laps() for _ in range(_REPEATS)]
                batch = trainer.compute_logprobs(collate(many).to(device))
                for own in laps:
                    with own.lap("shared"):
                        collate(many)
                        batch = trainer.compute_advantages(batch)
                        rollout_metrics(many)
                    with own.lap("files"):
                        store.write_step(Path(work), 0, many, stored_advantages(batch, []), {})
                for name, points in times.items():
                    points.append((len(batch), statistics.median(own.seconds[name] for own in laps)))
            return times

        yield lambda number: row_seconds() if number == MEASURE else step(number)


def collective_seconds(world: World) -> dict[str, list[tuple[int, float]]]:
    """(bytes, median of some repetitions in seconds) of sums of tensors and of gathers of values, by kind."""
    times: dict[str, list[tuple[int, float]]] = {"sum": [], "gather": []}
    for size in (2**10, 2**20, 2**23):
        tensor, value = torch.zeros(size // 4), bytes(size)
        for kind, call in (
            ("sum", lambda t=tensor: World.sum_(world, t, "a sum")),
            ("gather", lambda v=value: World.gather(world, v, "values")),
        ):
            seconds = []
            for _ in range(_REPEATS):
                torch.distributed.barrier()
                start = time.monotonic()
                call()
                seconds.append(time.monotonic() - start)
            times[kind].append((size, statistics.median(seconds)))
    return times


def main(options: Options, rank: int, size: int, port: int) -> None:
    """Answer numbers from standard input: a step's number by its times, MEASURE by those of the collectives, or for a
    process by itself by those of the work for all rows.
    """
    if size > 1:
        os.environ |= {
            "RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(size),
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
        }  # fmt: skip
    with open_world() as own:
        world = MeasuredWorld(own.rank, own.size, own.local_rank, own.local_size)
        with stepper(options, rank, world) as step:
            while line := sys.stdin.readline():
                number = int(line)
                print_answer(collective_seconds(own) if number == MEASURE and size > 1 else step(number))


if __name__ == "__main__":
    main(Options(**json.loads(sys.argv[1])), *map(int, sys.argv[2:5]))
