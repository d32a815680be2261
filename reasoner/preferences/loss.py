"""The Bradley-Terry loss of a reward model (Ouyang et al. 2022, InstructGPT, equation 1), a function of scores, and its
gradient over a batch of compared completions.

P(i preferred to j) = sigmoid(r_i - r_j). All pairs of a prompt are one element of the batch: the loss is the mean over
prompts of the mean over a prompt's pairs, and a completion is scored once however many pairs it is in.

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
from torch.nn.functional import logsigmoid

from reasoner.preferences.dataset import Comparison
from reasoner.rl.batch import Batch, collate_rows
from reasoner.rl.passes import OnMicrobatch, RewardModelPasses


@dataclass(frozen=True, slots=True, eq=False)  # tensors do not compare to one bool
class Pairs:
    """Preferences between the N completions of a batch, on the CPU."""

    chosen: Tensor  # [M] int64, index of the preferred completion
    rejected: Tensor  # [M] int64
    margins: Tensor  # [M] float64, subtracted from the difference of the scores; 0 for none
    weights: Tensor  # [M] float64, 1 / (prompts of the batch x pairs of the prompt)


def bradley_terry_loss(scores: Tensor, pairs: Pairs, *, center: float = 0.0) -> Tensor:
    """[N] scores -> the weighted sum over the pairs of -log sigmoid(r_chosen - r_rejected - margin), in nats.

    `center` adds center * (r_chosen + r_rejected)^2 for each pair, which holds the scores' mean near 0 (Eisenstein et
    al. 2023); the loss alone does not decide it.
    """
    chosen, rejected = scores[pairs.chosen].double(), scores[pairs.rejected].double()
    losses = -logsigmoid(chosen - rejected - pairs.margins)
    if center:
        losses = losses + center * (chosen + rejected) ** 2
    return (pairs.weights * losses).sum()


def loss_and_score_gradients(scores: Tensor, pairs: Pairs, *, center: float = 0.0) -> tuple[Tensor, Tensor]:
    """[N] scores without gradient -> (the loss, its gradients [N] with respect to the scores)."""
    leaf = scores.detach().cpu().clone().requires_grad_()
    with torch.enable_grad():
        loss = bradley_terry_loss(leaf, pairs, center=center)
    (gradients,) = torch.autograd.grad(loss, leaf)
    return loss.detach(), gradients.to(scores.device)


def share_in_order(scores: Tensor, pairs: Pairs) -> float:
    """Share of the pairs, by their weights, whose chosen completion has the higher score; equal scores count half."""
    difference = scores[pairs.chosen] - scores[pairs.rejected]
    ordered = (difference > 0).double() + 0.5 * (difference == 0).double()
    return float((pairs.weights * ordered).sum() / pairs.weights.sum())


def collate_comparisons(comparisons: Sequence[Comparison]) -> tuple[Batch, Pairs]:
    """Collate the comparisons' completions, each once, and their pairs. Every comparison has the same total weight."""
    batch = collate_rows([(one.prompt_ids, text.token_ids) for one in comparisons for text in one.completions])
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


def backward_preferences(
    passes: RewardModelPasses,
    batch: Batch,
    pairs: Pairs,
    *,
    center: float = 0.0,
    on_microbatch: OnMicrobatch | None = None,
) -> tuple[float, Tensor]:
    """Accumulate the gradient of the batch's loss in the parameters. Returns the loss, in nats per pair, and the scores
    [N] that it was computed from.
    """
    scores = passes.all_scores(batch)
    loss, gradients = loss_and_score_gradients(scores, pairs, center=center)
    passes.backward(batch, gradients, on_microbatch)
    return float(loss), scores
