"""Activation recomputation: each layer stores its input alone and runs again in the backward pass.

transformers' `gradient_checkpointing_enable()` has no effect on a model in eval mode, which ours are in (no dropout),
and in training mode drops the key-value cache through which completions read their prompts. Hence a wrapper of our own
around each layer, and caches that return the same when a layer runs again: `update` has no lasting effect after the
first run.

Shapes: P prompts, L longest prompt, N rows of completions, T completion positions.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from types import MethodType
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers import DynamicCache
from transformers.modeling_layers import GradientCheckpointingLayer

from reasoner.runtime import release_free_memory


class PromptKeyCache(DynamicCache):
    """Key-value cache of the prompts' pass: stores the first update of each layer, [P, heads, L, head size]."""

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Return the keys and values of the layer. When the layer runs again they are not stored again."""
        if layer_idx < len(self.layers):
            return DynamicCache().update(key_states, value_states, 0)  # the same operations: the same memory layout
        return super().update(key_states, value_states, layer_idx)


class CompletionKeyCache(DynamicCache):
    """Key-value cache of the completions' pass: holds the prompts' keys and values, once for each prompt."""

    def __init__(self, keys: tuple[Tensor, ...], values: tuple[Tensor, ...], prompt_of: Tensor) -> None:
        """`keys` and `values` per layer [P, heads, L, head size], `prompt_of` [N]."""
        super().__init__()
        for layer, pair in enumerate(zip(keys, values, strict=True)):
            super().update(*pair, layer)
        self.prompt_of = prompt_of

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """[N, heads, T, head size] x 2 -> those of each row's prompt and completion, [N, heads, L + T, head size] x 2,
        in the values' precision. Under autocast attention casts all three to it; here the keys are cast before they are
        copied for rows and heads.
        Nothing is stored. The copies of the prompts' are part of the layer, so that they are made again with it.
        """
        layer, dtype = cast(Any, self.layers[layer_idx]), value_states.dtype

        def of_rows(of_prompts: Tensor, own: Tensor) -> Tensor:
            # index_select: its backward adds whole slices, that of keys[prompt_of] adds single elements
            return torch.cat([of_prompts.to(dtype).index_select(0, self.prompt_of), own.to(dtype)], dim=-2)

        return of_rows(layer.keys, key_states), of_rows(layer.values, value_states)


def recompute_layers(backbone: nn.Module) -> None:
    """Let every layer of the backbone store only its input, and compute its activations again in the backward pass.

    The gradient is the same to the bit. Names of parameters do not change, and a deep copy of the backbone has layers
    of its own. ValueError for a model whose layers are not known to transformers as units to be recomputed.
    """
    layers = [module for module in backbone.modules() if isinstance(module, GradientCheckpointingLayer)]
    if not layers:
        raise ValueError(f"optim.recompute is true, but {type(backbone).__name__} has no layers that can be recomputed")
    for layer in layers:
        layer.forward = MethodType(_recomputed_forward, layer)


@contextmanager
def store_activations(backbone: nn.Module) -> Iterator[None]:
    """Store all activations of the passes in the block: their graph can be differentiated twice, which a recomputed one
    cannot. Without effect on a backbone that recompute_layers() has not changed.
    """
    layers = [module for module in backbone.modules() if _is_recomputed(module)]
    methods = [vars(layer).pop("forward") for layer in layers]
    try:
        yield
    finally:
        for layer, method in zip(layers, methods, strict=True):
            layer.forward = method


def _is_recomputed(layer: nn.Module) -> bool:
    return getattr(layer.forward, "__func__", None) is _recomputed_forward


def _recomputed_forward(layer: nn.Module, *args: Any, **kwargs: Any) -> Any:
    """The class's own forward, under torch's checkpoint; without gradients it runs as usual."""
    # The layer is bound now: a bound method, stored in the layer, would stay that of the original in a deep copy.
    return checkpoint(partial(_run, layer), *args, use_reentrant=False, preserve_rng_state=False, **kwargs)


def _run(layer: nn.Module, *args: Any, **kwargs: Any) -> Any:
    """The class's own forward, for the first time or again. On a CPU the memory that the layer before it has freed goes
    back to the system first: its stored input lies between, so that glibc's malloc would hardly use the gaps again. At
    135M parameters with LoRA and 1,024 tokens, the gaps of 30 layers are 440 MiB, more than a third of the peak.
    """
    if torch.is_grad_enabled() and next(layer.parameters()).device.type == "cpu":
        release_free_memory()
    return type(layer).forward(layer, *args, **kwargs)
