"""The critic: what a state is worth, learnt beside the policy (PPO: Schulman et al. 2017).

A head that begins at 0, on a trunk of its own with the policy's weights to begin with, or on the policy's trunk. The
state before token t is what the model that has read the prompt and t tokens knows; V of it stands in values[:, t].

Shapes: N rows, T completion positions, H width.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from copy import deepcopy

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from reasoner.config.schema import Config
from reasoner.models.loading import ReadPrompts, completion_states, read_prompts
from reasoner.rl.batch import Batch
from reasoner.rl.losses import value_loss
from reasoner.rl.microbatches import (
    add_gradient,
    averages,
    compute_precision,
    every_row,
    forward_micro_batches,
    put_averages,
)


class Critic:
    """Head and trunk, and the optimiser that moves what is the critic's own of them."""

    def __init__(self, policy: PreTrainedModel, cfg: Config, *, shared: bool) -> None:
        self.shared = shared
        self.base_model = policy.base_model if shared else deepcopy(policy.base_model).requires_grad_(True)
        self.head = nn.Linear(policy.config.get_text_config().hidden_size, 1, device=policy.device)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)
        self.own = nn.ModuleDict({"head": self.head} if shared else {"trunk": self.base_model, "head": self.head})
        self.cfg = cfg
        self.optimizer = torch.optim.AdamW(self.own.parameters(), lr=cfg.critic.lr, weight_decay=0.0)

    def values(self, batch: Batch) -> Tensor:
        """[N, T + 1], the last one of a row being V of the state after its last token."""
        return every_row(batch, self._read, self._values, tokens=self.cfg.optim.micro_batch_tokens, extra=1)

    def _read(self, block: Batch) -> ReadPrompts:
        with self._precision():
            return read_prompts(self, block.prompt_ids, block.prompt_lengths)

    def _states(self, prompts: ReadPrompts, rows: Batch, *, after_last: bool = False) -> Tensor:
        """[N, T, H] before each token; [N, T + 1, H] `after_last`."""
        with self._precision():
            return completion_states(self, prompts, rows.prompt_of, rows.completion_ids, after_last=after_last)

    def _precision(self) -> AbstractContextManager[object]:
        return compute_precision(self.head.weight.device, self.cfg.optim.dtype)

    def _values(self, prompts: ReadPrompts, rows: Batch) -> Tensor:
        return self._of(self._states(prompts, rows, after_last=True))

    def _of(self, states: Tensor) -> Tensor:
        return self.head(states.float())[..., 0]

    def loss(self, states: Tensor, rows: Batch) -> Tensor:
        """The rows' share of the loss from the states before each token, [N, T, H]; rows weigh as batch.weights say."""
        assert rows.values is not None and rows.returns is not None, "the critic learns from values and returns"
        width = states.shape[1]
        old, returns = rows.values[:, :width], rows.returns[:, :width]
        return (rows.weights * value_loss(self._of(states), old, returns, clip=self.cfg.critic.clip)).sum()

    def update(self, batch: Batch, *, lr_factor: float) -> float:
        """One optimiser step of the critic's own parameters towards the batch's returns; the loss before it.

        On a shared trunk that is the head alone: the trunk is the policy's and stays as it is.
        """
        total, tokens = 0.0, self.cfg.optim.micro_batch_tokens
        self.optimizer.zero_grad()
        if self.shared:
            frozen_read, frozen_states = torch.no_grad()(self._read), torch.no_grad()(self._states)
            for _, prompts, rows in forward_micro_batches(batch, frozen_read, tokens=tokens):
                loss = self.loss(frozen_states(prompts, rows), rows)
                loss.backward()
                total += float(loss.detach())
        else:

            def counted_loss(prompts: ReadPrompts, rows: Batch) -> Tensor:
                nonlocal total
                loss = self.loss(self._states(prompts, rows), rows)
                total += float(loss.detach())
                return loss

            every = torch.arange(len(batch), device=batch.lengths.device)
            add_gradient(batch, every, self._read, counted_loss, tokens=tokens)
        self.step(lr_factor=lr_factor)
        return total

    def step(self, *, lr_factor: float) -> None:
        """Follow the gradient that the critic's own parameters hold, where it is finite, at critic.lr * lr_factor."""
        norm = nn.utils.clip_grad_norm_(self.own.parameters(), self.cfg.optim.max_grad_norm)
        if torch.isfinite(norm):
            for param_group in self.optimizer.param_groups:
                param_group["lr"] = self.cfg.critic.lr * lr_factor
            self.optimizer.step()
        self.optimizer.zero_grad()

    def state(self) -> dict[str, Tensor]:
        """Weights and the optimiser's averages, by name."""
        weights = {f"model.{name}": tensor.contiguous() for name, tensor in self.own.state_dict().items()}
        kept = averages(self.optimizer, list(self.own.named_parameters()))
        return weights | {f"optimizer.{name}": tensor for name, tensor in kept.items()}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        def part(prefix: str) -> dict[str, Tensor]:
            return {key.removeprefix(prefix): value for key, value in state.items() if key.startswith(prefix)}

        self.own.load_state_dict(part("model."))
        put_averages(self.optimizer, list(self.own.named_parameters()), part("optimizer."))


def explained(batch: Batch) -> float:
    """1 - Var(returns - values) / Var(returns) over the tokens: 1 is all, 0 no better than a constant."""
    assert batch.returns is not None and batch.values is not None
    returns, values = batch.returns[batch.mask], batch.values[:, :-1][batch.mask]
    spread = returns.var(correction=0)
    return float(1 - (returns - values).var(correction=0) / spread) if spread > 0 else 0.0
