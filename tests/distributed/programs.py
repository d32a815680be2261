"""What the tests of this folder run on the ranks of a world (tests.fixtures.ranks)."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
import torch.distributed as dist
from torch.optim import Optimizer

from data import Problem
from reasoner.config.learning import CriticConfig, LoraConfig, RewardConfig, TeacherConfig
from reasoner.config.schema import DataConfig, EngineConfig, ValidationConfig
from reasoner.distributed.world import RunInterrupt, World
from reasoner.evals.sampling import Sampler, end_others, serve_first
from reasoner.inference.reward_model import RewardModel
from reasoner.models import compiled_layers
from reasoner.models.lora import add_adapter
from reasoner.models.sharding import whole
from reasoner.rl.algorithms import ALGORITHMS, resolve_algorithm
from reasoner.rl.batch import collate
from reasoner.rl.token_stats import TokenStats
from reasoner.rollouts.generate import RolloutPrefetcher
from reasoner.rollouts.reward_functions import RewardFunction
from reasoner.trainer.metrics_logger import MetricsLogger
from reasoner.trainer.resolve_run import resolve_new_run
from reasoner.trainer.rollout_generator import RolloutGenerator
from reasoner.trainer.run_stage import run_stage
from reasoner.trainer.train import train_step
from reasoner.trainer.trainer import Trainer
from reasoner.trainer.validation import Validator
from reasoner.types import Completion, Prompt, RolloutGroup, SamplingParams
from tests.fixtures.tiny import tiny_model
from tests.fixtures.toys import config, group, random_groups
from verifiers import VerifierPool


def in_turn(world: World, *functions: Callable[[World], Any]) -> list[Any]:
    """The result of each function(world): ranks are dear to start."""
    return [function(world) for function in functions]


def operations(world: World) -> dict[str, object]:
    """One of each collective operation."""
    tensor = torch.tensor([1.0 + world.rank, 2.0])
    world.sum_(tensor, "a sum")
    return {
        "place": (world.rank, world.size, world.local_rank, world.is_first),
        "sum": tensor.tolist(),
        "gather": world.gather(("rank", world.rank), "values"),
        "total": world.total(world.rank + 0.5, "a total"),
        "to first": world.gather(("rank", world.rank), "values of the first", to_first=True),
        "largest": world.largest(-world.rank, "a maximum"),
        "first": world.from_first(lambda: f"of rank {world.rank}", "a value"),
        "stripe": world.stripe(range(5), lambda own: [(item, world.rank) for item in own], "items"),
        "few": world.stripe(["one"], lambda own: own, "fewer items than ranks"),
    }


def two_threads(world: World) -> list[float]:
    """Sums in two threads at once, which start them in different orders on the two ranks."""
    beside, results = world.with_own_group(), [0.0, 0.0]

    def work(place: int, own: World) -> None:
        for number in range(50):
            tensor = torch.tensor([float(place * 1000 + number)])
            own.sum_(tensor, "a thread's sum")
            results[place] += float(tensor)

    thread = Thread(target=work, args=(1, beside))
    if world.rank:
        thread.start()
    work(0, world)
    if not world.rank:
        thread.start()
    thread.join()
    return results


def token_values(world: World) -> tuple[dict[int, dict[str, array[float]]], dict[str, float], float, int]:
    """Tokens, sums and largest gap of two rows of each rank, and the bytes that a rank sends to the others."""
    stats, num_bytes, gather = TokenStats(keeps_tokens=True), 0, dist.all_gather_object

    def counted_gather(values, value, group=None):  # type: ignore[no-untyped-def]
        nonlocal num_bytes
        num_bytes += len(pickle.dumps(value))
        gather(values, value, group=group)

    rows = torch.tensor([2 * world.rank, 2 * world.rank + 1])
    values = torch.arange(2000).view(2, 1000) / 3 + world.rank
    stats.record(rows, torch.tensor([1000, 500]), {"entropy": values})
    stats.add({"entropy": values.sum()}, gap_max=torch.tensor(float(world.rank)))
    with patch.object(dist, "all_gather_object", counted_gather):
        stats.combine(world)
    return stats.tokens, stats.sums, stats.gap_max, num_bytes


def failure_of_first(world: World) -> None:
    def fail() -> None:
        raise ValueError("the disk is full")

    world.from_first(fail, "a file")


def interrupt_of_last(world: World) -> None:
    def sample(own: Sequence[int]) -> Sequence[int]:
        if world.rank == world.size - 1:
            raise RunInterrupt(signal.SIGTERM)
        return own

    world.stripe(range(4), sample, "samples")


def slow_first(world: World) -> list[str]:
    """The first rank computes for longer than the time limit, in a world and in another thread's."""
    worlds = (world, world.with_own_group())
    return [own.from_first(lambda: time.sleep(1.5) or "a checkpoint", "the checkpoint") for own in worlds]


