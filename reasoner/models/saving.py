"""Write a model as a folder that transformers and vLLM load."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any, cast

from safetensors import SafetensorError
from torch import Tensor
from transformers import GenerationConfig, PreTrainedModel
from transformers.core_model_loading import revert_weight_conversion


def save_model(model: PreTrainedModel, folder: Path, state: Mapping[str, Tensor] | None = None) -> None:
    """Write config, generation config and weights: the tensors of `state`, or the model's own. OSError if the disk does
    not take them.
    """
    own: Any = getattr(model, "generation_config", None)  # a classifier has none
    model.generation_config = cast(Any, GenerationConfig)()  # one that can be saved
    try:
        model.save_pretrained(folder, state_dict=None if state is None else dict(state))
    except SafetensorError as error:
        raise OSError(str(error)) from error
    finally:
        model.generation_config = own
    save_generation_config(model, folder)


def save_generation_config(model: PreTrainedModel, folder: Path) -> None:
    """Write the generation config as it was loaded, if the model has one.

    Its own save_pretrained() refuses values that contradict each other, do_sample false beside a temperature for
    example. Published models have such files, and everything that loads them takes them.
    """
    if model.generation_config is not None:
        model.generation_config.to_json_file(folder / "generation_config.json", keys_to_pop=["compile_config"])


def as_saved(model: PreTrainedModel, named: Iterable[tuple[str, Tensor]]) -> Iterator[tuple[str, Tensor]]:
    """Weights by the names of a state_dict, with the names and shapes of a saved model's file, one layer at a time: the
    experts of a mixture, for example, are one tensor in transformers alone. `model` may be on the meta device.
    """

    def layer_of(pair: tuple[str, Tensor]) -> str:
        number = re.search(r"\.(\d+)\.", pair[0])
        return number[1] if number else ""

    for _, layer in groupby(named, key=layer_of):
        yield from revert_weight_conversion(model, dict(layer)).items()
