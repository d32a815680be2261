"""Weights of a model that are not trained, in bfloat16: half the memory of float32.

Under autocast to bfloat16 such a model computes what it would with the same values in float32, to the bit: matrices are
cast to bfloat16 there in any case, and everything else (the states between layers, the norms) stays in float32.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from reasoner.models.shard_on_load import set_dtype


def hold_in_bfloat16(model: PreTrainedModel) -> None:
    """Round the model's matrices to bfloat16, its embeddings among them, and hold vectors (norms, biases) in float32.

    The model then computes under autocast to bfloat16 only.
    """
    for parameter in model.parameters():
        set_dtype(parameter, torch.bfloat16 if parameter.ndim > 1 else torch.float32)
    model.get_input_embeddings().register_forward_hook(states_in_float32)


def cast_parameters(model: nn.Module, dtype: torch.dtype) -> None:
    """Convert all parameters to the precision `dtype`, and no buffer: with the frequencies of rotary embeddings
    (inv_freq) in bfloat16 the angle between tokens a thousand apart is wrong by up to a radian (Qwen2.5-0.5B).
    transformers keeps them in float32 when it loads a model in bfloat16, and so does vLLM; `model.to(dtype)` does not.
    """
    for parameter in model.parameters():
        set_dtype(parameter, dtype)


def states_in_float32(module: nn.Module, inputs: tuple[Tensor, ...], states: Tensor) -> Tensor:
    """The states between layers are in the precision of the embeddings' output."""
    return states.float()
