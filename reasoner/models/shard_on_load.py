"""Load a model in shards: each rank reads one tensor after the other and keeps its own rows of it.

transformers builds a model on the meta device, and gives its modules one weight after the other, renamed, fused and
tied as the architecture has them. Here each becomes, as soon as it is there, a DTensor that holds this rank's shard on
this rank's device: no rank ever has the whole model. Such a model has the names, shapes and devices of a whole one.
Its passes need the hooks of reasoner.models.sharding.distribute(), which takes the shards over as they are.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor, Shard
from torch.nn.modules.module import register_module_parameter_registration_hook

from reasoner.distributed.world import World

_ONE_BY_ONE = "HF_DEACTIVATE_ASYNC_LOAD"  # of transformers, whose threads would read far ahead


def mesh_of_shards(sharding: str, world: World, device: torch.device) -> DeviceMesh | None:
    """The ranks that a model is loaded over by optim.sharding; None where each rank loads the whole."""
    return None if sharding == "replicated" or world.size == 1 else init_device_mesh(device.type, (world.size,))


def mesh_of(model: nn.Module) -> DeviceMesh | None:
    """The ranks that hold the model; None where each has the whole."""
    return next((own.device_mesh for own in model.parameters() if isinstance(own, DTensor)), None)


@contextmanager
def load_shards(mesh: DeviceMesh | None) -> Iterator[None]:
    """A block in which parameters that get values become shards. No effect without a mesh."""

    def keep_shard(module: nn.Module, name: str, parameter: nn.Parameter | None) -> nn.Parameter | None:
        if mesh is None or parameter is None or parameter.is_meta or isinstance(parameter, DTensor):
            return None
        own = nn.Parameter(_shard(parameter.detach().contiguous(), mesh), requires_grad=parameter.requires_grad)
        vars(own).update(vars(parameter))  # transformers' marks of what is initialised
        return own

    if mesh is not None:
        os.environ.setdefault(_ONE_BY_ONE, "1")
    handle = register_module_parameter_registration_hook(keep_shard)  # type: ignore[arg-type]  # may return one
    try:
        yield
    finally:
        handle.remove()


def _shard(whole: Tensor, mesh: DeviceMesh) -> DTensor:
    """This rank's rows, divided as FSDP2 divides them, in memory of their own."""
    length = -(-len(whole) // mesh.size())
    start = length * mesh.get_local_rank()
    own = whole[start : start + length].to(mesh.device_type, copy=True)
    return DTensor.from_local(own, mesh, [Shard(0)], run_check=False, shape=whole.shape, stride=whole.stride())


def take_shards(model: nn.Module) -> dict[str, Tensor]:
    """Put parameters on the meta device in the place of the model's shards. Returns the shards by name, tied ones under
    each of their names, for load_state_dict(assign=True).
    """
    shards: dict[str, Tensor] = {}
    metas: dict[int, nn.Parameter] = {}
    for prefix, module in list(model.named_modules()):
        for name, own in list(module.named_parameters(recurse=False)):
            if isinstance(own, DTensor):
                empty = torch.empty(own.shape, dtype=own.dtype, device="meta")
                shards[f"{prefix}.{name}".lstrip(".")] = own
                metas.setdefault(id(own), nn.Parameter(empty, requires_grad=own.requires_grad))
                module.register_parameter(name, metas[id(own)])
    return shards


def set_dtype(parameter: nn.Parameter, dtype: torch.dtype) -> None:
    """Convert a parameter to another precision in place, a shard as well."""
    if isinstance(parameter, DTensor):  # its `data` would have the type, and the shard inside would keep its own
        own = nn.Parameter(parameter.detach().to(dtype), requires_grad=parameter.requires_grad)
        torch.utils.swap_tensors(parameter, own)  # type: ignore[no-untyped-call]
    else:
        parameter.data = parameter.data.to(dtype)
