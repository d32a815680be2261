"""Gradient accumulation fusion for large embeddings: their gradient is added to `weight.grad` in the backward pass.

Autograd makes a tensor of the weight's size for the gradient of an embedding in every micro-batch, also if few of its
rows are used. That of a tied output layer is held until that of the input is there, so that a tied weight of V x H
values takes 8 V H bytes at the peak of an update: a tenth of a model of 135M parameters. Megatron-LM fuses the
accumulation of linear layers for the same reason (`gradient_accumulation_fusion`).

Shapes: V tokens, H width, K token ids.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import MethodType
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from transformers import PreTrainedModel

from reasoner.models.sharding import is_sharded

MIN_VALUES = 2**22  # of a weight, 16 MiB in float32: below that a copy of the gradient does not matter
_MARK = "_accumulates_gradient"


@contextmanager
def accumulate_embedding_gradients(model: PreTrainedModel) -> Iterator[None]:
    """In the block, backward() adds the gradients of the model's large input and output embeddings to their `grad`, in
    place. The first sum is the same to the bit; those of later micro-batches are made in another order.

    Nothing else may be asked for in the block: torch.autograd.grad() finds no gradient of these weights, and there is
    no second derivative. No effect on frozen or sharded weights, nor on embeddings of other types than torch's.
    """
    ends = [] if is_sharded(model) else _large_embeddings(model)
    for end in ends:
        setattr(end.weight, _MARK, True)
        if isinstance(end, nn.Embedding):
            vars(end)["forward"] = MethodType(_forward, end)
    try:
        yield
    finally:
        for end in ends:
            vars(end.weight).pop(_MARK, None)  # of a tied weight once
            vars(end).pop("forward", None)


def accumulates_gradient(weight: Tensor) -> bool:
    """Whether a backward pass has to add the weight's gradient to gradient_sum(weight) itself."""
    return hasattr(weight, _MARK)


def gradient_sum(weight: Tensor) -> Tensor:
    """The weight's `grad`, zeros where there is none yet."""
    if weight.grad is None:
        weight.grad = torch.zeros_like(weight)
    return weight.grad


def _large_embeddings(model: PreTrainedModel) -> list[nn.Embedding | nn.Linear]:
    """The model's input embedding and output layer, as far as they are of torch's types, large and trained."""
    ends: list[Any] = [model.get_input_embeddings(), model.get_output_embeddings()]  # type: ignore[no-untyped-call]
    plain = [end for end in ends if type(end) in (nn.Embedding, nn.Linear)]
    return [end for end in plain if end.weight.requires_grad and end.weight.numel() >= MIN_VALUES]


def _forward(embedding: nn.Embedding, ids: Tensor) -> Tensor:
    looked_up: Tensor = _Lookup.apply(embedding.weight, ids, embedding.padding_idx)  # type: ignore[no-untyped-call]
    return looked_up


class _Lookup(torch.autograd.Function):
    """nn.functional.embedding, whose gradient has the rows that were used."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, ids: Tensor, padding: int | None) -> Tensor:
        ctx.save_for_backward(weight, ids)
        ctx.padding = padding
        return nn.functional.embedding(ids, weight)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, None, None]:
        weight, ids = ctx.saved_tensors
        used, rows = ids.unique(return_inverse=True)  # token ids
        of_used = torch.ops.aten.embedding_dense_backward(gradient, rows, len(used), -1, False)
        is_trained = used != (-1 if ctx.padding is None else ctx.padding)  # the padding's row has no gradient
        gradient_sum(weight).index_add_(0, used[is_trained], of_used[is_trained])
        return None, None, None
