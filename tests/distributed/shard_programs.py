"""What the tests of weights in shards run on the ranks of a world (tests.fixtures.ranks)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.distributed.tensor import DTensor
from transformers import PreTrainedModel

from reasoner.config.learning import LoraConfig
from reasoner.distributed.world import World
from reasoner.models.folder import BaseModel
from reasoner.models.lora import add_adapter, load_weights, policy_state
from reasoner.models.sharding import host_state
from reasoner.rl.algorithms import resolve_algorithm
from reasoner.trainer import checkpoint
from reasoner.trainer.checkpoint_writer import CheckpointWriter
from reasoner.trainer.metrics_logger import MetricsLogger
from reasoner.trainer.parity import parity_check
from reasoner.trainer.rollout_generator import RolloutGenerator
from reasoner.trainer.run import TrainingRun
from reasoner.trainer.shutdown import GracefulShutdown
from reasoner.trainer.snapshot import snapshot
from reasoner.trainer.trackers import Tracking
from reasoner.trainer.train import train_step
from reasoner.trainer.trainer import Trainer
from reasoner.trainer.validation import Validator
from reasoner.types import Completion, EngineUnavailableError, SamplingParams
from tests.distributed.programs import gradients
from tests.fixtures.tiny import tiny_model, tiny_tokenizer
from tests.fixtures.toys import config, random_groups
from verifiers import VerifierPool


def shards(world: World, cases: Mapping[str, Sequence[tuple[str, str]]], folder: Path) -> dict[str, tuple[Any, ...]]:
    """For each way of holding the weights: (gradients() of its cases, checkpoint_and_resume(), adapter_checkpoint(),
    critic_from_reward_model()).
    """
    return {
        weights: (
            gradients(world, own, weights),
            checkpoint_and_resume(world, weights, folder / weights),
            adapter_checkpoint(world, weights, folder / weights / "adapter") if find_spec("peft") else {},
            critic_from_reward_model(world, weights),
        )
        for weights, own in cases.items()
    }


def toy_trainer(world: World, weights: str) -> Trainer:
    """A trainer with a critic, a reference that follows the policy, and gradients that are clipped."""
    cfg = config(name="ppo", beta=0.1, ref_sync_steps=1)
    cfg = replace(cfg, optim=replace(cfg.optim, sharding=weights, max_grad_norm=1e-3))
    policy, reference = (tiny_model(vocabulary=61, width=32, layers=2, seed=seed) for seed in (0, 5))
    return Trainer(policy, reference, resolve_algorithm(cfg.algo), cfg, None, world)


def critic_from_reward_model(world: World, weights: str) -> dict[str, np.ndarray]:
    """Whole weights of a critic that starts from a reward model with more embeddings than its own."""
    trainer = toy_trainer(world, weights)
    assert trainer.critic is not None
    trainer.critic.start_from(toy_reward_model(), weight=0.5)
    return {name: tensor.numpy().copy() for name, tensor in host_state(trainer.critic.own.state_dict()).items()}


def toy_reward_model() -> PreTrainedModel:
    """A reward model of the policy's shape, with four more embeddings."""
    model = tiny_model(vocabulary=65, width=32, layers=2, seed=7)
    model.score = nn.Linear(32, 1)
    nn.init.ones_(model.score.weight)
    return model


def toy_adapter_trainer(world: World, weights: str) -> Trainer:
    """A trainer of a LoRA adapter whose reference is the policy without it."""
    cfg = replace(config(beta=0.1), lora=LoraConfig(rank=4))
    policy = tiny_model(vocabulary=61, width=32, layers=2)
    add_adapter(policy, cfg.lora, seed=0)
    cfg = replace(cfg, optim=replace(cfg.optim, sharding=weights, recompute=True))
    base = BaseModel("tiny", "tiny", "0")
    return Trainer(policy, policy, resolve_algorithm(cfg.algo), cfg, None, world, base_model=base)


def toy_step(trainer: Trainer, seed: int) -> dict[str, float]:
    """A training step on random groups. Returns the metrics."""
    return train_step(trainer, trainer.compute_advantages(trainer.prepare_batch(random_groups(3, seed=seed))))


