"""LoRA (Hu et al. 2021, "LoRA: Low-Rank Adaptation of Large Language Models"): only adapters of a policy are trained.

The adapter is added to the policy in place: it stays the transformers model that it was, and every pass over it is as
before. Without its adapter the policy is the base model, so no second model is loaded for the reference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import MethodType
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from reasoner.config.learning import LoraConfig
from reasoner.models.adapter_files import Adapter, read_adapter, write_adapter
from reasoner.models.folder import BaseModel, write_base
from reasoner.models.loading import load_policy, load_tokenizer
from reasoner.models.saving import save_config, save_generation_config, save_model, save_weights
from reasoner.models.shard_on_load import mesh_of
from reasoner.models.sharding import host_state, load_state, shard_like, whole
from reasoner.runs.io import named_errors

PolicyWeights = Adapter | Mapping[str, Tensor]

_ADAPTER = "default"  # peft's name of a model's only adapter
TARGETS: dict[str, str | list[str]] = {
    "all-linear": "all-linear",  # every linear layer but the output layer
    "attention": ["q_proj", "k_proj", "v_proj", "o_proj"],
}


def add_adapter(policy: PreTrainedModel, lora: LoraConfig, *, seed: int) -> None:
    """Add an adapter in float32 to the policy and train nothing else. A [R, I] is uniform within 1 / sqrt(I) and a
    function of the seed, B is 0: the policy computes what it did. ValueError for a model without the layers of
    lora.target.
    """
    from peft import LoraConfig as PeftConfig
    from peft.tuners.lora.layer import Linear as AdaptedLinear

    _check_target(policy, lora.target)
    parts = {"r": lora.rank, "lora_alpha": lora.alpha, "lora_dropout": 0.0}
    config = cast(Any, PeftConfig)(target_modules=TARGETS[lora.target], **parts)
    policy.add_adapter(config)
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in policy.named_parameters():
        parameter.requires_grad_(".lora_" in name)
        if ".lora_" in name:
            parameter.data = parameter.data.float()  # peft gives it the precision of the base
        if ".lora_A." in name:
            bound = 1 / math.sqrt(parameter.shape[1])
            parameter.data.copy_(torch.empty(parameter.shape).uniform_(-bound, bound, generator=generator))
    for layer in policy.modules():
        if type(layer) is AdaptedLinear and type(layer.base_layer) is nn.Linear:
            vars(layer)["forward"] = MethodType(_forward, layer)
    cast(nn.Module, policy).eval()


def _check_target(policy: PreTrainedModel, target: str) -> None:
    """Raise ValueError unless the policy has linear layers by every name of the target."""
    names = TARGETS[target]
    linear = {name.rpartition(".")[2] for name, module in policy.named_modules() if isinstance(module, nn.Linear)}
    if not isinstance(names, str) and (missing := [name for name in names if name not in linear]):
        raise ValueError(
            f"LoRA (lora.target {target!r}) is not supported with {type(policy).__name__}: it has no linear layer "
            f"{' or '.join(missing)}"
        )


def _forward(layer: Any, states: Tensor) -> Tensor:
    """The forward pass of an adapted linear layer, W x + alpha / r B A x, to the bit that of peft, which makes two more
    tensors of the output's size: one for the product with alpha / r, one for the sum.
    """
    output: Tensor = layer.base_layer(states)
    if layer.disable_adapters:
        return output
    down, up = layer.lora_A[_ADAPTER], layer.lora_B[_ADAPTER]
    if not torch.is_autocast_enabled(states.device.type):  # it casts what it multiplies, and stores what it casts
        states = states.to(down.weight.dtype)
    change: Tensor = up(down(states)).mul_(layer.scaling[_ADAPTER])
    # A layer with a bias returns a view: autograd would copy the whole gradient of one that is changed.
    return change.add_(output) if output._is_view() else output.add_(change)


def has_adapter(model: nn.Module) -> bool:
    """Whether add_adapter() was called for the model."""
    return bool(getattr(model, "_hf_peft_config_loaded", False))


def trained_parameters(model: nn.Module) -> list[tuple[str, nn.Parameter]]:
    """The parameters that are trained, by name: all of them, or those of the adapter."""
    return [(name, parameter) for name, parameter in model.named_parameters() if parameter.requires_grad]


@contextmanager
def adapter_off(model: PreTrainedModel) -> Iterator[None]:
    """A block in which a model with an adapter computes what its base does. No effect on other models."""
    if not has_adapter(model):
        yield
        return
    model.disable_adapters()
    try:
        yield
    finally:
        model.enable_adapters()


def adapter_of(policy: PreTrainedModel) -> Adapter:
    """The policy's adapter; its tensors are the policy's own, or gathered ones if the policy is sharded."""
    config = cast(Any, policy).peft_config[_ADAPTER]
    tensors = {name.replace(f".{_ADAPTER}.", "."): parameter for name, parameter in trained_parameters(policy)}
    whole_tensors = {name: whole(parameter.detach()) for name, parameter in tensors.items()}
    return Adapter(config.r, config.lora_alpha, whole_tensors)


def policy_state(policy: PreTrainedModel, *, sends_adapter: bool = False) -> Iterator[tuple[str, Tensor]]:
    """(name, tensor) of the policy's state_dict for an engine, tied tensors under each of their names; with LoRA of its
    adapter, or of its base with the adapter added. Shards are gathered one at a time: a collective operation.

    An engine that stores a separate output layer, as vLLM does on a CPU, would otherwise keep its old one.
    """
    if not has_adapter(policy):
        yield from ((name, whole(tensor)) for name, tensor in policy.state_dict().items())
    elif sends_adapter:
        yield from adapter_of(policy).weights()
    else:
        yield from merged_state(policy)


@torch.no_grad()
def merged_state(policy: PreTrainedModel) -> Iterator[tuple[str, Tensor]]:
    """(name, tensor) of the policy by its base's names, the adapter added in float32. The policy is not changed."""
    adapter = adapter_of(policy)
    layers = set(adapter.layers)
    for name, tensor in policy.state_dict().items():
        if ".lora_" in name:
            continue
        layer, is_wrapped, part = name.partition(".base_layer.")
        is_adapted = is_wrapped and part == "weight" and layer in layers
        tensor = whole(tensor)
        yield f"{layer}.{part}" if is_wrapped else name, tensor + adapter.delta(layer) if is_adapted else tensor