def fault_of_last(world: World) -> None:
    """The last rank fails while the others wait for it: to destroy its groups would wait for them, over NCCL."""
    dist.destroy_process_group = partial(sys.exit, "waits for the other ranks")
    if world.rank == world.size - 1:
        raise ValueError("the disk is full")
    world.gather(1, "the last rank")


def closed_engine(world: World, folder: Path) -> list[int]:
    """What the ranks exchange when the engine of each is closed."""
    from reasoner.inference.vllm_engine import VllmEngine  # which imports vLLM

    VllmEngine(folder, EngineConfig(), max_model_len=64, seed=0).close()
    return world.gather(world.rank, "values")


def absent_rank(world: World) -> None:
    """The last rank ends while the others wait for it."""
    if world.rank < world.size - 1:
        world.gather(1, "the gradient's sum")


def late_rank(world: World) -> None:
    """The last rank comes only when the others have given up."""
    if world.rank < world.size - 1:
        world.gather(1, "the gradient's sum")
    time.sleep(2)


# ------------------------------------------------------------------------------------------------ gradients

CASES: dict[str, dict[str, object]] = {name: {"name": name} for name in ALGORITHMS} | {
    "reference": {"name": "grpo", "beta": 0.1},
    "penalty in the reward": {"name": "reinforce_pp", "beta": 0.1},
    "minibatches and epochs": {"name": "grpo", "minibatches": 2, "epochs": 2},
    "micro-batches of few tokens": {"name": "dapo", "micro": 13},
    "entropy bonus": {"name": "dr_grpo", "entropy_coef": 0.01},
    "critic on the policy's backbone": {"name": "ppo", "critic_backbone": "shared"},
    "LoRA": {"name": "grpo", "lora": 4},
    "compiled": {"name": "grpo", "beta": 0.1, "compile": True},
    "LoRA recomputed": {"name": "grpo", "lora": 4, "recompute": True},
    "critic recomputed": {"name": "ppo", "recompute": True, "beta": 0.1},
    "reference that follows": {"name": "grpo", "beta": 0.1, "ref_sync_steps": 1, "micro": 13},
    "critic's minibatches": {"name": "ppo", "critic": {"minibatches": 3, "lam": 0.9}},
    "KL of a response": {"name": "rloo", "beta": 0.1, "kl_target": 1.0},
    "teacher": {"name": "grpo", "teacher": {"weight": 0.5}},
    "teacher over the vocabulary": {"name": "grpo", "micro": 13, "teacher": {"kl": "full", "weight": 0.5}},
    "teacher with prompts of its own": {"name": "dapo", "micro": 13, "teacher": {"kl": "full", "prompt": "longer"}},
    "adaptive penalty": {"epochs": 2, "beta": 0.1, "kl_target": 0.01},
}
_ROWS = [[7, 8, 9], [10, 11], [12], [13, 14, 15, 16]]
_GROUPS = {
    "six groups": random_groups(6),
    "fewer groups than ranks": random_groups(1, seed=3),
    "nothing moves": [group([5, 6], _ROWS, [1, 1, 1, 1]), group([5, 6, 7], _ROWS, [0, 0, 0, 0])],
    "one token each": [group([5, own], [[7], [8], [9], [10]], [1, 0, 0, own % 2]) for own in (3, 4, 5)],
    "zero variance beside": [*random_groups(2, seed=1), group([5, 6], _ROWS, [1, 1, 1, 1]), *random_groups(1, seed=2)],
}
GROUPS = tuple(_GROUPS)


def gradients(
    world: World, cases: Sequence[tuple[str, str]], weights: str = "replicated"
) -> list[tuple[list[np.ndarray], dict[str, float]]]:
    """([gradients of every optimiser step ..., weights at the end], metrics) of two training steps in float64, for each
    (case, groups), with optim.sharding.
    """
    return [_two_steps(world, CASES[case], _GROUPS[groups], weights) for case, groups in cases]


