"""Forward and backward passes over a batch: each prompt once, its completions in micro-batches.

Every rank has the whole batch, and computes the rows of its own prompts. Sums over rows, gradients among them, are then
sums over ranks; denominators are those of the whole batch.

Shapes: N rows, T completion positions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import torch
from torch import Tensor

from reasoner.distributed.assignment import owners
from reasoner.distributed.world import World
from reasoner.models.loading import PromptCache
from reasoner.rl.batch import Batch

Encode = Callable[[Batch], PromptCache]
OnMicrobatch = Callable[[int, int], object]  # called after each micro-batch: (rows done, rows in all)


def compute_precision(device: torch.device, dtype: str) -> AbstractContextManager[object]:
    """Autocast context for computing in `optim.dtype`; the weights stay float32."""
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=dtype == "bfloat16")


def own_rows(batch: Batch, index: Tensor, world: World) -> Tensor:
    """Those of the indexed rows that this rank computes: the rows of whole prompts, as many tokens on each rank."""
    if world.size == 1 or not len(index):
        return index
    prompts, position = batch.prompt_of[index].unique(return_inverse=True)  # type: ignore[no-untyped-call]
    sizes = batch.prompt_lengths[prompts].index_add(0, position, batch.lengths[index])
    rank_of = torch.tensor(owners(sizes.tolist(), world.size), device=index.device)
    return index[rank_of[position] == world.rank]


def _all_rows(batch: Batch) -> Tensor:
    return torch.arange(len(batch), device=batch.lengths.device)


def iterate_microbatches(
    batch: Batch, encode: Encode, *, tokens: int, world: World
) -> Iterator[tuple[Tensor, PromptCache, Batch]]:
    """Yield (index, prompts, rows): micro-batches that cover every row of this rank once. `encode` runs the prompts'
    pass.
    """
    index = own_rows(batch, _all_rows(batch), world)
    for outer, block in batch.prompt_blocks(tokens, index):
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
    world: World,
    extra: int = 0,
    on_microbatch: OnMicrobatch | None = None,
) -> Tensor:
    """Compute `figure` for every row, without gradient -> [N, T + extra], 0 beyond a micro-batch's longest row.

    A collective operation: each rank computes its own rows, and gets those of the others.
    """
    done, num_own = 0, len(own_rows(batch, _all_rows(batch), world))
    values = torch.zeros(len(batch), batch.completion_ids.shape[1] + extra, device=batch.lengths.device)
    for index, prompts, rows in iterate_microbatches(batch, encode, tokens=tokens, world=world):
        values[index, : rows.completion_ids.shape[1] + extra] = figure(prompts, rows)
        done += len(rows)
        if on_microbatch is not None:
            on_microbatch(done, num_own)
    world.sum_(values, "log-probabilities or values of the batch")  # a row of another rank is 0 here
    return values


def backward_microbatches(
    batch: Batch,
    index: Tensor,
    encode: Encode,
    loss: Callable[[PromptCache, Batch], Tensor],
    *,
    tokens: int,
    world: World,
    on_microbatch: OnMicrobatch | None = None,
) -> None:
    """Accumulate the gradient of the indexed rows' loss in the parameters, each rank that of its own rows.

    The prompts of a block go through one forward and one backward pass. In between, the completions go through in
    micro-batches, and their gradients with respect to the prompts' states are accumulated.
    """
    done, index = 0, own_rows(batch, index, world)
    for _, block in batch.prompt_blocks(tokens, index):
        prompts = encode(block)
        leaves = prompts.leaves()
        for _, rows in block.micro_batches(tokens):
            loss(leaves, rows).backward()  # type: ignore[no-untyped-call]
            done += len(rows)
            if on_microbatch is not None:
                on_microbatch(done, len(index))
        prompts.backward(leaves)
