"""Our side of bench/step.py, a process of its own: the parts of reasoner.trainer.train's loop on a given workload."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor
from workloads import END, Meter, Workload, peak, resident, size_of

from data import load
from reasoner.config.algorithm import AlgoConfig
from reasoner.config.learning import OptimConfig
from reasoner.config.schema import Config, DataConfig, EngineConfig, SamplingConfig
from reasoner.inference import vllm_engine as sampler
from reasoner.inference.factory import make_engine
from reasoner.models.loading import load_policy, load_tokenizer
from reasoner.models.lora import policy_state
from reasoner.rl.algorithms import resolve_algorithm
from reasoner.rl.batch import collate
from reasoner.rollouts.prompts import load_template, render
from reasoner.rollouts.seeds import sample_seed
from reasoner.runtime import setup_torch
from reasoner.trainer.train import train_step
from reasoner.trainer.trainer import Trainer
from reasoner.types import Prompt, RolloutGroup, SamplingParams
from verifiers import VerifierPool


def worker(workload: Workload, folder: Path, micro_batch_tokens: int) -> Callable[[int], dict[str, object]]:
    """A function that makes a step and tells of it."""
    cfg = Config(
        algo=AlgoConfig(group_size=workload.group, beta=workload.beta, loss_aggregation="sequence"),
        data=DataConfig(prompts_per_step=workload.prompts),
        sampling=SamplingConfig(max_tokens=workload.longest),
        optim=OptimConfig(micro_batch_tokens=micro_batch_tokens, warmup_steps=0),
        engine=EngineConfig(name="vllm"),
    )
    import vllm  # noqa: F401  its import is no part of what the step needs

    device = setup_torch(threads=cfg.threads, seed=cfg.seed)
    before = resident()
    tokenizer = load_tokenizer(folder)
    policy = load_policy(folder, device=device)
    reference = load_policy(folder, device=device).requires_grad_(False) if workload.beta else None
    weights = size_of(policy, reference)
    trainer = Trainer(policy, reference, resolve_algorithm(cfg.algo), cfg)
    asked = replace(load_template("r1-zero"), stop=())
    prompts = [render(problem, asked, tokenizer) for problem in load("generated", limit=workload.prompts)]
    sampling = SamplingParams(num_samples=workload.group, max_tokens=workload.longest)
    engine = make_engine(cfg.engine, folder, max_model_len=512, seed=0)
    engine.update_weights(policy_state(trainer.model), version=0)
    pool = VerifierPool()
    sampler.sample_tokens = _forced(ends := {}, sampler.sample_tokens)

    def step(number: int) -> dict[str, object]:
        meter = Meter()
        seeds = _seeds(prompts, number, workload.group)
        lengths = iter(workload.lengths(number))
        ends.clear()
        ends.update(
            {
                seed: len(prompt.token_ids) + next(lengths)
                for prompt, own in zip(prompts, seeds, strict=True)
                for seed in own
            }
        )
        with meter.part("sampling"):
            drawn = engine.generate(prompts, sampling, seeds)
        with meter.part("grading"):
            rows = [(c.text, p.problem) for p, own in zip(prompts, drawn, strict=True) for c in own]
            graded = pool.score(rows, cfg.reward, extract=prompts[0].extract)
            scores = iter(
                [replace(score, reward=reward) for score, reward in zip(graded, workload.rewards(number), strict=True)]
            )
        groups = [RolloutGroup(p, own, tuple(next(scores) for _ in own)) for p, own in zip(prompts, drawn, strict=True)]
        with meter.part("sync"):
            engine.sleep(keeps_weights=False)
        with meter.part("logprobs"):
            batch = trainer.compute_logprobs(collate(groups))
        with meter.part("learning"):
            batch = trainer.compute_advantages(batch)
            told = train_step(trainer, batch)
        with meter.part("sync"):
            engine.wake_up()
            engine.update_weights(policy_state(trainer.model), version=number + 1)
        moving = int(batch.lengths[(batch.advantages != 0).any(dim=1) | (workload.beta > 0)].sum())
        return {
            "seconds": meter.seconds,
            "tokens": sum(len(c.token_ids) for own in drawn for c in own),
            "trained": moving,
            "scored": int(batch.lengths.sum()) if reference is not None else 0,
            "parameters": sum(p.numel() for p in policy.parameters()),
            "weights": weights,
            "above": peak() - before - weights,
            "peak": peak(),
            "moved": told["grad_norm"],
        }

    return step


def _seeds(prompts: Sequence[Prompt], step: int, group: int) -> list[list[int]]:
    return [[sample_seed(0, step, prompt.problem.id, j) for j in range(group)] for prompt in prompts]


def _forced(ends: dict[int, int], draw: Callable) -> Callable:
    """The engine's draw, with the end token at a given position of each row and nowhere else."""

    def forced(log_softmax: Tensor, seeds: Sequence[int], positions: Sequence[int]) -> Tensor:
        drawn = draw(log_softmax, seeds, positions)
        last = torch.tensor(
            [position + 1 >= ends.get(seed, 0) for seed, position in zip(seeds, positions, strict=True)]
        )
        return torch.where(last, END, drawn.where(drawn != END, END + 2))

    return forced