def _two_steps(
    world: World, changes: dict[str, object], groups: list[RolloutGroup], weights: str
) -> tuple[list[np.ndarray], dict[str, float]]:
    changes = dict(changes)
    lora, recompute = LoraConfig(rank=changes.pop("lora", 0)), changes.pop("recompute", False)
    compiles, compiled_layers.BACKEND = changes.pop("compile", False), "aot_eager"
    critic = CriticConfig(**changes.pop("critic", {}))
    own = changes.pop("teacher", None)
    teacher = tiny_model(vocabulary=60, width=48, layers=1, seed=6).double().requires_grad_(False) if own else None
    cfg = replace(config(**changes), lora=lora, critic=critic, teacher=TeacherConfig(**(own or {})))
    if cfg.teacher.prompt:
        prompts = [replace(own := one.prompt, teacher_ids=(7, 8, *own.token_ids, *own.token_ids)) for one in groups]
        groups = [replace(one, prompt=prompt) for one, prompt in zip(groups, prompts, strict=True)]
    cfg = replace(cfg, optim=replace(cfg.optim, sharding=weights, recompute=recompute, compile=compiles))
    model = tiny_model(vocabulary=60, width=32, layers=2)
    if lora.rank:
        add_adapter(model, lora, seed=0)
    reference = tiny_model(vocabulary=60, width=32, layers=2, seed=5).double() if cfg.algo.beta else None
    trainer = Trainer(model.double(), reference, resolve_algorithm(cfg.algo), cfg, None, world, teacher=teacher)
    results: list[np.ndarray] = []
    record_gradients(trainer.optimizer, results)
    if trainer.critic is not None:
        trainer.critic.head.double()
        record_gradients(trainer.critic.optimizer, results)
    for _ in range(2):
        is_process = trainer.algorithm.returns == "process"
        lengths = [len(completion.token_ids) for own in groups for completion in own.completions]
        rewards = [score.reward for own in groups for score in own.scores]
        ends = [[(length - 1, reward)] for length, reward in zip(lengths, rewards, strict=True)]
        batch = collate(groups, ends if is_process else None)
        stats = TokenStats(keeps_tokens=True)
        metrics = train_step(trainer, trainer.compute_advantages(trainer.compute_logprobs(batch)), stats)
        assert all(len(own["entropy"]) == lengths[row] for row, own in stats.tokens.items())
        assert world.is_first or not stats.tokens
    at_end = torch.cat([whole(parameter.detach()).flatten() for parameter in model.parameters()])
    rows = world.from_first(lambda: float(len(stats.tokens)), "the rows with values")
    return [*results, at_end.numpy()], metrics | {"rows with values": rows}


def record_gradients(optimizer: Optimizer, results: list[np.ndarray]) -> None:
    """Add the gradients to the results before each step of the optimiser. A parameter without one counts as NaN."""

    def record(*_: object) -> None:
        parameters = optimizer.param_groups[0]["params"]
        parts = [torch.full_like(p, torch.nan) if p.grad is None else p.grad for p in parameters]
        results.append(torch.cat([whole(part.detach()).flatten() for part in parts]).numpy())

    optimizer.register_step_pre_hook(record)


# ------------------------------------------------------------------------------------------------ training


def train_with_fault(world: World, values: dict[str, object], faulty_rank: int, calls_before: int) -> None:
    """Train with a reward function that raises on one rank, after it has been called so many times there."""
    calls = 0

    def reward(completions: list[str], **columns: object) -> list[float]:
        nonlocal calls
        calls += 1
        if world.rank == faulty_rank and calls > calls_before:
            raise ZeroDivisionError("a fault of the reward")
        return [0.0 for _ in completions]

    resolved, run_dir = world.from_first(lambda: resolve_new_run(values, origin="test"), "the settings")
    run_stage(resolved, run_dir, reward_functions=[RewardFunction("fault", reward, 1.0)], world=world)


class OneWord:
    """An engine whose answers depend on the seed alone and are correct once in four times."""

    name = "one word"
    accepts_adapter = False

    def generate(self, prompts, sampling, seeds, on_group_done=None, on_decode_step=None):  # type: ignore[no-untyped-def]
        groups = []
        for place, own in enumerate(seeds):
            groups.append(tuple(self._completion(seed) for seed in own))
            if on_group_done is not None:
                on_group_done(place, groups[-1])
        return groups

    def sleep(self, *, keeps_weights: bool) -> None:
        """Nothing is released."""

    def wake_up(self) -> None:
        """Nothing was released."""

    def _completion(self, seed: int) -> Completion:
        answer = 1 if seed % 4 == 0 else 2
        return Completion(f"so </think> <answer> {answer} </answer>", (seed % 50 + 3,), (-1.0,), "stop", 0)


class FaultyStart:
    """Creates an engine that raises on rank 1; there is nothing to stop."""

    def __call__(self) -> OneWord:
        return OneWord() if os.environ["RANK"] == "0" else FaultyEngine()

    def close(self) -> None:
        pass


