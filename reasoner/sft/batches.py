"""Batches of supervised examples, and the gradient of their negative log-likelihood.

Shapes: N rows (examples), T completion positions. Examples with the same prompt share it, as the completions of a group
do: it is computed once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from data import sample_indices
from reasoner.models.loading import PromptCache
from reasoner.rl.batch import Batch, padded
from reasoner.rl.microbatches import OnMicrobatch, backward_microbatches, iterate_microbatches
from reasoner.rl.model_passes import ModelPasses
from reasoner.sft.examples import Example


def collate_examples(examples: Sequence[Example]) -> Batch:
    """Collate examples into a batch, in order. Its weights average over all completion tokens of the batch."""
    prompts = list(dict.fromkeys(example.prompt_ids for example in examples))
    place = {prompt: i for i, prompt in enumerate(prompts)}
    completions = [example.completion_ids for example in examples]
    lengths = torch.tensor([len(ids) for ids in completions])
    completion_ids = padded(completions).long()
    mask = torch.arange(completion_ids.shape[1]) < lengths[:, None]
    zeros = torch.zeros(mask.shape)
    return Batch(
        prompt_ids=padded(prompts, left=True).long(),
        prompt_lengths=torch.tensor([len(prompt) for prompt in prompts]),
        prompt_of=torch.tensor([place[example.prompt_ids] for example in examples]),
        completion_ids=completion_ids,
        lengths=lengths,
        truncated=torch.zeros(len(examples), dtype=torch.bool),
        row_index=torch.arange(len(examples)),
        rewards=torch.zeros(len(examples)),
        sampler_logprobs=zeros,
        advantages=zeros,
        weights=mask / lengths.sum(),
    )


def examples_of_step(examples: Sequence[Example], step: int, rows: int, seed: int) -> list[Example]:
    """The examples of a training step: a pure function of (seed, step), each example once in an epoch."""
    return [examples[i] for i in sample_indices(len(examples), step, rows, seed)]


@dataclass(slots=True)
class Likelihood:
    """Sums over the completion tokens of a batch, in nats."""

    nll: float = 0.0  # negative log-likelihood
    entropy: float = 0.0
    tokens: int = 0

    def add(self, logprobs: Tensor, entropy: Tensor, mask: Tensor) -> None:
        """Add [N, T] log-probabilities and entropies."""
        self.nll -= float((logprobs.detach() * mask).sum())
        self.entropy += float((entropy.detach() * mask).sum())
        self.tokens += int(mask.sum())

    @property
    def loss(self) -> float:
        """Mean negative log-likelihood per token."""
        return self.nll / max(1, self.tokens)

    @property
    def mean_entropy(self) -> float:
        """Mean entropy of the next-token distributions."""
        return self.entropy / max(1, self.tokens)


def backward_likelihood(passes: ModelPasses, batch: Batch, on_microbatch: OnMicrobatch | None = None) -> Likelihood:
    """Accumulate the gradient of -(weights * log p).sum() in the parameters. Returns the sums of the batch."""
    likelihood = Likelihood()

    def loss(prompts: PromptCache, rows: Batch) -> Tensor:
        logprobs, entropy = passes.logprobs(passes.states(prompts, rows), rows)
        likelihood.add(logprobs, entropy, rows.mask)
        return -(rows.weights * logprobs).sum()

    index, tokens = torch.arange(len(batch), device=batch.lengths.device), passes.micro_batch_tokens
    backward_microbatches(batch, index, passes.encode, loss, tokens=tokens, on_microbatch=on_microbatch)
    return likelihood


@torch.no_grad()
def batch_likelihood(passes: ModelPasses, batch: Batch) -> Likelihood:
    """The sums of a batch, without gradient."""
    likelihood = Likelihood()
    for _, prompts, rows in iterate_microbatches(batch, passes.encode, tokens=passes.micro_batch_tokens):
        likelihood.add(*passes.logprobs(passes.states(prompts, rows), rows), rows.mask)
    return likelihood
