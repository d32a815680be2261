"""How the ranks of a run hold a model: each the whole, or in shards by torch's FSDP2 (`fully_shard`).

| optim.sharding | a rank holds | collective operations |
|---|---|---|
| replicated | the whole model | the sum of the gradients, once an optimiser step |
| gathered | its shard; during a block of passes the whole weights and gradients | one gather and one sum a block |
| sharded | its shard, and the layers at work | for every layer in every pass |

The optimiser's state is sharded as the weights are. A pass here is not one forward and one backward of the whole model:
prompts and completions go through the backbone apart, and the output layer is read outside of it. Three consequences,
each of which would be silent: the backbone runs the hooks of the whole model (embedding, last norm and output layer,
which may be tied, are one group and would get no gradient); gradients are sums over the ranks, not means; and with
`sharded` all ranks run the same passes, those without rows left with a row without tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from types import MethodType
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard, register_fsdp_forward_method
from torch.distributed.tensor import DTensor, distribute_tensor
from transformers.modeling_layers import GradientCheckpointingLayer

from reasoner.distributed.world import ALONE, World
from reasoner.models.precision import states_in_float32
from reasoner.models.shard_on_load import take_shards

_GATHERS_BFLOAT16 = "_gathers_bfloat16"  # mark of a model


@dataclass(frozen=True, slots=True, eq=False)
class DistributedModel:
    """A model whose passes the ranks of `world` divide, and how they hold its weights."""

    model: nn.Module
    world: World = ALONE
    sharding: str = "replicated"  # or gathered, sharded

    @contextmanager
    def passes(self) -> Iterator[None]:
        """A block of passes through the model, during which its weights do not change. A collective operation.

        After the block the parameters are shards again, which have the gradients.
        """
        if self.sharding == "gathered":
            self._set_gradient_sync(False)
            for module in _shards(self.model):
                module.unshard()
        try:
            yield
        finally:
            if self.sharding == "gathered":
                self._set_gradient_sync(True)
            reshard(self.model)

    def sync_gradients(self) -> None:
        """Let the next backward pass of the block, which is its last, sum all gradients of the block over the ranks."""
        if self.sharding == "gathered":
            self._set_gradient_sync(True)

    def num_passes(self, own: Sequence[int]) -> list[int]:
        """The number of micro-batches of each of this rank's blocks of prompts -> the number that it has to run, with
        rows or without. A collective operation.
        """
        if self.sharding == "sharded":
            ranks = self.world.gather(list(own), "the number of micro-batches")
            return [max(counts) for counts in zip_longest(*ranks, fillvalue=0)]
        return list(own) or ([1] if self.sharding == "gathered" else [])  # one, in which gradients are summed

    def _set_gradient_sync(self, is_on: bool) -> None:
        assert isinstance(self.model, FSDPModule)
        self.model.set_requires_gradient_sync(is_on)
        self.model.set_reshard_after_backward(is_on)


def distribute(model: nn.Module, sharding: str, world: World, dtype: str = "float32") -> DistributedModel:
    """Hold the model as optim.sharding says, in place: optimisers and copies of its parameters are made afterwards,
    deep copies of it before. No effect on a model that is held so already. A single process has the whole model.
    Shards travel in the precision of the passes, `dtype`, and gradients are summed in float32.

    ValueError for a model whose layers transformers does not mark.
    """
    if sharding == "replicated" or world.size == 1:
        return DistributedModel(model, world)
    assert sharding in ("gathered", "sharded"), sharding
    if not isinstance(model, FSDPModule):
        _shard(model, sharding, world, dtype)
    return DistributedModel(model, world, sharding)


def _shard(model: nn.Module, sharding: str, world: World, dtype: str) -> None:
    layers = [module for module in model.modules() if isinstance(module, GradientCheckpointingLayer)]
    if not layers:
        raise ValueError(
            f"optim.sharding is {sharding!r}, but {type(model).__name__} has no layers that can be sharded"
        )
    mesh, policy = init_device_mesh(next(model.parameters()).device.type, (world.size,)), _mixed_precision(model, dtype)
    loaded = take_shards(model)
    for layer in layers:
        fully_shard(layer, mesh=mesh, reshard_after_forward=sharding == "sharded", mp_policy=policy)
    # The output layer is read after the backbone's pass.
    fully_shard(model, mesh=mesh, reshard_after_forward=False, mp_policy=policy)
    model.load_state_dict(loaded, assign=True, strict=False)
    for module in _shards(model):
        module.set_gradient_divide_factor(1.0)
        module.set_force_sum_reduction_for_comms(True)  # gloo has no reduction that divides
    if (backbone := getattr(model, "base_model", model)) is not model:
        _run_as_root(model, backbone)


def _mixed_precision(model: nn.Module, dtype: str) -> MixedPrecisionPolicy:
    """The policy of passes in `dtype`. In bfloat16 the matrices of a pass are what autocast makes of them, and the
    states between layers stay in float32; norms and biases are rounded. ValueError where torch cannot compute that.
    """
    if dtype == "float32":
        return MixedPrecisionPolicy()
    is_cpu = next(model.parameters()).device.type == "cpu"
    if is_cpu and any(isinstance(module, nn.LayerNorm) for module in model.modules()):
        raise ValueError(
            f"optim.dtype is {dtype!r} with shards of {type(model).__name__}, whose LayerNorm would have weights in "
            "bfloat16 and states in float32, which torch does not compute on a CPU: use --optim.dtype float32, or "
            "--optim.sharding replicated"
        )
    setattr(model, _GATHERS_BFLOAT16, True)
    backbone: Any = getattr(model, "base_model", model)
    backbone.get_input_embeddings().register_forward_hook(states_in_float32)
    return MixedPrecisionPolicy(torch.bfloat16, torch.float32, cast_forward_inputs=False)


def _run_as_root(model: nn.Module, backbone: nn.Module) -> None:
    """Let a pass through the backbone run the hooks of the whole model, whose group holds what is not in a layer."""

    def run_backbone(model: nn.Module, *args: Any, **kwargs: Any) -> Any:
        return type(backbone).forward(backbone, *args, **kwargs)

    vars(model)["run_backbone"] = MethodType(run_backbone, model)
    register_fsdp_forward_method(model, "run_backbone")
    backbone.forward = vars(model)["run_backbone"]


def gathers_bfloat16(model: nn.Module) -> bool:
    """Whether the model's weights are bfloat16 in its passes, though the shards are float32."""
    return hasattr(model, _GATHERS_BFLOAT16)


