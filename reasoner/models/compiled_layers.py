"""Norms and feed-forwards of the layers compiled by torch.compile, each as few kernels.

Attention stays as it is: its key-value cache would be compiled anew for every layer. The compiled parts take states
alone, for sizes of any length: one graph for each class of module, with and without a gradient, whatever the number of
layers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from types import MethodType
from typing import Any

import torch
from torch import nn
from torch._inductor.cpp_builder import get_cpp_compiler
from torch._inductor.exc import InvalidCxxCompiler
from transformers.modeling_layers import GradientCheckpointingLayer

BACKEND = "inductor"
_MOST_GRAPHS = 32  # of a class; there are others for one row, one token, an adapter that is off. More run uncompiled


def compile_layers(backbone: nn.Module) -> None:
    """Compile the norms and feed-forwards of the backbone's layers. Names of parameters do not change.

    ValueError for a model that has none that transformers marks, and without a C++ compiler.
    """
    parts = list(_parts(backbone))
    if not parts:
        raise ValueError(f"optim.compile is true, but {type(backbone).__name__} has no layers that can be compiled")
    try:
        get_cpp_compiler()
    except InvalidCxxCompiler as error:
        raise ValueError("optim.compile is true, and torch finds no C++ compiler: install g++, or set CXX") from error
    for part in parts:
        part.forward = MethodType(_run_compiled, part)


def _parts(backbone: nn.Module) -> Iterator[nn.Module]:
    """The modules in a layer beside its attention, but for mixtures of experts, whose shapes follow the tokens."""
    for layer in backbone.modules():
        if isinstance(layer, GradientCheckpointingLayer):
            for part in layer.children():
                own = list(part.parameters())
                if own and not hasattr(part, "layer_idx") and not hasattr(part, "experts"):
                    yield part


def _run_compiled(part: nn.Module, *args: Any, **kwargs: Any) -> Any:
    kind: Any = type(part)
    with torch._dynamo.config.patch(recompile_limit=_MOST_GRAPHS):
        return _compiled(kind)(part, *args, **kwargs)


@cache
def _compiled(kind: Any) -> Callable[..., Any]:
    compiled: Callable[..., Any] = torch.compile(kind.forward, dynamic=True, backend=BACKEND)
    return compiled
