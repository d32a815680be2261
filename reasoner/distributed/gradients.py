"""Sum of the ranks' gradients: one all-reduce an optimiser step, indifferent to which passes filled the gradients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import nn
from torch.distributed.tensor import DTensor

from reasoner.distributed.world import World

_BUCKET = 2**24  # values sent at once: bounds the memory of the copy

_GRADIENT = "the sum of the gradients"


@torch.no_grad()
def sum_gradients(parameters: Sequence[nn.Parameter], world: World) -> None:
    """Replace each gradient by its sum over the ranks. A parameter without a gradient on any rank stays without one, so
    that the optimiser leaves it alone as it does in a single process. The gradient of a sharded parameter is the sum
    already. A collective operation.
    """
    parameters = [parameter for parameter in parameters if not isinstance(parameter, DTensor)]
    if world.size == 1 or not parameters:
        return
    count = torch.tensor([parameter.grad is not None for parameter in parameters], dtype=torch.float32)
    world.sum_(count, _GRADIENT)
    trained = [parameter for parameter, ranks in zip(parameters, count.tolist(), strict=True) if ranks]
    for bucket in _buckets(trained):
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in bucket]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        world.sum_(flat, _GRADIENT)
        for parameter, part in zip(bucket, torch.split(flat, [p.numel() for p in bucket]), strict=True):
            total = part.view_as(parameter)  # a gradient keeps its own memory
            parameter.grad = total.clone() if parameter.grad is None else parameter.grad.copy_(total)


def _buckets(parameters: Sequence[nn.Parameter]) -> Iterator[list[nn.Parameter]]:
    """The parameters in order, in parts of at most _BUCKET values or of one parameter."""
    bucket: list[nn.Parameter] = []
    for parameter in parameters:
        if bucket and sum(p.numel() for p in bucket) + parameter.numel() > _BUCKET:
            yield bucket
            bucket = []
        bucket.append(parameter)
    if bucket:
        yield bucket
