"""Forward and backward passes over a batch: each prompt once, its completions in micro-batches.

Shapes: N rows, T completion positions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import torch
from torch import Tensor

from reasoner.models.loading import PromptCache
from reasoner.rl.batch import Batch

Encode = Callable[[Batch], PromptCache]
OnMicrobatch = Callable[[int, int], object]  # called after each micro-batch: (rows done, rows in all)


def compute_precision(device: torch.device, dtype: str) -> AbstractContextManager[object]:
    """Autocast context for computing in `optim.dtype`; the weights stay float32."""
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=dtype == "bfloat16")


def iterate_microbatches(batch: Batch, encode: Encode, *, tokens: int) -> Iterator[tuple[Tensor, PromptCache, Batch]]:
    """Yield (index, prompts, rows): micro-batches that cover every row once. `encode` runs the prompts' pass."""
    for outer, block in batch.prompt_blocks(tokens, torch.arange(len(batch), device=batch.lengths.device)):
        prompts = encode(block)
        for inner, rows in block.micro_batches(tokens):
            yield outer[inner], prompts, rows


@torch.no_grad()
def forward_microbatches(
    batch: Batch,
    encode: Encode,
    figure: Callable[[PromptCache, Batch], Tensor],
    *,
    tokens: int,
    extra: int = 0,
    on_microbatch: OnMicrobatch | None = None,
) -> Tensor:
    """Compute `figure` for every row, without gradient -> [N, T + extra], 0 beyond a micro-batch's longest row."""
    done = 0
    values = torch.zeros(len(batch), batch.completion_ids.shape[1] + extra, device=batch.lengths.device)
    for index, prompts, rows in iterate_microbatches(batch, encode, tokens=tokens):
        values[index, : rows.completion_ids.shape[1] + extra] = figure(prompts, rows)
        done += len(rows)
        if on_microbatch is not None:
            on_microbatch(done, len(batch))
    return values


def backward_microbatches(
    batch: Batch,
    index: Tensor,
    encode: Encode,
    loss: Callable[[PromptCache, Batch], Tensor],
    *,
    tokens: int,
    on_microbatch: OnMicrobatch | None = None,
) -> None:
    """Accumulate the gradient of the indexed rows' loss in the parameters.

    The prompts of a block go through one forward and one backward pass. In between, the completions go through in
    micro-batches, and their gradients with respect to the prompts' states are accumulated.
    """
    done = 0
    for _, block in batch.prompt_blocks(tokens, index):
        prompts = encode(block)
        leaves = prompts.leaves()
        for _, rows in block.micro_batches(tokens):
            loss(leaves, rows).backward()  # type: ignore[no-untyped-call]
            done += len(rows)
            if on_microbatch is not None:
                on_microbatch(done, len(index))
        prompts.backward(leaves)
