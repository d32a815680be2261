"""Batches through a model: each prompt once, its completions in micro-batches.

Shapes: N rows, T completion positions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from reasoner.models.loading import ReadPrompts
from reasoner.rl.batch import Batch

Read = Callable[[Batch], ReadPrompts]
Passed = Callable[[int, int], object]  # after each micro-batch: (rows so far, rows of this pass)


def compute_precision(device: torch.device, dtype: str) -> AbstractContextManager[object]:
    """The block in which a model computes in `optim.dtype`; its weights stay float32."""
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=dtype == "bfloat16")


def forward_micro_batches(batch: Batch, read: Read, *, tokens: int) -> Iterator[tuple[Tensor, ReadPrompts, Batch]]:
    """(index, prompts, rows): micro-batches that hold every row once, with their prompts as the model has read them."""
    for outer, block in batch.prompt_blocks(tokens, torch.arange(len(batch), device=batch.lengths.device)):
        prompts = read(block)
        for inner, rows in block.micro_batches(tokens):
            yield outer[inner], prompts, rows


@torch.no_grad()
def every_row(
    batch: Batch,
    read: Read,
    figure: Callable[[ReadPrompts, Batch], Tensor],
    *,
    tokens: int,
    extra: int = 0,
    passed: Passed | None = None,
) -> Tensor:
    """[N, T + extra]: a figure of each position, 0 beyond a micro-batch's longest row."""
    done = 0
    values = torch.zeros(len(batch), batch.completion_ids.shape[1] + extra, device=batch.lengths.device)
    for index, prompts, rows in forward_micro_batches(batch, read, tokens=tokens):
        values[index, : rows.completion_ids.shape[1] + extra] = figure(prompts, rows)
        done += len(rows)
        if passed is not None:
            passed(done, len(batch))
    return values


def add_gradient(
    batch: Batch,
    index: Tensor,
    read: Read,
    loss: Callable[[ReadPrompts, Batch], Tensor],
    *,
    tokens: int,
    passed: Passed | None = None,
) -> None:
    """Add the gradient of the indexed rows' loss to the parameters.

    A block's prompts are computed once, forth and back. In between its completions go through in micro-batches, and
    their gradients with respect to what they read of the prompts add up.
    """
    done = 0
    for _, block in batch.prompt_blocks(tokens, index):
        prompts = read(block)
        leaves = prompts.leaves()
        for _, rows in block.micro_batches(tokens):
            loss(leaves, rows).backward()
            done += len(rows)
            if passed is not None:
                passed(done, len(index))
        prompts.backward(leaves)


def averages(optimizer: Optimizer, parameters: Sequence[tuple[str, nn.Parameter]]) -> dict[str, Tensor]:
    """What the optimiser keeps of each parameter: "<parameter>.<name>"."""
    names, state = [name for name, _ in parameters], optimizer.state_dict()["state"]
    return {f"{names[i]}.{key}": value.contiguous() for i, kept in state.items() for key, value in kept.items()}


def put_averages(
    optimizer: Optimizer, parameters: Sequence[tuple[str, nn.Parameter]], kept: Mapping[str, Tensor]
) -> None:
    """The way back. What is not there begins anew."""
    state = optimizer.state_dict()
    for index, (name, _) in enumerate(parameters):
        own = {key.rpartition(".")[2]: value.float() for key, value in kept.items() if key.rpartition(".")[0] == name}
        if own:
            state["state"][index] = own
    optimizer.load_state_dict(state)
