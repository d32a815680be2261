"""Passes of a language model over a batch: the log-probabilities of completion tokens.

Shapes: N rows, T completion positions, H width of the states.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from reasoner.models.fused_lm_head import log_softmax_and_kl
from reasoner.models.loading import PromptCache, completion_logprobs
from reasoner.models.output_layer import OutputLayer
from reasoner.rl.batch import Batch
from reasoner.rl.microbatches import OnMicrobatch, Passes


@dataclass(frozen=True, slots=True)
class ModelPasses(Passes):
    """The passes of a language model."""

    temperature: float  # of the log-probabilities: that of sampling
    learns_entropy: bool = False  # whether the entropy has a gradient

    def logprobs(self, states: Tensor, rows: Batch) -> tuple[Tensor, Tensor]:
        """[N, T, H] states -> ([N, T] log-probabilities of the tokens, [N, T] entropies), in nats."""
        with self.precision():
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
        with self.precision():
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

    def all_logprobs(self, batch: Batch, on_microbatch: OnMicrobatch | None = None) -> Tensor:
        """[N, T] log-probabilities of the whole batch, without gradient. A collective operation."""

        def microbatch_logprobs(prompts: PromptCache, rows: Batch) -> Tensor:
            return self.logprobs(self.states(prompts, rows), rows)[0]

        return self.for_each_row(batch, microbatch_logprobs, on_microbatch=on_microbatch)
