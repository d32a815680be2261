"""The critic: a value function trained with the policy (PPO: Schulman et al. 2017).

A linear head, initialised to 0, on a copy of the policy's backbone or on the policy's own; or head and backbone of a
reward model (critic.init). values[:, t] is V of the state before completion token t: the hidden state after the prompt
and t completion tokens.

Shapes: N rows, T completion positions, H width.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import cast

import torch
from torch import Tensor, nn
from torch.optim import AdamW
from transformers import PreTrainedModel

from reasoner.config.schema import Config
from reasoner.distributed.gradients import sum_gradients
from reasoner.distributed.world import ALONE, World
from reasoner.models.compiled_layers import compile_layers
from reasoner.models.loading import PromptCache
from reasoner.models.lora import trained_parameters
from reasoner.models.recompute import recompute_layers
from reasoner.models.reward_model import reward_mean
from reasoner.models.sharding import distribute, load_state
from reasoner.rl.batch import Batch
from reasoner.rl.losses import value_loss
from reasoner.rl.optimizers import clip_gradients, load_optimizer_state, optimizer_state, step_optimizer
from reasoner.rl.passes import Passes
from reasoner.runtime import deterministic_kernels


class Critic:
    """Value head and backbone, with an optimiser over the parameters that are not shared with the policy."""

    def __init__(self, policy: PreTrainedModel, cfg: Config, *, shared: bool, world: World = ALONE) -> None:
        """Before the policy is sharded, unless they share the backbone."""
        self.shared, self.world = shared, world
        backbone = policy if shared else _copy_of_trained(policy.base_model)
        if cfg.optim.compile:
            compile_layers(backbone)
        if cfg.optim.recompute:
            recompute_layers(backbone)
        distributed = distribute(backbone, cfg.optim.sharding, world, cfg.optim.dtype)
        self.passes = Passes(distributed, cfg.optim.dtype, cfg.optim.micro_batch_tokens)
        self.base_model = policy.base_model if shared else backbone
        self.head = nn.Linear(policy.config.get_text_config().hidden_size, 1, device=policy.device)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)
        self.own = nn.ModuleDict({"head": self.head} if shared else {"trunk": self.base_model, "head": self.head})
        self.cfg = cfg
        self.trained = trained_parameters(self.own)
        parameters = [parameter for _, parameter in self.trained]
        fused = True if policy.device.type == "cuda" else None  # the default has temporaries of their size
        self.optimizer = AdamW(parameters, lr=cfg.critic.lr, weight_decay=0.0, fused=fused)

    @torch.no_grad()
    def start_from(self, reward_model: PreTrainedModel, *, weight: float) -> None:
        """Copy the reward model's backbone and head: a value is its score of the response so far, times `weight`.
        ValueError for a model of another architecture. It may have more embeddings than the critic.
        """
        own, other = self.base_model.state_dict(), reward_model.base_model.state_dict()
        for name in own.keys() | other.keys():
            mine, its = (list(state[name].shape) if name in state else None for state in (own, other))
            if mine is None or its is None or mine[1:] != its[1:] or mine[:1] > its[:1]:
                raise ValueError(
                    f"critic.init is {self.cfg.critic.init!r}, whose {name} has the shape {its}; the critic, a copy of "
                    f"the policy {self.cfg.model!r}, has {mine}: it needs a reward model of the policy's architecture"
                )
        tensors = {name: other[name][: len(mine)] if mine.ndim else other[name] for name, mine in own.items()}
        load_state(self.base_model, tensors)
        self.head.weight.copy_(weight * cast(nn.Linear, reward_model.score).weight)
        self.head.bias.fill_(-weight * reward_mean(reward_model))

    def values(self, batch: Batch) -> Tensor:
        """[N, T] values before each token, without gradient. A collective operation."""
        return self.passes.for_each_row(batch, self._values)

    def _values(self, prompts: PromptCache, rows: Batch) -> Tensor:
        return self._head_values(self.passes.states(prompts, rows)).float()

    def _head_values(self, states: Tensor) -> Tensor:
        """[..., H] states -> [...] values, in the head's precision, which is float32."""
        values: Tensor = self.head(states.to(self.head.weight.dtype))[..., 0]
        return values

    def loss(self, states: Tensor, rows: Batch) -> Tensor:
        """Value loss, weighted by rows.weights [N, T] and summed, from the states [N, T, H] before each token."""
        assert rows.values is not None and rows.returns is not None, "the critic's loss needs values and returns"
        values, clip = self._head_values(states), self.cfg.critic.clip
        return (rows.weights * value_loss(values, rows.values, rows.returns, clip=clip)).sum()

    def update(self, batch: Batch, *, lr_factor: float) -> tuple[float, bool]:
        """Take one optimiser step towards the batch's returns. Returns (the loss before the step, whether the gradient
        was finite; if not, nothing was changed).

        With a shared backbone this trains the head alone; the policy's weights do not change.
        """
        total = 0.0
        self.optimizer.zero_grad()
        if self.shared:
            for _, prompts, rows in self.passes.microbatches(batch):
                with torch.no_grad():
                    states = self.passes.states(prompts, rows)
                loss = self.loss(states, rows)
                loss.backward()  # type: ignore[no-untyped-call]
                total += float(loss.detach())
        else:
            with deterministic_kernels(self.cfg.optim.deterministic):
                for prompts, rows in self.passes.gradient_microbatches(batch):
                    loss = self.loss(self.passes.states(prompts, rows), rows)
                    loss.backward()  # type: ignore[no-untyped-call]
                    total += float(loss.detach())
        self.sum_gradients()
        is_finite = self.step(lr_factor=lr_factor)
        return self.world.total(total, "the critic's loss"), is_finite

    def sum_gradients(self) -> None:
        """Sum the gradients of the critic's own parameters over the ranks."""
        sum_gradients([parameter for _, parameter in self.trained], self.world)

    def step(self, *, lr_factor: float) -> bool:
        """Apply the accumulated gradient, if it is finite, at learning rate critic.lr * lr_factor, and clear it.
        Returns whether it is finite.
        """
        norm = clip_gradients(self.own.parameters(), self.cfg.optim.max_grad_norm)
        is_finite = bool(torch.isfinite(norm))
        if is_finite:
            step_optimizer(self.optimizer, self.cfg.critic.lr * lr_factor)
        self.optimizer.zero_grad()
        return is_finite

    def state(self) -> dict[str, Tensor]:
        """Weights and optimiser state by name, for a checkpoint; whole or in shards, as this rank holds them."""
        frozen = {name for name, parameter in self.own.named_parameters() if not parameter.requires_grad}
        own = {name: tensor for name, tensor in self.own.state_dict().items() if name not in frozen}
        weights = {f"model.{name}": tensor.contiguous() for name, tensor in own.items()}
        moments = optimizer_state(self.optimizer, self.trained)
        return weights | {f"optimizer.{name}": tensor for name, tensor in moments.items()}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Load what state() returned, in whole tensors."""

        def part(prefix: str) -> dict[str, Tensor]:
            return {key.removeprefix(prefix): value for key, value in state.items() if key.startswith(prefix)}

        load_state(self.own, part("model."), strict=len(self.trained) == len(list(self.own.parameters())))
        load_optimizer_state(self.optimizer, self.trained, part("optimizer."))


def _copy_of_trained(backbone: nn.Module) -> nn.Module:
    """A copy of the backbone with trained parameters of its own. It shares those that LoRA leaves as they are."""
    return deepcopy(backbone, {id(own): own for own in backbone.parameters() if not own.requires_grad})


def explained_variance(batch: Batch) -> float:
    """Explained variance over the tokens: 1 - Var(returns - values) / Var(returns); 0 if all returns are equal."""
    assert batch.returns is not None and batch.values is not None
    returns, values = batch.returns[batch.mask], batch.values[batch.mask]
    variance = returns.var(correction=0)
    return float(1 - (returns - values).var(correction=0) / variance) if variance > 0 else 0.0
