"""Parity of engine and trainer: the same tokens must have the same log-probability on both sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from transformers import PreTrainedModel

from reasoner.models.loading import token_logprobs
from reasoner.models.sharding import reshard
from reasoner.progress import Progress, SampleCount
from reasoner.rl.batch import collate
from reasoner.types import Engine, Prompt, RolloutGroup, SamplingParams
from verifiers import Score, Verdict

NUM_PROMPTS, NUM_SAMPLES, NUM_TOKENS = 4, 2, 16  # of a parity check during training
_UNGRADED = Score(reward=0.0, parts={}, verdict=Verdict.NO_ANSWER)


def parity_check(
    engine: Engine,
    model: PreTrainedModel,
    prompts: Sequence[Prompt],
    sampling: SamplingParams,
    progress: Progress | None = None,
) -> float:
    """max_logprob_diff() over a few short completions of the first prompts, as during training."""
    short = replace(sampling, num_samples=NUM_SAMPLES, max_tokens=NUM_TOKENS)
    return max_logprob_diff(engine, model, prompts[:NUM_PROMPTS], short, progress)


@torch.no_grad()
def max_logprob_diff(
    engine: Engine,
    model: PreTrainedModel,
    prompts: Sequence[Prompt],
    sampling: SamplingParams,
    progress: Progress | None = None,
) -> float:
    """Largest |log-probability of the engine - of the model| over newly sampled tokens, in nats.

    A difference far above rounding (1e-4 in float32, some 1e-1 in bfloat16) means stale weights or another temperature.
    """
    samples = SampleCount(progress or Progress(), len(prompts) * sampling.num_samples)
    completions = engine.generate(
        prompts, sampling, [list(range(sampling.num_samples)) for _ in prompts], on_decode_step=samples.on_decode_step
    )
    groups = [RolloutGroup(p, c, (_UNGRADED,) * len(c)) for p, c in zip(prompts, completions, strict=True)]
    batch = collate(groups).to(model.device)
    logp, _ = token_logprobs(
        model,
        batch.prompt_ids,
        batch.prompt_lengths,
        batch.prompt_of,
        batch.completion_ids,
        batch.lengths,
        temperature=sampling.temperature,
    )
    reshard(model)
    return float((logp - batch.sampler_logprobs).abs().max())
