"""Passes of a language model over a batch: the states before each completion token, and their log-probabilities.

Shapes: N rows, T completion positions, H width of the states.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import cast

from torch import Tensor
from transformers import PreTrainedModel

from reasoner.distributed.world import World
from reasoner.models.fused_lm_head import log_softmax_and_kl
from reasoner.models.loading import PromptCache, completion_logprobs, completion_states, encode_prompts
from reasoner.models.output_layer import OutputLayer
from reasoner.models.sharding import DistributedModel
from reasoner.rl.batch import Batch
from reasoner.rl.microbatches import (
    OnMicrobatch,
    compute_precision,
    forward_microbatches,
    gradient_microbatches,
    iterate_microbatches,
)


@dataclass(frozen=True, slots=True)
class ModelPasses:
    """A model with the precision, the temperature and the micro-batches of its passes."""

    distributed: DistributedModel
    dtype: str  # optim.dtype
    temperature: float  # of the log-probabilities: that of sampling
    micro_batch_tokens: int  # rows x length, padding included
    learns_entropy: bool = False  # whether the entropy has a gradient

    @property
    def model(self) -> PreTrainedModel:
        return cast(PreTrainedModel, self.distributed.model)

    @property
    def world(self) -> World:
        return self.distributed.world

    def encode(self, block: Batch) -> PromptCache:
        """Run the block's prompts through the model, each once."""
        with self._precision():
            return encode_prompts(self.model, block.prompt_ids, block.prompt_lengths)

    def states(self, prompts: PromptCache, rows: Batch) -> Tensor:
        """[N, T, H] last states before each completion token."""
        with self._precision():
            return completion_states(self.model, prompts, rows.prompt_of, rows.completion_ids)

    def logprobs(self, states: Tensor, rows: Batch) -> tuple[Tensor, Tensor]:
        """[N, T, H] states -> ([N, T] log-probabilities of the tokens, [N, T] entropies), in nats."""
        with self._precision():
            return completion_logprobs(
                self.model,
                states,
                rows.completion_ids,
                rows.mask,
                temperature=self.temperature,
                learns_entropy=self.learns_entropy,
            )

    def logprobs_and_kl(
        self, states: Tensor, rows: Batch, teacher: OutputLayer, teacher_states: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """logprobs(), and [N, T] KL(policy || teacher) over the vocabulary at each token, in nats; 0 in the padding."""
        mask = rows.mask
        with self._precision():
            logprobs, entropy, kl = log_softmax_and_kl(
                OutputLayer.of(self.model),
                states[mask],
                rows.completion_ids[mask],
                (teacher, teacher_states[mask]),
                temperature=self.temperature or 1.0,
                learns_entropy=self.learns_entropy,
            )
        empty = logprobs.new_zeros(mask.shape)
        return empty.masked_scatter(mask, logprobs), empty.masked_scatter(mask, entropy), empty.masked_scatter(mask, kl)

    def microbatches(self, batch: Batch) -> Iterator[tuple[Tensor, PromptCache, Batch]]:
        """Yield (index, prompts, rows): micro-batches that cover every row of this rank once."""
        return iterate_microbatches(batch, self.encode, tokens=self.micro_batch_tokens, model=self.distributed)

    def gradient_microbatches(
        self, batch: Batch, index: Tensor | None = None, on_microbatch: OnMicrobatch | None = None
    ) -> Iterator[tuple[PromptCache, Batch]]:
        """Yield (prompts, rows): micro-batches of the indexed rows, by default of all, each rank its own; the caller
        calls backward() on the loss of each.
        """
        tokens, model = self.micro_batch_tokens, self.distributed
        return gradient_microbatches(
            batch, self.encode, tokens=tokens, model=model, index=index, on_microbatch=on_microbatch
        )

    def all_logprobs(self, batch: Batch, on_microbatch: OnMicrobatch | None = None) -> Tensor:
        """[N, T] log-probabilities of the whole batch, without gradient. A collective operation."""

        def microbatch_logprobs(prompts: PromptCache, rows: Batch) -> Tensor:
            return self.logprobs(self.states(prompts, rows), rows)[0]

        return forward_microbatches(
            batch,
            self.encode,
            microbatch_logprobs,
            tokens=self.micro_batch_tokens,
            model=self.distributed,
            on_microbatch=on_microbatch,
        )

    def _precision(self) -> AbstractContextManager[object]:
        return compute_precision(self.model.device, self.dtype)
