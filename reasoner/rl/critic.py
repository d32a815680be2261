"""The critic: what a state is worth, learnt beside the policy (PPO: Schulman et al. 2017).

A head that begins at 0, on a trunk of its own with the policy's weights to begin with, or on the policy's trunk. The
state before token t is what the model that has read the prompt and t tokens knows; V of it stands in values[:, t].

Shapes: N rows, T completion positions, H width.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from reasoner.config import Config
from reasoner.models import ReadPrompts, completion_states, read_prompts
from reasoner.rl.batch import Batch
from reasoner.rl.losses import value_loss
from reasoner.rl.passes import add_gradient, averages, every_row, put_averages


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
        return read_prompts(self, block.prompt_ids, block.prompt_lengths)

    def _values(self, prompts: ReadPrompts, rows: Batch) -> Tensor:
        states = completion_states(self, prompts, rows.prompt_of, rows.completion_ids, after_last=True)
        return self._of(states)

    def _of(self, states: Tensor) -> Tensor:
        return self.head(states.float())[..., 0]

    def loss(self, states: Tensor, rows: Batch) -> Tensor:
        """The rows' share of the loss from the states before each token, [N, T, H]; rows weigh as batch.weights say."""
        assert rows.values is not None and rows.returns is not None, "the critic learns from values and returns"
        width = states.shape[1]
        old, returns = rows.values[:, :width], rows.returns[:, :width]
        return (rows.weights * value_loss(self._of(states), old, returns, clip=self.cfg.critic.clip)).sum()

    def update(self, batch: Batch) -> float:
        """One optimiser step of a trunk of its own towards the batch's returns; the loss before it."""
        total = 0.0

        def loss(prompts: ReadPrompts, rows: Batch) -> Tensor:
            nonlocal total
            found = self.loss(completion_states(self, prompts, rows.prompt_of, rows.completion_ids), rows)
            total += float(found.detach())
            return found

        self.optimizer.zero_grad()
        every = torch.arange(len(batch), device=batch.lengths.device)
        add_gradient(batch, every, self._read, loss, tokens=self.cfg.optim.micro_batch_tokens)
        self.step()
        return total

    def step(self) -> None:
        """Follow the gradient that the critic's own parameters hold, where it is finite."""
        norm = nn.utils.clip_grad_norm_(self.own.parameters(), self.cfg.optim.max_grad_norm)
        if torch.isfinite(norm):
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
