"""Batches of supervised examples, and the gradient of their negative log-likelihood.

Shapes: N rows (examples), T completion positions. Examples with the same prompt share it, as the completions of a group
do: it is computed once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import torch
from torch import Tensor

from data import sample_indices
from reasoner.distributed.world import World
from reasoner.models.fused_lm_head import split
from reasoner.models.loading import MAX_LOGITS, PromptCache
from reasoner.models.output_layer import OutputLayer
from reasoner.rl.batch import Batch, collate_rows
from reasoner.rl.passes import ModelPasses, OnMicrobatch, compute_precision
from reasoner.sft.examples import Example

Row = TypeVar("Row")


def collate_examples(examples: Sequence[Example]) -> Batch:
    """Collate examples into a batch, in order. Its weights average over all completion tokens of the batch."""
    batch = collate_rows([(example.prompt_ids, example.completion_ids) for example in examples])
    return replace(batch, weights=batch.mask / batch.lengths.sum())


@dataclass(slots=True)
class Likelihood:
    """Sums over the completion tokens of a batch, in nats."""

    nll: float = 0.0  # negative log-likelihood
    entropy: float = 0.0
    likeliest: int = 0  # tokens that are the model's likeliest at their place
    tokens: int = 0

    def add(self, passes: ModelPasses, prompts: PromptCache, rows: Batch) -> Tensor:
        """Add the rows. Returns the [N, T] log-probabilities of their tokens."""
        states = passes.states(prompts, rows)
        logprobs, entropy = passes.logprobs(states, rows)
        self.nll -= float((logprobs.detach() * rows.mask).sum())
        self.entropy += float((entropy.detach() * rows.mask).sum())
        self.likeliest += _num_likeliest(passes, states, rows)
        self.tokens += int(rows.mask.sum())
        return logprobs

    def total(self, world: World) -> Likelihood:
        """The sums over all ranks. A collective operation."""
        sums = [world.total(value, "likelihoods") for value in (self.nll, self.entropy, self.likeliest, self.tokens)]
        return Likelihood(sums[0], sums[1], int(sums[2]), int(sums[3]))

    @property
    def loss(self) -> float:
        """Mean negative log-likelihood per token."""
        return self.nll / max(1, self.tokens)

    @property
    def token_accuracy(self) -> float:
        """Share of the tokens that are the model's likeliest."""
        return self.likeliest / max(1, self.tokens)

    @property
    def mean_entropy(self) -> float:
        """Mean entropy of the next-token distributions."""
        return self.entropy / max(1, self.tokens)


def backward_likelihood(passes: ModelPasses, batch: Batch, on_microbatch: OnMicrobatch | None = None) -> Likelihood:
    """Accumulate the gradient of -(weights * log p).sum() in the parameters, each rank that of its own rows. Returns
    the sums of the whole batch. A collective operation.
    """
    likelihood = Likelihood()
    for prompts, rows in passes.gradient_microbatches(batch, on_microbatch=on_microbatch):
        loss = -(rows.weights * likelihood.add(passes, prompts, rows)).sum()
        loss.backward()  # type: ignore[no-untyped-call]
    return likelihood.total(passes.world)


@torch.no_grad()
def batch_likelihood(passes: ModelPasses, batch: Batch) -> Likelihood:
    """The sums of a batch, without gradient. A collective operation."""
    likelihood = Likelihood()
    for _, prompts, rows in passes.microbatches(batch):
        likelihood.add(passes, prompts, rows)
    return likelihood.total(passes.world)


@torch.no_grad()
def _num_likeliest(passes: ModelPasses, states: Tensor, rows: Batch) -> int:
    """Number of completion tokens that have the largest logit after the [N, T, H] states before them."""
    model = passes.model
    layer = OutputLayer.of(model)
    size = max(1, MAX_LOGITS // layer.num_ids)
    own, ids = states[rows.mask], rows.completion_ids[rows.mask]
    with compute_precision(model.device, passes.dtype, keeps_casts=True):
        hits = [(layer(own[part]).argmax(dim=1) == ids[part]).sum() for part in split(len(ids), size)]
    return int(torch.stack(hits).sum()) if hits else 0  # none in Batch.empty_row()


def rows_of_step(rows: Sequence[Row], step: int, *, num: int, epochs: int, seed: int) -> list[Row]:
    """The `num` rows of a training step: a pure function of (seed, step), each row once in an epoch. The last step has
    what is left of the last epoch.
    """
    num = min(num, len(rows))
    places = sample_indices(len(rows), step, num, seed)[: max(0, epochs * len(rows) - step * num)]
    return [rows[place] for place in places]


def num_steps(num_rows: int, *, rows: int, epochs: int) -> int:
    """Number of steps in which each row comes `epochs` times."""
    return -(-epochs * num_rows // min(rows, num_rows))
