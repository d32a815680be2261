"""The step of an optimiser, and its state by name for a checkpoint."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from torch.optim import Optimizer

from reasoner.models.sharding import shard_like, whole

_MOMENTS = ("exp_avg", "exp_avg_sq")


@torch.no_grad()
def clip_gradients(parameters: Iterable[nn.Parameter], max_norm: float) -> Tensor:
    """Scale the gradients so that the L2 norm of all together is at most `max_norm`. Returns the norm before.

    The norm of sharded gradients is that over all ranks: a collective operation.
    """
    own = [parameter for parameter in parameters if parameter.grad is not None]
    parts = [[p for p in own if isinstance(p, DTensor) is is_shard] for is_shard in (True, False)]
    if not parts[0]:
        total: Tensor = nn.utils.clip_grad_norm_(own, max_norm)
        return total
    norms = [whole(nn.utils.get_total_norm([cast(Tensor, p.grad) for p in part])) for part in parts if part]
    norm: Tensor = torch.stack(norms).norm()
    for part in parts:
        nn.utils.clip_grads_with_norm_(part, max_norm, norm)
    return norm


def step_optimizer(optimizer: Optimizer, lr: float) -> None:
    """Take one step at the learning rate."""
    for group in optimizer.param_groups:
        group["lr"] = lr
    optimizer.step()


def optimizer_state(optimizer: Optimizer, parameters: Sequence[tuple[str, nn.Parameter]]) -> dict[str, Tensor]:
    """Optimiser state of each parameter by the name "<parameter>.<state>", for a checkpoint."""
    names, state = [name for name, _ in parameters], optimizer.state_dict()["state"]
    return {f"{names[i]}.{key}": value.contiguous() for i, own in state.items() for key, value in own.items()}


def load_optimizer_state(
    optimizer: Optimizer, parameters: Sequence[tuple[str, nn.Parameter]], tensors: Mapping[str, Tensor]
) -> None:
    """Replace the optimiser's state by what optimizer_state() returned, in whole tensors. A parameter without saved
    state starts fresh.
    """
    state = optimizer.state_dict() | {"state": {}}
    for index, (name, parameter) in enumerate(parameters):
        own: dict[str, Any] = {}
        for key in ("step", *_MOMENTS):
            if f"{name}.{key}" in tensors:
                value = tensors[f"{name}.{key}"].float()
                own[key] = value if key == "step" else shard_like(value, parameter)
        if own:
            state["state"][index] = own
    optimizer.load_state_dict(state)
