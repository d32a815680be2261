"""Forward and backward passes over a batch: each prompt once, its completions in micro-batches. Those of a language
model give log-probabilities of completion tokens, those of a reward model a score at the last sampled token.

Every rank has the whole batch, and computes the rows of its own prompts. Sums over rows, gradients among them, are then
sums over ranks; denominators are those of the whole batch.

Shapes: N rows, T completion positions, H width of the states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import chain
from typing import cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from reasoner.distributed.world import World
from reasoner.models.embedding_gradients import accumulate_embedding_gradients
from reasoner.models.fused_lm_head import Teacher
from reasoner.models.loading import PromptCache, completion_logprobs, completion_states, encode_prompts
from reasoner.models.reward_model import reward_mean
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


def owners(sizes: Sequence[int], num_ranks: int) -> list[int]:
    """The rank of each item, from the items' sizes in tokens: the same on every rank.

    The largest item that is left goes to the rank with the least (Graham 1969): the loads of two ranks differ by at
    most the largest item. Of equal items the earlier goes first, of equal ranks the lower one gets it.
    """
    loads = [0] * num_ranks
    result = [0] * len(sizes)
    for item in sorted(range(len(sizes)), key=lambda item: -sizes[item]):
        result[item] = rank = loads.index(min(loads))
        loads[rank] += sizes[item]
    return result


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
        on_microbatch: OnMicrobatch | None = None,
    ) -> Tensor:
        """Run `compute` for every row, without gradient -> [N, T], 0 beyond a micro-batch's longest row.

        A collective operation: each rank computes its own rows, and gets those of the others.
        """
        done, num_own = 0, len(own_rows(batch, _all_rows(batch), self.world))
        values = torch.zeros(len(batch), batch.completion_ids.shape[1], device=batch.lengths.device)
        for index, prompts, rows in self.microbatches(batch):
            values[index, : rows.completion_ids.shape[1]] = compute(prompts, rows)[: len(index)]
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
        counts = [len(block.parts(tokens)) for _, block in own]
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


@dataclass(frozen=True, slots=True)
class ModelPasses(Passes):
    """The passes of a language model."""

    temperature: float  # of the log-probabilities: that of sampling
    learns_entropy: bool = False  # whether the entropy has a gradient

    def logprobs(self, states: Tensor, rows: Batch, teacher: Teacher | None = None) -> tuple[Tensor, ...]:
        """[N, T, H] states -> [N, T] log-probabilities of the tokens, and entropies, in nats. With a teacher's output
        layer and its states [N, T, H'] also KL(policy || teacher) over the vocabulary at each token.
        """
        with self.precision():
            return completion_logprobs(
                self.model,
                states,
                rows.completion_ids,
                rows.mask,
                temperature=self.temperature,
                learns_entropy=self.learns_entropy,
                teacher=teacher,
            )

    def all_logprobs(self, batch: Batch, on_microbatch: OnMicrobatch | None = None) -> Tensor:
        """[N, T] log-probabilities of the whole batch, without gradient. A collective operation."""

        def microbatch_logprobs(prompts: PromptCache, rows: Batch) -> Tensor:
            return self.logprobs(self.states(prompts, rows), rows)[0]

        return self.for_each_row(batch, microbatch_logprobs, on_microbatch)


class RewardModelPasses(Passes):
    """The passes of a reward model, which this process has whole."""

    def __init__(self, model: PreTrainedModel, dtype: str = "float32", micro_batch_tokens: int = 8192) -> None:
        super().__init__(DistributedModel(model), dtype, micro_batch_tokens)

    @property
    def head(self) -> nn.Linear:
        """The linear layer from states to scores, whose precision is float32."""
        return cast(nn.Linear, self.model.score)

    def scores(self, prompts: PromptCache, rows: Batch) -> Tensor:
        """[N] scores of the rows. A completion without tokens is scored at the end of its prompt."""
        states = self.states(prompts, rows, after_last=True)
        last = torch.arange(len(rows), device=rows.lengths.device)
        scores: Tensor = self.head(states[last, rows.lengths].to(self.head.weight.dtype))[:, 0]
        return scores

    @torch.no_grad()
    def all_scores(self, batch: Batch) -> Tensor:
        """[N] scores of the whole batch, without gradient."""
        scores = torch.zeros(len(batch), dtype=self.head.weight.dtype, device=batch.lengths.device)
        for index, prompts, rows in self.microbatches(batch):
            scores[index] = self.scores(prompts, rows)
        return scores

    def rewards(self, batch: Batch) -> Tensor:
        """[N] scores less the mean in the model's config, as they are used as rewards. Moves the batch to the model."""
        return self.all_scores(batch.to(self.model.device)) - reward_mean(self.model)

    def backward(self, batch: Batch, gradients: Tensor, on_microbatch: OnMicrobatch | None = None) -> None:
        """Accumulate the gradient of a loss in the parameters, from its gradients [N] with respect to the scores."""
        for prompts, rows in self.gradient_microbatches(batch, on_microbatch=on_microbatch):
            loss = (gradients[rows.row_index] * self.scores(prompts, rows)).sum()
            loss.backward()  # type: ignore[no-untyped-call]
