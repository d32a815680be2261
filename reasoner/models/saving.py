"""Write a model as a folder that transformers and vLLM load."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from safetensors import SafetensorError
from torch import Tensor
from transformers import GenerationConfig, PreTrainedModel


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
