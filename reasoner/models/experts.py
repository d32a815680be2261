"""Experts of a mixture in the precision of autocast.

transformers' grouped products are none of the operations that autocast casts: they follow the weights, so that the
experts of a policy in float32 would be multiplied in float32, which is most of the arithmetic of such a model.
"""

from __future__ import annotations

import torch
from torch import nn


def follow_autocast(model: nn.Module) -> None:
    """Under autocast the experts compute with weights that are cast, as autocast does with a linear layer's."""
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
