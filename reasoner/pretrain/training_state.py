"""The state of an unfinished build in one file, from which the same build goes on to the same bytes.

A safetensors file: weights and optimiser states as tensors, losses and the place in the corpus as its metadata.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from reasoner.pretrain.train import Pretraining, Recipe
from reasoner.runs.io import atomic_path


def state_file(out: Path, recipe: Recipe, seed: int, earlier: dict[str, Any] | None = None) -> Path:
    """The file beside the folder of a build, named after all that decides the weights, so that no other build reads
    it: recipe, seed, threads, version of torch and the record (build.json) of the base it started from.
    """
    decisive = json.dumps([asdict(recipe), seed, torch.get_num_threads(), torch.__version__, earlier], sort_keys=True)
    return out.with_name(f"{out.name}.{hashlib.sha256(decisive.encode()).hexdigest()[:16]}.state")


def save(pretraining: Pretraining, file: Path) -> None:
    """Write the state; a former one stays until the new one is whole. OSError if the disk does not take it."""
    tensors = {f"model/{name}": p.detach() for name, p in pretraining.model.named_parameters()}
    for number, optimizer in enumerate(pretraining.optimizers):
        for index, values in optimizer.state_dict()["state"].items():
            tensors |= {f"{number}/{index}/{name}": value.contiguous() for name, value in values.items()}
    stream = pretraining.stream
    place = {
        "losses": pretraining.losses,
        "seconds": pretraining.seconds,
        "index": stream.index,
        "waiting": stream.waiting,
    }
    with atomic_path(file) as partial:
        try:
            save_file(tensors, partial, metadata={name: json.dumps(value) for name, value in place.items()})
        except SafetensorError as error:
            raise OSError(str(error)) from error


def load(pretraining: Pretraining, file: Path) -> None:
    """Bring a new pretraining to the state of the file."""
    with safe_open(file, "pt") as stored:
        tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118 (it is no mapping)
        place = {name: json.loads(text) for name, text in stored.metadata().items()}
    with torch.no_grad():
        for name, parameter in pretraining.model.named_parameters():
            parameter.copy_(tensors[f"model/{name}"])
    for number, optimizer in enumerate(pretraining.optimizers):
        state: dict[int, dict[str, torch.Tensor]] = {}
        for key in (key for key in tensors if key.startswith(f"{number}/")):
            _, index, name = key.split("/")
            state.setdefault(int(index), {})[name] = tensors[key]
        optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
    pretraining.losses, pretraining.seconds = place["losses"], place["seconds"]
    pretraining.stream.index, pretraining.stream.waiting = place["index"], place["waiting"]
