"""Batches of compared completions, and the gradient of their Bradley-Terry loss in two passes.

The loss couples the completions of a prompt, which may lie in different micro-batches. So a first pass computes all
scores without gradient; the loss is differentiated with respect to the scores; and a second pass accumulates
sum_i (dL/dr_i) r_i, whose gradient is that of the loss. How rows are split into micro-batches cannot change it.

Shapes: N completions, M pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from reasoner.preferences.dataset import Comparison
from reasoner.preferences.loss import Pairs, loss_and_score_gradients
from reasoner.rl.batch import Batch, collate_rows
from reasoner.rl.microbatches import OnMicrobatch
from reasoner.rl.reward_model_passes import RewardModelPasses
from reasoner.sft.epochs import indices_of_step

Tokens = Sequence[int]


def collate_completions(prompts: Sequence[Tokens], completions: Sequence[Sequence[Tokens]]) -> Batch:
    """Collate prompts and the completions of each into a batch, in order. It holds token ids alone."""
    return collate_rows([(p, completion) for p, own in zip(prompts, completions, strict=True) for completion in own])


def collate_comparisons(comparisons: Sequence[Comparison]) -> tuple[Batch, Pairs]:
    """Collate the comparisons' completions, each once, and their pairs. Every comparison has the same total weight."""
    batch = collate_completions(
        [one.prompt_ids for one in comparisons], [[c.token_ids for c in one.completions] for one in comparisons]
    )
    chosen, rejected, margins, weights, first = [], [], [], [], 0
    for one in comparisons:
        for pair in one.pairs:
            chosen.append(first + pair.chosen)
            rejected.append(first + pair.rejected)
            margins.append(pair.margin)
            weights.append(1 / len(comparisons) / len(one.pairs))
        first += len(one.completions)
    indices = torch.tensor(chosen), torch.tensor(rejected)
    return batch, Pairs(*indices, *(torch.tensor(values, dtype=torch.float64) for values in (margins, weights)))


def comparisons_of_step(
    comparisons: Sequence[Comparison], step: int, *, prompts: int, epochs: int, seed: int
) -> list[Comparison]:
    """The comparisons of a training step: reasoner.sft.epochs."""
    return [comparisons[i] for i in indices_of_step(len(comparisons), step, rows=prompts, epochs=epochs, seed=seed)]


@dataclass(frozen=True, slots=True, eq=False)
class PreferenceLoss:
    """The loss of a batch, in nats per pair, and the scores that it was computed from."""

    loss: float
    scores: Tensor  # [N]


def backward_preferences(
    passes: RewardModelPasses,
    batch: Batch,
    pairs: Pairs,
    *,
    center: float = 0.0,
    on_microbatch: OnMicrobatch | None = None,
) -> PreferenceLoss:
    """Accumulate the gradient of the batch's Bradley-Terry loss in the parameters."""
    scores = passes.all_scores(batch)
    loss, gradients = loss_and_score_gradients(scores, pairs, center=center)
    passes.backward(batch, gradients, on_microbatch)
    return PreferenceLoss(float(loss), scores)