def policy_weights(
    policy: PreTrainedModel, keeps: Callable[[str], bool] = lambda name: True, *, copies: bool = True
) -> PolicyWeights:
    """The policy's weights in the host's memory, as save_policy() writes them: its adapter, or the whole tensors of the
    names that this rank `keeps`. A collective operation if the policy is sharded.
    """
    if not has_adapter(policy):
        return host_state(policy.state_dict(keep_vars=True), keeps, copies=copies)
    adapter = adapter_of(policy)
    return replace(adapter, tensors=host_state(adapter.tensors))


def save_policy(
    policy: PreTrainedModel,
    folder: Path,
    base: BaseModel | None,
    weights: PolicyWeights | None = None,
    *,
    part: int = 0,
    num_parts: int = 1,
) -> dict[str, str]:
    """Write the policy as a model folder: all weights, or its adapter with the name of its `base`. `weights` are those
    of policy_weights(), of the layers of a part where several ranks write; the first part has the small files. Returns
    the file's name by tensor, for the index of all parts.
    """
    weights = policy_weights(policy, copies=False) if weights is None else weights
    folder.mkdir(parents=True, exist_ok=True)
    if not isinstance(weights, Adapter):
        if not part:
            save_config(policy, folder)
        return save_weights(policy, folder, weights, part=part, num_parts=num_parts)
    if not part:
        assert base is not None, "an adapter without a base"
        policy.config.save_pretrained(folder)
        save_generation_config(policy, folder)
        write_adapter(folder, weights, base=base.public_name)
        write_base(folder, base)
    return {}


@torch.no_grad()
def load_weights(policy: PreTrainedModel, folder: Path) -> None:
    """Load what save_policy() wrote into a policy of the same kind, tensor by tensor: whole weights are read into the
    host's memory, and the policy's device never holds them twice; shards are read by each rank, which holds them twice.
    """
    if not has_adapter(policy):
        mesh = mesh_of(policy)
        device = torch.device("cpu") if mesh is None else policy.device
        load_state(policy, load_policy(folder, device=device, mesh=mesh).state_dict())
        return
    own, stored = adapter_of(policy), read_adapter(folder)
    if own.layers != stored.layers or (own.rank, own.alpha) != (stored.rank, stored.alpha):
        raise ValueError(f"the LoRA adapter in {folder} has not the layers, the rank and the alpha of the policy's")
    for name, parameter in trained_parameters(policy):
        parameter.copy_(shard_like(stored.tensors[name.replace(f".{_ADAPTER}.", ".")], parameter))


def write_merged(checkpoint: Path, out: Path) -> None:
    """Write a checkpoint as a full model folder in float32, an adapter added to the weights of its base. ValueError if
    no model can be loaded from the checkpoint.
    """
    model, tokenizer = load_policy(checkpoint, device=torch.device("cpu")), load_tokenizer(checkpoint)
    with named_errors(out):
        save_model(model, out)
        tokenizer.save_pretrained(out)


def num_adapter_parameters(model: PreTrainedModel, lora: LoraConfig) -> int:
    """Number of parameters of an adapter for the model, which may be on the meta device; 0 without LoRA."""
    head = model.get_output_embeddings()  # type: ignore[no-untyped-call]
    names = TARGETS[lora.target]
    layers = [
        module
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear)
        and module is not head
        and (isinstance(names, str) or name.rpartition(".")[2] in names)
    ]
    return sum(lora.rank * (layer.in_features + layer.out_features) for layer in layers)
