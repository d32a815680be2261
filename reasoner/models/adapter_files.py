"""Files of a LoRA adapter, in the format of peft, which vLLM and transformers read too.

A linear layer of I inputs and O outputs with weight W [O, I] and an adapter of rank R, A [R, I] and B [O, R], has the
weight W + alpha / R * B A.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from reasoner.models.checksums import check_model_files
from reasoner.models.sharding import shard_like

PREFIX = "base_model.model."  # of every name in the files: peft stores the names of a wrapped model
_A, _B = ".lora_A.weight", ".lora_B.weight"
_CONFIG, _TENSORS = "adapter_config.json", "adapter_model.safetensors"


@dataclass(frozen=True, slots=True, eq=False)
class Adapter:
    """A LoRA adapter: A and B of each layer, by the layer's name and ".lora_A.weight" or ".lora_B.weight"."""

    rank: int
    alpha: float
    tensors: Mapping[str, Tensor]

    @property
    def scale(self) -> float:
        """The factor of B A."""
        return self.alpha / self.rank

    @property
    def layers(self) -> list[str]:
        """The names of the layers, sorted."""
        return sorted(name.removesuffix(_A) for name in self.tensors if name.endswith(_A))

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """(name, tensor) by the names of the files, for an engine. B includes the factor alpha / rank."""
        for name, tensor in self.tensors.items():
            yield PREFIX + name, tensor * self.scale if name.endswith(_B) else tensor

    def delta(self, layer: str) -> Tensor:
        """[O, I], in float32: what the adapter adds to the layer's weight."""
        a, b = (self.tensors[layer + part].float() for part in (_A, _B))
        return (b @ a) * self.scale


def write_adapter(folder: Path, adapter: Adapter, *, base: str = "") -> None:
    """Write the adapter's files; `base` names the model that it was trained on."""
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": base,
        "r": adapter.rank,
        "lora_alpha": adapter.alpha,
        "lora_dropout": 0.0,
        "target_modules": sorted({layer.rpartition(".")[2] for layer in adapter.layers}),
        "bias": "none",
        "inference_mode": True,
    }
    (folder / _CONFIG).write_text(json.dumps(config, indent=1) + "\n")
    tensors = {PREFIX + name: tensor.detach().contiguous().cpu() for name, tensor in sorted(adapter.tensors.items())}
    save_file(tensors, folder / _TENSORS)


def read_adapter(folder: Path) -> Adapter:
    """Read the adapter in the folder. ValueError if it cannot be read, or is not as it was written."""
    check_model_files(folder)
    try:
        config = json.loads((folder / _CONFIG).read_text("utf-8"))
        tensors = {name.removeprefix(PREFIX): tensor for name, tensor in load_file(folder / _TENSORS).items()}
        return Adapter(int(config["r"]), float(config["lora_alpha"]), tensors)
    except (OSError, ValueError, TypeError, KeyError, SafetensorError) as error:
        raise ValueError(f"no LoRA adapter can be loaded from {folder}: {error}") from error


@torch.no_grad()
def merge_adapter(model: nn.Module, folder: Path) -> None:
    """Add the adapter in the folder to the model's float32 weights. ValueError if the model has not its layers."""
    adapter, weights = read_adapter(folder), dict(model.named_parameters())
    for layer in adapter.layers:
        if (weight := weights.get(f"{layer}.weight")) is None:
            raise ValueError(f"the LoRA adapter in {folder} has the layer {layer!r}, which its base does not have")
        weight.add_(shard_like(adapter.delta(layer).to(weight.device, weight.dtype), weight))
