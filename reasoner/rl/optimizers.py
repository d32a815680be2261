"""AdamW with moments in float32 or in 8 bits, and its state by name for a checkpoint.

8 bits: torchao's AdamW8bit, with one scale for 256 values (Dettmers et al. 2022, "8-bit Optimizers via Block-wise
Quantization"). Tensors of fewer than 4,096 values keep float32 moments.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from torch.optim import AdamW, Optimizer

from reasoner.models.sharding import shard_like, whole

_PARTS = ("codes", "scale", "qmap")  # of an 8-bit moment: codes, scale of each block, value of each code
_SIGNED = {"exp_avg": True, "exp_avg_sq": False}  # whether a moment can be negative


def make_adamw(
    parameters: Iterable[nn.Parameter],
    state_dtype: str,
    *,
    lr: float,
    weight_decay: float,
    betas: tuple[float, float] = (0.9, 0.999),
    fused: bool | None = None,
) -> Optimizer:
    """AdamW with moments in `optim.state_dtype`. `fused` applies to float32; 8 bits are computed by torchao."""
    if state_dtype == "float32":
        return AdamW(parameters, lr=lr, betas=betas, weight_decay=weight_decay, fused=fused)
    from torchao.optim import AdamW8bit  # an optional extra: trainer.preflight tells where it is missing

    optimizer: Optimizer = AdamW8bit(parameters, lr=lr, betas=betas, weight_decay=weight_decay)
    return optimizer


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
        if isinstance(group["lr"], Tensor):  # torchao's, which compiled code reads
            group["lr"].fill_(lr)
        else:
            group["lr"] = lr
    with _compilation(optimizer):
        optimizer.step()


def _compilation(optimizer: Optimizer) -> AbstractContextManager[object]:
    """Context that runs torchao's compiled step uncompiled on a CPU: there it would need a C++ compiler and, for each
    shape of a parameter, seconds in every run.
    """
    is_cpu = optimizer.param_groups[0]["params"][0].device.type == "cpu"
    if isinstance(optimizer, AdamW) or not is_cpu:
        return nullcontext()
    uncompiled: AbstractContextManager[object] = torch.compiler.set_stance("force_eager")
    return uncompiled


def optimizer_state(optimizer: Optimizer, parameters: Sequence[tuple[str, nn.Parameter]]) -> dict[str, Tensor]:
    """Optimiser state of each parameter by the name "<parameter>.<state>", for a checkpoint; of an 8-bit moment its
    parts, "<parameter>.<state>.<part>".
    """
    names, state = [name for name, _ in parameters], optimizer.state_dict()["state"]
    return {
        f"{names[i]}.{key}{part}": value.contiguous()
        for i, own in state.items()
        for key, whole in own.items()
        for part, value in _plain_tensors(whole)
    }


def _plain_tensors(value: Tensor) -> Iterator[tuple[str, Tensor]]:
    """(suffix of the name, tensor) of a state: itself, or the parts of an 8-bit moment."""
    if type(value) in (Tensor, DTensor):
        yield "", value
    else:
        yield from ((f".{part}", getattr(value, part)) for part in _PARTS)


def load_optimizer_state(
    optimizer: Optimizer, parameters: Sequence[tuple[str, nn.Parameter]], tensors: Mapping[str, Tensor]
) -> None:
    """Replace the optimiser's state by what optimizer_state() returned, in whole tensors. A parameter without saved
    state starts fresh.
    """
    state = optimizer.state_dict() | {"state": {}}
    for index, (name, parameter) in enumerate(parameters):
        own: dict[str, Any] = {}
        for key in ("step", *_SIGNED):
            if f"{name}.{key}" in tensors:
                value = tensors[f"{name}.{key}"].float()
                own[key] = value if key == "step" else shard_like(value, parameter)
            elif f"{name}.{key}.codes" in tensors:
                own[key] = _quantized({part: tensors[f"{name}.{key}.{part}"] for part in _PARTS}, _SIGNED[key])
        if own:
            state["state"][index] = own
    optimizer.load_state_dict(state)


def _quantized(parts: Mapping[str, Tensor], is_signed: bool) -> Tensor:
    """The 8-bit moment of these parts."""
    from torchao.optim.subclass_8bit import OptimState8bit

    moment: Tensor = OptimState8bit(*(parts[name] for name in _PARTS), is_signed, dtype=torch.float32)
    return moment
