"""Passes of a reward model over a batch: the score of every completion, read at its last sampled token.

Shapes: N rows, T completion positions, H width of the states.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from reasoner.distributed.world import ALONE, World
from reasoner.models.loading import PromptCache, completion_states, encode_prompts
from reasoner.models.reward_model import reward_mean
from reasoner.models.sharding import DistributedModel
from reasoner.rl.batch import Batch
from reasoner.rl.microbatches import OnMicrobatch, compute_precision, gradient_microbatches, iterate_microbatches


@dataclass(frozen=True, slots=True)
class RewardModelPasses:
    """A reward model with the precision and the micro-batches of its passes."""

    model: PreTrainedModel
    dtype: str = "float32"  # float32 | bfloat16
    micro_batch_tokens: int = 8192  # rows x length, padding included
    world: World = ALONE

    @property
    def head(self) -> nn.Linear:
        """The linear layer from states to scores, whose precision is float32."""
        return cast(nn.Linear, self.model.score)

    @property
    def _distributed(self) -> DistributedModel:
        return DistributedModel(self.model, self.world)

    def encode(self, block: Batch) -> PromptCache:
        """Run the block's prompts through the model, each once."""
        with compute_precision(self.model.device, self.dtype):
            return encode_prompts(self.model, block.prompt_ids, block.prompt_lengths)

    def scores(self, prompts: PromptCache, rows: Batch) -> Tensor:
        """[N] scores of the rows. A completion without tokens is scored at the end of its prompt."""
        with compute_precision(self.model.device, self.dtype):
            states = completion_states(
                self.model, prompts, rows.prompt_of, rows.completion_ids, after_last=True
            )  # [N, T + 1, H]
        last = torch.arange(len(rows), device=rows.lengths.device)
        scores: Tensor = self.head(states[last, rows.lengths].to(self.head.weight.dtype))[:, 0]
        return scores

    @torch.no_grad()
    def all_scores(self, batch: Batch) -> Tensor:
        """[N] scores of the whole batch, without gradient. A collective operation."""
        scores = torch.zeros(len(batch), dtype=self.head.weight.dtype, device=batch.lengths.device)
        tokens, model = self.micro_batch_tokens, self._distributed
        for index, prompts, rows in iterate_microbatches(batch, self.encode, tokens=tokens, model=model):
            scores[index] = self.scores(prompts, rows)
        self.world.sum_(scores, "scores of the reward model")  # a row of another rank is 0 here
        return scores

    def rewards(self, batch: Batch) -> Tensor:
        """[N] scores less the mean in the model's config, as they are used as rewards. Moves the batch to the model."""
        return self.all_scores(batch.to(self.model.device)) - reward_mean(self.model)

    def backward(self, batch: Batch, gradients: Tensor, on_microbatch: OnMicrobatch | None = None) -> None:
        """Accumulate the gradient of a loss in the parameters, from its gradients [N] with respect to the scores."""
        tokens, model = self.micro_batch_tokens, self._distributed
        for prompts, rows in gradient_microbatches(
            batch, self.encode, tokens=tokens, model=model, on_microbatch=on_microbatch
        ):
            loss = (gradients[rows.row_index] * self.scores(prompts, rows)).sum()
            loss.backward()  # type: ignore[no-untyped-call]