def is_sharded(model: nn.Module) -> bool:
    """Whether the ranks hold shards of the model, or of the model that it is the backbone of."""
    return bool(_shards(model))


def reshard(model: nn.Module) -> None:
    """Free the whole weights that a pass has left. No effect on a model that is not sharded."""
    for module in _shards(model):
        module.reshard()


def num_own_values(model: nn.Module) -> int:
    """The number of values of the parameters that this rank holds."""
    return sum((p.to_local() if isinstance(p, DTensor) else p).numel() for p in model.parameters())


def _shards(model: nn.Module) -> list[FSDPModule]:
    return [module for module in model.modules() if isinstance(module, FSDPModule)]


# ------------------------------------------------------------------------------------------------ whole tensors


def whole(tensor: Tensor) -> Tensor:
    """The whole tensor of a shard; any other tensor as it is. A collective operation."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def shard_like(tensor: Tensor, own: Tensor) -> Tensor:
    """This rank's shard of a whole tensor that every rank has, where `own` is one; otherwise the tensor."""
    if not isinstance(own, DTensor) or isinstance(tensor, DTensor):
        return tensor
    return distribute_tensor(tensor.to(own.device), own.device_mesh, own.placements, src_data_rank=None)


def host_state(
    state: Mapping[str, Tensor], keeps: Callable[[str], bool] = lambda name: True, *, copies: bool = True
) -> dict[str, Tensor]:
    """Named tensors in the host's memory, whole ones, of those names that this rank `keeps`; shards are gathered one at
    a time, and tensors that are there are copied if `copies`. A collective operation if the tensors are shards.
    """
    tensors: dict[int, Tensor] = {}  # by the id of the rank's own tensor: tied tensors stay one
    for name, own in state.items():
        if id(own) not in tensors:
            tensor = whole(own.detach())  # on every rank
            tensors[id(own)] = tensor.to("cpu", copy=copies and not isinstance(own, DTensor)) if keeps(name) else own
    return {name: tensors[id(own)] for name, own in state.items() if keeps(name)}


def load_state(model: nn.Module, tensors: Mapping[str, Tensor], *, strict: bool = True) -> None:
    """Load whole tensors by name into a model, sharded or not."""
    own = model.state_dict()
    model.load_state_dict({name: shard_like(t, own.get(name, t)) for name, t in tensors.items()}, strict=strict)
