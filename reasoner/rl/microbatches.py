"""Forward and backward passes over a batch: each prompt once, its completions in micro-batches.

Every rank has the whole batch, and computes the rows of its own prompts. Sums over rows, gradients among them, are then
sums over ranks; denominators are those of the whole batch.

Shapes: N rows, T completion positions, H width of the states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import chain
from typing import cast

import torch
from torch import Tensor
from transformers import PreTrainedModel

from reasoner.distributed.assignment import owners
from reasoner.distributed.world import World
from reasoner.models.embedding_gradients import accumulate_embedding_gradients
from reasoner.models.loading import PromptCache, completion_states, encode_prompts
from reasoner.models.sharding import DistributedModel
from reasoner.rl.batch import Batch

OnMicrobatch = Callable[[int, int], object]  # called after each micro-batch: (rows done, rows in all)


def compute_precision(device: torch.device, dtype: str, *, keeps_casts: bool = False) -> AbstractContextManager[object]:
    """Autocast context for computing in `optim.dtype`; the weights stay float32. With `keeps_casts` a matrix is cast
    once in the block, and its cast is held to the end of it: for blocks that use a matrix several times. A pass of the
    model uses each once; held, the casts would be a whole copy of the model.
    """
    is_low = dtype == "bfloat16"
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=is_low, cache_enabled=keeps_casts)


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


@dataclass(frozen=True, slots=True)
class Passes:
    """The passes of a transformer, with their precision and their micro-batches."""

    distributed: DistributedModel
    dtype: str  # optim.dtype
    micro_batch_tokens: int  # rows x length, padding included

    @property
    def model(self) -> PreTrainedModel:
        return cast(PreTrainedModel, self.distributed.model)

    @property
    def world(self) -> World:
        return self.distributed.world

    def precision(self) -> AbstractContextManager[object]:
        return compute_precision(self.model.device, self.dtype)

    def encode(self, block: Batch) -> PromptCache:
        """Run the block's prompts through the model, each once."""
        with self.precision():
            return encode_prompts(self.model, block.prompt_ids, block.prompt_lengths)

    def states(self, prompts: PromptCache, rows: Batch, *, after_last: bool = False) -> Tensor:
        """[N, T, H] last states before each completion token; with `after_last` [N, T + 1, H]."""
        with self.precision():
            return completion_states(self.model, prompts, rows.prompt_of, rows.completion_ids, after_last=after_last)

    def microbatches(self, batch: Batch) -> Iterator[tuple[Tensor, PromptCache, Batch]]:
        """Yield (index, prompts, rows): micro-batches that cover every row of this rank once, with the prompts' pass,
        without gradient. A collective operation if the model is sharded: a row that is not in the batch, with an empty
        index, keeps the ranks together.
        """
        with self.distributed.passes():
            for block, parts in self._blocks(batch, _all_rows(batch)):
                with torch.no_grad():
                    prompts = self.encode(block)
                for index, rows in parts:
                    yield index, prompts, rows

    @torch.no_grad()
    def for_each_row(
        self,
        batch: Batch,
        compute: Callable[[PromptCache, Batch], Tensor],
        *,
        extra: int = 0,
        on_microbatch: OnMicrobatch | None = None,
    ) -> Tensor:
        """Run `compute` for every row, without gradient -> [N, T + extra], 0 beyond a micro-batch's longest row.

        A collective operation: each rank computes its own rows, and gets those of the others.
        """
        done, num_own = 0, len(own_rows(batch, _all_rows(batch), self.world))
        values = torch.zeros(len(batch), batch.completion_ids.shape[1] + extra, device=batch.lengths.device)
        for index, prompts, rows in self.microbatches(batch):
            values[index, : rows.completion_ids.shape[1] + extra] = compute(prompts, rows)[: len(index)]
            done += len(index)
            if on_microbatch is not None:
                on_microbatch(done, num_own)
        self.world.sum_(values, "log-probabilities or values of the batch")  # a row of another rank is 0 here
        return values

    def gradient_microbatches(
        self, batch: Batch, index: Tensor | None = None, on_microbatch: OnMicrobatch | None = None
    ) -> Iterator[tuple[PromptCache, Batch]]:
        """Yield (prompts, rows): micro-batches that cover the indexed rows once, by default all, each rank its own. The
        caller computes the loss of each and calls its backward(): the parameters accumulate the gradient, in shards its
        sum over the ranks.

        The prompts of a block go through one forward and one backward pass. In between, the completions go through in
        micro-batches, and their gradients with respect to the prompts' states are accumulated. Without rows, which is
        so on every rank, there is no pass.
        """
        index = _all_rows(batch) if index is None else index
        if not len(index):
            return
        done, num_own = 0, len(own_rows(batch, index, self.world))
        blocks = list(self._blocks(batch, index))
        with self.distributed.passes(), accumulate_embedding_gradients(self.model):
            for block, parts in blocks:
                prompts = self.encode(block)
                leaves = prompts.leaves()
                for own, rows in parts:
                    yield leaves, rows
                    done += len(own)
                    if on_microbatch is not None:
                        on_microbatch(done, num_own)
                if block is blocks[-1][0]:
                    self.distributed.sync_gradients()
                prompts.backward(leaves)

    def _blocks(self, batch: Batch, index: Tensor) -> Iterator[tuple[Batch, Iterator[tuple[Tensor, Batch]]]]:
        """Yield (block of prompts, its micro-batches as (index, rows)): this rank's share of the indexed rows, and as
        many rows without tokens, whose index is empty, as the model needs.
        """
        tokens = self.micro_batch_tokens
        own = list(batch.prompt_blocks(tokens, own_rows(batch, index, self.world)))
        counts = [block.num_micro_batches(tokens) for _, block in own]
        needed = self.distributed.num_passes(counts)
        for (outer, block), count, most in zip(own, counts, needed, strict=False):
            yield block, chain(_micro_batches(outer, block, tokens), _empty_rows(batch, most - count))
        for most in needed[len(own) :]:
            yield batch.empty_row(), _empty_rows(batch, most)


def _micro_batches(outer: Tensor, block: Batch, tokens: int) -> Iterator[tuple[Tensor, Batch]]:
    """The block's micro-batches, with the index of their rows in the batch that `outer` gives for the block's."""
    for inner, rows in block.micro_batches(tokens):
        yield outer[inner], rows


def _empty_rows(batch: Batch, number: int) -> Iterator[tuple[Tensor, Batch]]:
    for _ in range(number):
        yield batch.lengths.new_zeros(0), batch.empty_row()
