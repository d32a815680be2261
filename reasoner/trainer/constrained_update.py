"""TRPO's update of the policy: from the gradient in its parameters to a step within a KL bound."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor
from torch.optim import Optimizer

from reasoner.models.output_layer import OutputLayer
from reasoner.models.recompute import store_activations
from reasoner.rl.batch import Batch
from reasoner.rl.fisher import FisherProduct
from reasoner.rl.passes import ModelPasses, own_rows
from reasoner.rl.policy_loss import PolicyLoss
from reasoner.rl.trust_region import constrained_step


def constrained_update(
    optimizer: Optimizer, policy_loss: PolicyLoss, batch: Batch, delta: float
) -> tuple[float, dict[str, float]]:
    """Take TRPO's step from the gradient that the parameters hold, and clear it. Returns (norm of the gradient, metrics
    of the step). If the norm is 0 or not finite, nothing is changed, and there are none.

    `delta` bounds KL(old || new) of the batch, in nats. The gradient is the sum over the ranks already.
    """
    passes, algo = policy_loss.passes, policy_loss.cfg.algo
    parameters = [p for p in passes.model.parameters() if p.requires_grad]
    gradient = torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).flatten() for p in parameters])
    optimizer.zero_grad()
    norm = gradient.norm()
    if not torch.isfinite(norm) or norm == 0:
        return float(norm), {}
    product = FisherProduct(
        [partial(_states, passes, rows) for rows in _fisher_rows(batch, algo.fisher_rows, passes)],
        OutputLayer.of(passes.model),
        parameters,
        temperature=passes.temperature or 1.0,
        damping=algo.damping,
        world=passes.world,
    )
    result = constrained_step(parameters, gradient, product, lambda: policy_loss.measure(batch), delta=delta)
    return float(norm), {"policy_kl": result.kl, "trust_region/step_fraction": result.share}


def _fisher_rows(batch: Batch, most: int, passes: ModelPasses) -> Iterator[Batch]:
    """This rank's share of at most `most` rows, evenly spread over the batch, in micro-batches with their prompts."""
    number, tokens = min(len(batch), most), passes.micro_batch_tokens
    index = torch.arange(number, device=batch.lengths.device) * len(batch) // number
    for _, block in batch.prompt_blocks(tokens, own_rows(batch, index, passes.world)):
        for _, rows in block.micro_batches(tokens):
            yield rows


def _states(passes: ModelPasses, rows: Batch) -> Tensor:
    """[K, H] last states before each of the rows' K tokens, with their graph, in float32 at least."""
    with store_activations(passes.model.base_model):
        states = passes.states(passes.encode(rows), rows)[rows.mask]
    return states.to(torch.promote_types(states.dtype, torch.float32))
