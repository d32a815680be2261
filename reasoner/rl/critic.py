"""The critic: what a state is worth, learnt beside the policy (PPO: Schulman et al. 2017).

A model of its own with the policy's weights to begin with, and a head that begins at 0. The state before token t is
what the model that has read the prompt and t tokens knows; V of it stands in values[:, t].

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


class Critic(nn.Module):
    """Trunk and head, and the optimiser that moves them."""

    def __init__(self, policy: PreTrainedModel, cfg: Config) -> None:
        super().__init__()
        self.trunk = deepcopy(policy.base_model).requires_grad_(True)
        width = policy.config.get_text_config().hidden_size
        self.head = nn.Linear(width, 1, device=policy.device)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)
        self.cfg = cfg
        self.optimizer = torch.optim.AdamW(self.parameters(), lr=cfg.critic.lr, weight_decay=0.0)

    @property
    def base_model(self) -> nn.Module:
        """Where reasoner.models looks for what reads."""
        return self.trunk

    @torch.no_grad()
    def values(self, batch: Batch) -> Tensor:
        """[N, T + 1], the last one of a row being V of the state after its last token."""
        found = torch.zeros(len(batch), batch.completion_ids.shape[1] + 1, device=batch.lengths.device)
        tokens = self.cfg.optim.micro_batch_tokens
        for outer, block in batch.prompt_blocks(tokens, torch.arange(len(batch), device=batch.lengths.device)):
            prompts = read_prompts(self, block.prompt_ids, block.prompt_lengths)
            for inner, rows in block.micro_batches(tokens):
                found[outer[inner], : rows.completion_ids.shape[1] + 1] = self._values(prompts, rows)
        return found

    def _values(self, prompts: ReadPrompts, rows: Batch) -> Tensor:
        states = completion_states(self, prompts, rows.prompt_of, rows.completion_ids, after_last=True)
        return self.head(states)[..., 0]

    def update(self, batch: Batch) -> dict[str, float]:
        """One optimiser step towards the batch's returns; the loss, and how much of the returns' variance is told.

        The rows weigh as they do in the policy's loss: batch.weights.
        """
        assert batch.returns is not None and batch.values is not None, "the critic learns from values and returns"
        tokens, total = self.cfg.optim.micro_batch_tokens, 0.0
        self.optimizer.zero_grad()
        for _, block in batch.prompt_blocks(tokens, torch.arange(len(batch), device=batch.lengths.device)):
            prompts = read_prompts(self, block.prompt_ids, block.prompt_lengths)
            leaves = prompts.leaves()
            for _, rows in block.micro_batches(tokens):
                assert rows.returns is not None and rows.values is not None
                width = rows.completion_ids.shape[1]
                found = self._values(leaves, rows)[:, :width]
                per_token = value_loss(found, rows.values[:, :width], rows.returns, clip=self.cfg.critic.clip)
                loss = (rows.weights * per_token).sum()
                loss.backward()
                total += float(loss.detach())
            prompts.backward(leaves)
        norm = nn.utils.clip_grad_norm_(self.parameters(), self.cfg.optim.max_grad_norm)
        if torch.isfinite(norm):
            self.optimizer.step()
        return {"critic/loss": total, "critic/explained": _explained(batch)}

    def state(self) -> dict[str, Tensor]:
        """Weights and the optimiser's averages, by name."""
        kept = {f"model.{name}": tensor for name, tensor in self.state_dict().items()}
        names = [name for name, _ in self.named_parameters()]
        for i, averages in self.optimizer.state_dict()["state"].items():
            kept |= {f"optimizer.{names[i]}.{key}": value for key, value in averages.items()}
        return kept

    def restore(self, state: Mapping[str, Tensor]) -> None:
        self.load_state_dict({k.removeprefix("model."): v for k, v in state.items() if k.startswith("model.")})
        own = self.optimizer.state_dict()
        for i, (name, _) in enumerate(self.named_parameters()):
            prefix = f"optimizer.{name}."
            averages = {k.removeprefix(prefix): v for k, v in state.items() if k.rpartition(".")[0] + "." == prefix}
            if averages:
                own["state"][i] = averages
        self.optimizer.load_state_dict(own)


def _explained(batch: Batch) -> float:
    """1 - Var(returns - values) / Var(returns) over the tokens: 1 is all, 0 no better than a constant."""
    assert batch.returns is not None and batch.values is not None
    returns, values = batch.returns[batch.mask], batch.values[:, :-1][batch.mask]
    spread = returns.var(correction=0)
    return float(1 - (returns - values).var(correction=0) / spread) if spread > 0 else 0.0
