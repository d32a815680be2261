"""The precision of a model's weights, and of a mixture's experts under autocast."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from reasoner.models.shard_on_load import set_dtype


def hold_in_bfloat16(model: PreTrainedModel) -> None:
    """Round the matrices of a model that is not trained to bfloat16, its embeddings among them, which halves their
    memory, and hold vectors (norms, biases) in float32.

    The model then computes under autocast to bfloat16 only: what it would with the same values in float32, to the bit.
    Matrices are cast to bfloat16 there in any case, and everything else (the states between layers, the norms) stays in
    float32.
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


def follow_autocast(model: nn.Module) -> None:
    """Under autocast the experts of a mixture compute with weights that are cast, as autocast does with a linear
    layer's. transformers' grouped products are none of the operations that autocast casts: they follow the weights, so
    that experts in float32 would be multiplied in float32, which is most of the arithmetic of such a model.
    """
    for module in model.modules():
        own = module.parameters(recurse=False)
        if type(module).__module__.startswith("transformers.") and any(weight.ndim == 3 for weight in own):
            module.register_forward_pre_hook(_hide_weights)
            module.register_forward_hook(_show_weights, always_call=True)


def _hide_weights(module: nn.Module, _: object) -> None:
    """Put cast weights in front of the module's parameters: an attribute of the object is found before a parameter."""
    weights = dict(module.named_parameters(recurse=False))
    kind = next(iter(weights.values())).device.type
    if torch.is_autocast_enabled(kind):
        dtype = torch.get_autocast_dtype(kind)
        module.__dict__.update({name: weight.to(dtype) for name, weight in weights.items()})


def _show_weights(module: nn.Module, *_: object) -> None:
    for name, _parameter in module.named_parameters(recurse=False):
        module.__dict__.pop(name, None)