class FaultyEngine(OneWord):
    def generate(self, *arguments, **options):  # type: ignore[no-untyped-def]
        raise ZeroDivisionError("a fault of the engine")


def fault_ahead(world: World) -> None:
    """Meet in the main thread after the last rank's engine has failed in the thread that samples ahead."""
    engine = FaultyEngine() if world.rank == world.size - 1 else OneWord()
    prompts = [Prompt(Problem(f"p/{n}", "?", "1", "sums", "train"), "?", "", (n + 3,)) for n in range(4)]
    cfg = replace(config(), data=DataConfig(prompts_per_step=2))
    with VerifierPool(1) as pool, RolloutPrefetcher() as prefetcher:
        own, sampling = world.with_own_group(), SamplingParams(num_samples=2)
        generator = RolloutGenerator(engine, pool, prompts, sampling, cfg, prefetcher=prefetcher, world=own)
        with generator.prefetching(range(1, 2)):
            pass
        prefetcher.wait()
        world.gather(None, "the end of the step before")
        generator.generate(1)


def evaluation_with_fault(world: World) -> None:
    """Sample responses to three prompts."""
    if not world.is_first:
        serve_first(world)
        return
    prompts = [Prompt(Problem(f"p/{n}", "?", "1", "sums", "train"), "?", "", (n + 3,)) for n in range(3)]
    with end_others(world):
        calls = [[(prompt, [("", 0, 1)]) for prompt in some] for some in (prompts[:2], prompts[2:])]
        Sampler(FaultyStart(), world)(calls, SamplingParams(num_samples=1), lambda counts: None)


def refills(world: World, steps: int, num_problems: int = 40) -> list[tuple[list[str], list[str], list[list[int]]]]:
    """(problems of the groups, of the replaced groups, seeds' tokens) of steps with dynamic sampling."""
    problems = [Problem(f"p/{n}", f"What is {n}?", "1", "sums", "train") for n in range(num_problems)]
    prompts = [Prompt(problem, "?", "<think>", (n + 3,)) for n, problem in enumerate(problems)]
    cfg = replace(config(name="dapo"), data=DataConfig(prompts_per_step=5))
    with VerifierPool(1) as pool:
        generator = RolloutGenerator(OneWord(), pool, prompts, SamplingParams(num_samples=2), cfg, world=world)
        rollouts = [generator.generate(step) for step in range(steps)]
    return [
        (
            [group.prompt.problem.id for group in step.groups],
            [group.prompt.problem.id for group in step.replaced],
            [[completion.token_ids[0] for completion in group.completions] for group in step.all],
        )
        for step in rollouts
    ]


class TogetherEngine(OneWord):
    """What a call samples together decides which of its answers are correct, as it decides a real engine's rounding."""

    def generate(self, prompts, sampling, seeds, on_group_done=None, on_decode_step=None):  # type: ignore[no-untyped-def]
        together = sum(map(sum, seeds))
        return super().generate(prompts, sampling, [[seed + together for seed in own] for own in seeds])


def validations(world: World, folder: Path) -> None:
    """Write evals.jsonl of a validation: calls of two, two and one problem, and a greedy one of all."""
    problems = [Problem(f"p/{n}", f"What is {n}?", "1", "sums", "train") for n in range(5)]
    prompts = [Prompt(problem, "?", "<think>", (n + 3,)) for n, problem in enumerate(problems)]
    cfg = replace(config(), validation=ValidationConfig(samples=200))
    with VerifierPool(1) as pool, MetricsLogger(folder, steps=1, start=0, world=world) as logger:
        generator = RolloutGenerator(TogetherEngine(), pool, prompts, SamplingParams(num_samples=1), cfg, world=world)
        Validator(generator, prompts, cfg, logger).validate(0)


def model_scores(world: World, folder: Path) -> list[list[float]]:
    """The scores of a reward model for the completions of a step, by group."""
    problems = [Problem(f"p/{n}", f"What is {n}?", "1", "sums", "train") for n in range(20)]
    prompts = [Prompt(problem, "?", "<think>", (n + 3, n + 4)) for n, problem in enumerate(problems)]
    cfg = replace(config(), data=DataConfig(prompts_per_step=5), reward=RewardConfig(model="rm"))
    models = {"rm": RewardModel(folder, device=torch.device("cpu"), dtype="float32", micro_batch_tokens=10)}
    sampling = SamplingParams(num_samples=3)
    with VerifierPool(1) as pool:
        generator = RolloutGenerator(OneWord(), pool, prompts, sampling, cfg, reward_models=models, world=world)
        groups = generator.generate(0).groups
    return [[score.parts["model:rm"] for score in group.scores] for group in groups]
