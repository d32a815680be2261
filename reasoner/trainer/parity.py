"""Parity of engine and trainer: the same tokens must have the same log-probability on both sides.

The trainer computes in the engine's precision (`dtype`). An engine in bfloat16 has rounded weights, and steps that are
smaller than its rounding are lost in it until they add up: the float32 weights themselves may be nats away from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor
from transformers import PreTrainedModel

from reasoner.distributed.world import ALONE, World
from reasoner.models.loading import token_logprobs
from reasoner.models.sharding import reshard
from reasoner.progress import Progress, SampleCount
from reasoner.rl.batch import collate
from reasoner.rl.passes import compute_precision
from reasoner.types import Engine, Prompt, RolloutGroup, SamplingParams
from verifiers import Score, Verdict

NUM_PROMPTS, NUM_SAMPLES, NUM_TOKENS = 4, 2, 16  # of a parity check during training
_UNGRADED = Score(reward=0.0, parts={}, verdict=Verdict.NO_ANSWER)


def parity_check(
    engine: Engine,
    model: PreTrainedModel,
    prompts: Sequence[Prompt],
    sampling: SamplingParams,
    dtype: str = "float32",
    world: World = ALONE,
) -> float:
    """The largest |log-probability of the engine - of the model|, in nats, over a few short completions of the first
    prompts, as during training: that of all ranks' engines. A collective operation. A SharedError of an engine is
    raised on every rank, before the model's pass.
    """
    short = replace(sampling, num_samples=NUM_SAMPLES, max_tokens=NUM_TOKENS)

    def sample_own(_: Sequence[int]) -> list[list[RolloutGroup]]:
        return [sample(engine, prompts[:NUM_PROMPTS], short)]

    groups_of_rank = world.stripe(range(world.size), sample_own, "the completions of the parity check")
    sampled, own = logprobs_of(groups_of_rank[world.rank], model, sampling.temperature, dtype)
    return world.largest(float((own - sampled).abs().max()), "the parity check")


def max_logprob_diff(
    engine: Engine,
    model: PreTrainedModel,
    prompts: Sequence[Prompt],
    sampling: SamplingParams,
    dtype: str = "float32",
    progress: Progress | None = None,
) -> float:
    """Largest |log-probability of the engine - of the model| over newly sampled tokens, in nats.

    A difference far above rounding (1e-4 in float32, some 1e-1 in bfloat16) means stale weights or another temperature.
    """
    groups = sample(engine, prompts, sampling, progress)
    sampled, own = logprobs_of(groups, model, sampling.temperature, dtype)
    return float((own - sampled).abs().max())


def sample(
    engine: Engine, prompts: Sequence[Prompt], sampling: SamplingParams, progress: Progress | None = None
) -> list[RolloutGroup]:
    """Completions of the prompts, which are not graded."""
    samples = SampleCount(progress or Progress(), len(prompts) * sampling.num_samples)
    completions = engine.generate(
        prompts, sampling, [list(range(sampling.num_samples)) for _ in prompts], on_decode_step=samples.on_decode_step
    )
    return [RolloutGroup(p, c, (_UNGRADED,) * len(c)) for p, c in zip(prompts, completions, strict=True)]


@torch.no_grad()
def logprobs_of(
    groups: Sequence[RolloutGroup], model: PreTrainedModel, temperature: float, dtype: str = "float32"
) -> tuple[Tensor, Tensor]:
    """(log-probabilities of the engine, of the model) of every token of the groups, in nats."""
    batch = collate(groups).to(model.device)
    with compute_precision(model.device, "float32" if dtype == "float32" else "bfloat16"):
        own, _ = token_logprobs(
            model,
            batch.prompt_ids,
            batch.prompt_lengths,
            batch.prompt_of,
            batch.completion_ids,
            batch.lengths,
            temperature=temperature,
        )
    reshard(model)
    return batch.sampler_logprobs[batch.mask], own[batch.mask]