def checkpoint_and_resume(world: World, weights: str, folder: Path) -> dict[str, object]:
    """Bytes held, the weights for the engine, and the metrics of a second step, without and with a return to the
    checkpoint of the first one, which is left in the folder.
    """
    trainer, tokenizer = toy_trainer(world, weights), tiny_tokenizer()
    before = {name: tensor.clone() for name, tensor in policy_state(trainer.model)}
    toy_step(trainer, 0)
    state = trainer.optimizer.state_dict()["state"].values()
    own = [*trainer.model.parameters(), *(moments[name] for moments in state for name in ("exp_avg", "exp_avg_sq"))]
    num_bytes = sum((t.to_local() if isinstance(t, DTensor) else t).nbytes for t in own)
    path = checkpoint.save(folder, 1, trainer, tokenizer, keep=1, world=world)
    world.gather(None, "the checkpoint")
    after = dict(policy_state(trainer.model))
    resumed = toy_trainer(world, weights)
    load_weights(resumed.model, path)
    checkpoint.load(path, resumed)
    return {
        "bytes": num_bytes,
        "unmoved": [name for name in before if torch.equal(before[name], after[name])],
        "is tied": torch.equal(after["lm_head.weight"], after["model.embed_tokens.weight"]),
        "state": {name: tensor.numpy() for name, tensor in after.items()},
        "continued": toy_step(trainer, 1),
        "resumed": toy_step(resumed, 1),
        "gap": max(
            float((one - other).abs().max())
            for (_, one), (_, other) in zip(policy_state(trainer.model), policy_state(resumed.model), strict=True)
        ),
    }


def failed_part(world: World, folder: Path) -> None:
    """Write a checkpoint of which the last rank cannot write its part."""
    trainer = toy_trainer(world, "sharded")
    state = snapshot(trainer)
    if world.rank == world.size - 1:
        state = replace(state, optimizer={"a moment": "no tensor"})
    checkpoint.save(folder, 0, trainer, tiny_tokenizer(), state, keep=1, world=world)


class ToyEngine:
    """Answers every prompt with one token; without servers on the last rank, if `is_lost`."""

    def __init__(self, world: World, *, is_lost: bool) -> None:
        self.is_without_servers = is_lost and world.rank == world.size - 1

    def generate(self, prompts, sampling, seeds, on_group_done=None, on_decode_step=None):  # type: ignore[no-untyped-def]
        if self.is_without_servers:
            raise EngineUnavailableError("no inference server is left")
        return [tuple(Completion("", (7,), (-1.0,), "stop", 0) for _ in own) for own in seeds]


def lost_servers(world: World, weights: str, folder: Path) -> tuple[float, str, str]:
    """(gap of a parity check, error of one whose engine is lost on the last rank, error of sampling after that). The
    run has done a step, which no checkpoint has.
    """
    trainer = toy_trainer(world, weights)
    toy_step(trainer, 0)
    prompts = [group.prompt for group in random_groups(3)]
    sampling = SamplingParams(num_samples=2)
    gap = parity_check(ToyEngine(world, is_lost=False), trainer.model, prompts, sampling, world=world)
    engine, errors = ToyEngine(world, is_lost=True), []
    with (
        MetricsLogger(folder, steps=2, start=0, world=world) as logger,
        VerifierPool() as pool,
        Tracking((), folder, {}, log=logger.log) as tracking,
        GracefulShutdown(logger.log, world) as shutdown,
    ):
        generator = RolloutGenerator(engine, pool, prompts, sampling, trainer.cfg, world=world)
        run = TrainingRun(
            cfg=trainer.cfg, run_dir=folder, base=folder, generator=generator,
            validator=Validator(generator, [], trainer.cfg, logger), heldout=[], tokenizer=tiny_tokenizer(),
            trainer=trainer, logger=logger, tracking=tracking, shutdown=shutdown, start=0,
            writer=CheckpointWriter(world),
        )  # fmt: skip

        def sample() -> None:
            with run.save_if_interrupted():
                world.stripe(prompts, lambda own: engine.generate(own, sampling, [[0]] * len(own)), "the samples")

        def check() -> None:
            parity_check(engine, trainer.model, prompts, sampling, world=world)

        for call in (check, sample):
            try:
                call()
            except RuntimeError as error:
                errors.append(f"{type(error).__name__}: {error}")
    return gap, *errors


def adapter_checkpoint(world: World, weights: str, folder: Path) -> dict[str, np.ndarray]:
    """Weights for the engine, the adapter added, of a policy that a checkpoint of two steps was loaded into."""
    trainer, resumed = toy_adapter_trainer(world, weights), toy_adapter_trainer(world, weights)
    for seed in (0, 1):
        toy_step(trainer, seed)
    path = checkpoint.save(folder, 2, trainer, tiny_tokenizer(), keep=1, world=world)
    world.gather(None, "the checkpoint")
    load_weights(resumed.model, path)
    checkpoint.load(path, resumed)
    return {name: tensor.numpy() for name, tensor in policy_state(resumed.model)}
