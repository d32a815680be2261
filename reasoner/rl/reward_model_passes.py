"""Passes of a reward model over a batch: the score of every completion, read at its last sampled token.

Shapes: N rows, T completion positions, H width of the states.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from reasoner.models.loading import PromptCache
from reasoner.models.reward_model import reward_mean
from reasoner.models.sharding import DistributedModel
from reasoner.rl.batch import Batch
from reasoner.rl.microbatches import OnMicrobatch, Passes


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
