"""Write a model as a folder that transformers and vLLM load."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import split_torch_state_dict_into_shards
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import PreTrainedModel
from transformers.core_model_loading import revert_weight_conversion
from transformers.modeling_utils import remove_tied_weights_from_state_dict

_LARGEST_FILE = "50GB"  # what the hub takes


def save_model(model: PreTrainedModel, folder: Path) -> None:
    """Write config, generation config and weights. OSError if the disk does not take them."""
    folder.mkdir(parents=True, exist_ok=True)
    save_config(model, folder)
    save_weights(model, folder, model.state_dict())


def save_config(model: PreTrainedModel, folder: Path) -> None:
    """Write config and generation config, as save_pretrained() does."""
    model.config.dtype = str(model.dtype).removeprefix("torch.")
    model.config.architectures = [type(model).__name__.removeprefix("FSDP")]
    model.config.save_pretrained(folder)
    save_generation_config(model, folder)


def save_weights(
    model: PreTrainedModel, folder: Path, state: Mapping[str, Tensor], *, part: int = 0, num_parts: int = 1
) -> dict[str, str]:
    """Write the tensors of `state` as those of a model folder: the whole model, or one part of it, which has whole
    layers. Returns the file's name by tensor, from which write_index() makes the index of all parts. OSError if the
    disk does not take them.
    """
    tensors = revert_weight_conversion(model, remove_tied_weights_from_state_dict(dict(state), model))
    pattern = file_name("model", part, num_parts).replace(".safetensors", "{suffix}.safetensors")
    files = split_torch_state_dict_into_shards(tensors, filename_pattern=pattern, max_shard_size=_LARGEST_FILE)
    for name, own in files.filename_to_tensors.items():
        save_tensors({key: tensors[key] for key in own}, folder / name, metadata={"format": "pt"})
    if num_parts == 1:
        write_index(folder, files.tensor_to_filename)
    return files.tensor_to_filename


def round_weights(folder: Path) -> None:
    """Rewrite the float32 weights of a model folder in bfloat16."""
    files: dict[str, str] = {}
    for path in sorted(folder.glob("*.safetensors")):
        rounded = {name: own.bfloat16() if own.dtype == torch.float32 else own for name, own in load_file(path).items()}
        save_tensors(rounded, path.with_suffix(".new"), metadata={"format": "pt"})
        path.with_suffix(".new").replace(path)
        files |= dict.fromkeys(rounded, path.name)
    write_index(folder, files)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"dtype": "bfloat16"}, indent=2) + "\n")


def write_index(folder: Path, files: Mapping[str, str]) -> None:
    """Write the index of a model in several files, `files` by tensor."""
    names = set(files.values())
    if len(names) > 1:
        size = sum((folder / name).stat().st_size for name in names)
        index = {"metadata": {"total_size": size}, "weight_map": dict(sorted(files.items()))}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n")


def save_tensors(tensors: Mapping[str, Tensor], path: Path, metadata: dict[str, str] | None = None) -> None:
    """Write a safetensors file, tied tensors under each of their names. OSError if the disk does not take it."""
    storages: set[int] = set()
    own = {}
    for name, tensor in tensors.items():
        is_tied = tensor.data_ptr() in storages  # which safetensors refuses
        storages.add(tensor.data_ptr())
        own[name] = tensor.clone() if is_tied else tensor.contiguous()
    try:
        save_file(own, path, metadata=metadata)
    except SafetensorError as error:
        raise OSError(str(error)) from error


def file_name(stem: str, part: int, num_parts: int) -> str:
    """The name of a safetensors file, or of that of one of several parts, as transformers numbers them."""
    return f"{stem}.safetensors" if num_parts == 1 else f"{stem}-{part + 1:05d}-of-{num_parts:05d}.safetensors"


def stored_tensors(folder: Path, stem: str) -> dict[str, Tensor]:
    """The tensors of the parts of a safetensors file, which are mapped: only what is used of them is read. OSError if
    there is no part.
    """
    paths = sorted(folder.glob(f"{stem}.safetensors")) or sorted(folder.glob(f"{stem}-*.safetensors"))
    if not paths:
        raise FileNotFoundError(f"{folder} has no {stem}.safetensors")
    return {name: tensor for path in paths for name, tensor in load_file(path).items()}


def layer_of(name: str) -> str:
    """The number of the layer in a tensor's name; empty for those of no layer."""
    number = re.search(r"\.(\d+)\.", name)
    return number[1] if number else ""


def save_generation_config(model: PreTrainedModel, folder: Path) -> None:
    """Write the generation config as it was loaded, if the model has one.

    Its own save_pretrained() refuses values that contradict each other, do_sample false beside a temperature for
    example. Published models have such files, and everything that loads them takes them.
    """
    own: Any = getattr(model, "generation_config", None)  # a classifier has none
    if own is not None:
        own.to_json_file(folder / "generation_config.json", keys_to_pop=["compile_config"])


def as_saved(model: PreTrainedModel, named: Iterable[tuple[str, Tensor]]) -> Iterator[tuple[str, Tensor]]:
    """Weights by the names of a state_dict, with the names and shapes of a saved model's file, one layer at a time: the
    experts of a mixture, for example, are one tensor in transformers alone. `model` may be on the meta device.
    """
    for _, layer in groupby(named, key=lambda pair: layer_of(pair[0])):
        yield from revert_weight_conversion(model, dict(layer)).items()
