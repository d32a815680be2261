"""The policy trainer: turns graded completions into a batch with advantages, and takes optimiser steps on it.

Shapes: P prompts, G completions of each, N = P * G rows, T completion positions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from reasoner.config.schema import Config
from reasoner.distributed.world import ALONE, World
from reasoner.models.folder import BaseModel
from reasoner.models.lora import adapter_off
from reasoner.models.sharding import DistributedModel, distribute
from reasoner.rl.algorithms import Algorithm
from reasoner.rl.batch import Batch, collate
from reasoner.rl.credit import kept_rows, with_advantages
from reasoner.rl.critic import Critic
from reasoner.rl.kl import CONTROLLERS, adapt_coefficient, response_kl
from reasoner.rl.microbatches import backward_microbatches
from reasoner.rl.model_passes import ModelPasses
from reasoner.rl.policy_loss import PolicyLoss
from reasoner.rl.process_rewards import step_rewards
from reasoner.rl.token_stats import TokenStats
from reasoner.rollouts.selection import PassRates
from reasoner.runtime import deterministic_kernels
from reasoner.trainer.constrained_update import constrained_update
from reasoner.trainer.critic_update import update_critic
from reasoner.trainer.model_trainer import ModelTrainer
from reasoner.trainer.pretraining_mix import PretrainingMix
from reasoner.trainer.schedule import learning_rate_factor, minibatches
from reasoner.types import RolloutGroup

# Averages over tokens, by the name of their metric.
_AVERAGES = {
    "kl": "kl",
    "entropy": "entropy",
    "clipped": "clip_ratio",
    "gap": "sampling/logprob_diff_mean",
    "importance": "sampling/importance_mean",
    "importance_capped": "sampling/importance_clipped",
}


class PolicyTrainer(ModelTrainer):
    """The policy, its optimiser, the frozen reference (None without a KL penalty) and the critic, if there is one.

    Every rank of `world` has all of them and gets the same batches; the passes through the models are divided.
    """

    STATE: ClassVar[tuple[str, ...]] = ("steps_done", "moving_reward", "penalty", "beta", "attempt", "lr_scale")

    def __init__(
        self,
        policy: PreTrainedModel,
        reference: PreTrainedModel | None,
        algorithm: Algorithm,
        cfg: Config,
        tokenizer: PreTrainedTokenizerBase | None = None,
        world: World = ALONE,
        *,
        base_model: BaseModel | None = None,
        pretraining_mix: PretrainingMix | None = None,
    ) -> None:
        """`tokenizer` is needed by process rewards alone, which locate the tokens of each reasoning step. A policy with
        a LoRA adapter is its own reference, with the adapter off; `base_model` is that of the adapter.
        """
        is_shared = algorithm.critic_backbone == "shared"
        if algorithm.critic:  # before the policy, which it copies, is sharded
            self.critic = Critic(policy, cfg, shared=is_shared, world=world)
        super().__init__(policy, cfg, world)
        self.policy = policy
        self.reference = reference
        self.algorithm = algorithm
        self.tokenizer = tokenizer
        self.base_model = base_model
        self.pretraining_mix = pretraining_mix
        self._reference = None if reference is None else distribute(reference, cfg.optim.sharding, world)
        self.beta = cfg.algo.beta  # current coefficient of the KL penalty towards the reference
        self.penalty = cfg.algo.penalty  # current coefficient of KL(old || new)
        self.attempt = 0  # number of rollbacks of the run
        self.pass_rates = PassRates() if cfg.data.selection == "learnability" else None  # by which problems are chosen
        self.moving_reward = 0.0  # moving average of earlier steps' mean rewards, for algo.baseline moving
        # Whether a row without advantage has a gradient all the same: from the KL penalty in the loss, the entropy
        # bonus, a critic on the policy's backbone, or from the second update on the penalty on KL(old || new).
        has_kl_loss = reference is not None and algorithm.kl_in == "loss"
        has_shared_critic = algorithm.critic and is_shared
        has_penalty = algorithm.trust == "penalty" and algorithm.updates > 1
        self._has_regularizer = has_kl_loss or cfg.algo.entropy_coef > 0 or has_shared_critic or has_penalty

    def passes(self, model: DistributedModel | None = None) -> ModelPasses:
        """The passes of a model, by default the policy, over batches of this run."""
        optim, has_entropy_gradient = self.cfg.optim, self.cfg.algo.entropy_coef > 0
        return ModelPasses(
            model or self.distributed,
            optim.dtype,
            self.cfg.sampling.temperature,
            optim.micro_batch_tokens,
            learns_entropy=has_entropy_gradient,
        )

    @property
    def policy_loss(self) -> PolicyLoss:
        """The loss of the policy with the coefficients of now."""
        critic = self.critic if self.critic is not None and self.critic.shared else None
        return PolicyLoss(self.passes(), self.algorithm, self.cfg, self.beta, self.penalty, critic)

    # ------------------------------------------------------------------------------------------------ batch

    def prepare_batch(self, groups: Sequence[RolloutGroup]) -> Batch:
        """Collate the groups and add reference and old log-probabilities, values and advantages."""
        steps = None
        if self.algorithm.returns == "process":
            assert self.tokenizer is not None, "process rewards without a tokenizer"
            # Whether an equation holds is mathematics, which a control run must not learn: it has its outcome alone.
            gated, is_control = self.algorithm.step_credit == "gated", bool(self.cfg.control)
            backend = self.tokenizer.backend_tokenizer
            steps = step_rewards(groups, backend, gated=gated, outcome_only=is_control)
        return self.compute_advantages(self.compute_logprobs(collate(groups, steps).to(self.policy.device)))

    @torch.no_grad()
    def compute_logprobs(self, batch: Batch) -> Batch:
        """Add log-probabilities of the reference (0 in rows that have no use for them) and, before several updates, of
        the policy; and the critic's values.
        """
        on_microbatch = partial(self.on_microbatch, "log-probabilities")
        if self.reference is not None:
            index, ref_logprobs = self._rows_with_penalty(batch), torch.zeros_like(batch.sampler_logprobs)
            with adapter_off(self.reference):
                computed = self.passes(self._reference).all_logprobs(batch.rows(index), on_microbatch)
            ref_logprobs[index, : computed.shape[1]] = computed
            batch = replace(batch, ref_logprobs=ref_logprobs)
        if self.algorithm.updates > 1 or self.algorithm.trust != "none":
            batch = replace(batch, old_logprobs=self.passes().all_logprobs(batch, on_microbatch))
        return batch if self.critic is None else replace(batch, values=self.critic.values(batch))

    def _rows_with_penalty(self, batch: Batch) -> Tensor:
        """Index of the rows that need the reference: all, unless only the loss of the rows that are kept does."""
        algo = self.cfg.algo
        measures_responses = algo.kl_target and CONTROLLERS[algo.kl_controller].is_of_response
        if self.algorithm.filter_zero_advantages and self.algorithm.kl_in == "loss" and not measures_responses:
            return kept_rows(batch, self.algorithm, algo.group_size)
        return torch.arange(len(batch), device=batch.lengths.device)

    def compute_advantages(self, batch: Batch) -> Batch:
        """Add advantages to a batch with log-probabilities. Updates the moving average of rewards."""
        batch = with_advantages(batch, self.algorithm, self.cfg, beta=self.beta, moving_reward=self.moving_reward)
        mean, decay = float(batch.rewards.mean()), self.cfg.algo.moving_decay if self.steps_done else 0.0
        self.moving_reward = decay * self.moving_reward + (1 - decay) * mean
        return batch

    # ------------------------------------------------------------------------------------------------ update

    def train_step(
        self, batch: Batch, token_stats: TokenStats | None = None, *, tokens_before: float = 0
    ) -> dict[str, float]:
        """Take all optimiser steps on the batch. Returns the metrics (names: docs/METRICS.md), averaged over the tokens
        with a gradient; without any there is no entropy, KL or log-probability difference.

        `token_stats` may store values of every token. `tokens_before` is the number of tokens that the run sampled
        before this batch: with max_train_tokens the learning rate follows it.
        """
        token_stats, sampled = token_stats or TokenStats(), batch
        if self.algorithm.filter_zero_advantages:
            batch = batch.rows(kept_rows(batch, self.algorithm, self.cfg.algo.group_size))
        batch = replace(batch, weights=self.policy_loss.weights(batch))
        factor = self.lr_scale * learning_rate_factor(self.cfg, self.steps_done, tokens_before)
        is_warming = self.critic is not None and self.steps_done < self.cfg.critic.warmup_steps
        metrics: dict[str, float] = {}
        if self.critic is not None:
            metrics = update_critic(
                self.critic, self.algorithm, batch, step=self.steps_done, lr_factor=factor, alone=is_warming
            )
        updates = [] if is_warming else self._run_epochs(batch, token_stats, lr_factor=factor)
        norms = [norm for norm in updates if norm is not None]
        self.steps_done += 1
        token_stats.combine(self.world)
        averages = token_stats.averages()
        computed = {name: averages[short] for short, name in _AVERAGES.items() if short in averages}
        if self.algorithm.trust == "penalty" and self.cfg.algo.penalty_target:
            metrics |= self._adapt_penalty(batch, has_moved=bool(norms))
        metrics |= self._adapt_reference(averages.get("kl"), sampled)
        return {
            "loss": 0.0,
            **computed,
            **({"sampling/logprob_diff_max": token_stats.gap_max} if computed else {}),
            "grad_norm": sum(norms) / max(1, len(norms)),
            "lr": self.cfg.optim.lr * factor,
            **metrics,
            "skipped_updates": float(len(updates) - len(norms)) + metrics.get("skipped_updates", 0.0),
            **token_stats.losses(len(updates)),
            **token_stats.extra_metrics,
        }

    def _run_epochs(self, batch: Batch, token_stats: TokenStats, *, lr_factor: float) -> list[float | None]:
        """Take the optimiser steps of all epochs over the batch, until KL(old || new) exceeds algo.stop_kl. Returns the
        gradient's norm of each; None for one that is not finite and was left out.
        """
        norms: list[float | None] = []
        first, parts = self.steps_done * self.algorithm.updates, self.algorithm.minibatches
        for epoch in range(self.algorithm.epochs):
            for minibatch in minibatches(batch, parts, self.cfg, step=self.steps_done, epoch=epoch):
                has_moved = any(norm is not None for norm in norms)
                if has_moved and self._exceeds_stop_kl(batch):
                    return norms
                number = first + len(norms)
                norms.append(self._update_policy(minibatch, token_stats, number, lr_factor=lr_factor))
        return norms

    def _update_policy(self, batch: Batch, token_stats: TokenStats, number: int, *, lr_factor: float) -> float | None:
        """Take optimiser step `number` of the run. Returns the gradient's norm, or None if it is not finite and nothing
        was changed. Where no row has a gradient, AdamW moves on by its momentum, as in TRL's GRPOTrainer.
        """
        policy_loss = self.policy_loss
        # Rows without a gradient are left out of the passes; they stay in the denominators of the weights.
        has_gradient = (batch.advantages != 0).any(dim=1) | self._has_regularizer
        self.optimizer.zero_grad()
        if has_gradient.any():
            with deterministic_kernels(self.cfg.optim.deterministic):
                backward_microbatches(
                    batch,
                    has_gradient.nonzero()[:, 0],
                    self.passes().encode,
                    partial(policy_loss.of_microbatch, token_stats),
                    tokens=self.cfg.optim.micro_batch_tokens,
                    model=self.distributed,
                    on_microbatch=partial(self.on_microbatch, "trained"),
                )
        if self.pretraining_mix is not None:
            with deterministic_kernels(self.cfg.optim.deterministic):
                token_stats.extra_metrics["ptx/nll"] = self.pretraining_mix.add_gradient(self.passes(), number)
        if has_gradient.any() or self.pretraining_mix is not None:
            self._sum_gradients()
        else:
            self._zero_gradients()
        if self.algorithm.trust == "constrained":
            delta = self.cfg.algo.delta * self.lr_scale
            measure = partial(policy_loss.measure, batch)
            norm, metrics = constrained_update(self.optimizer, self.passes(), batch, measure, self.cfg.algo, delta)
            token_stats.extra_metrics |= metrics
            return norm
        return self._apply_gradient(lr_factor)

    def free_gradients(self) -> None:
        """Free the memory of the gradients, also of the critic's."""
        super().free_gradients()
        if self.critic is not None:
            self.critic.optimizer.zero_grad()

    def _sum_gradients(self) -> None:
        """Sum the gradient of this optimiser step over the ranks, with that of a critic on the policy's backbone."""
        super()._sum_gradients()
        if self.critic is not None and self.critic.shared:
            self.critic.sum_gradients()

    def _apply_gradient(self, lr_factor: float) -> float | None:
        """Clip the gradient and step the optimisers. Returns its norm before clipping, or None if it is not finite."""
        norm = super()._apply_gradient(lr_factor)
        if norm is not None and self.critic is not None and self.critic.shared:
            self.critic.step(lr_factor=lr_factor)
        return norm

    def _exceeds_stop_kl(self, batch: Batch) -> bool:
        """Whether KL(old || new) is above algo.stop_kl."""
        limit = self.cfg.algo.stop_kl
        return bool(limit) and batch.old_logprobs is not None and self.policy_loss.measure(batch)[1] > limit

    # ------------------------------------------------------------------------------------------------ schedules

    def _adapt_penalty(self, batch: Batch, *, has_moved: bool) -> dict[str, float]:
        """Adapt the coefficient of KL(old || new) to its target, if the policy was updated."""
        if not has_moved:
            return {"penalty": self.penalty}
        divergence = self.policy_loss.measure(batch)[1]
        self.penalty = adapt_coefficient(self.penalty, divergence, self.cfg.algo.penalty_target)
        return {"policy_kl": divergence, "penalty": self.penalty}

    def _adapt_reference(self, kl: float | None, batch: Batch) -> dict[str, float]:
        """Sync the reference with the policy every algo.ref_sync_steps steps; adapt beta to its target, if a KL was
        measured. `kl` is that per token, during the update on the batch.
        """
        algo = self.cfg.algo
        if self.reference is not None and algo.ref_sync_steps and self.steps_done % algo.ref_sync_steps == 0:
            self.reference.load_state_dict(self.policy.state_dict())  # both whole, or both in the same shards
        if not algo.kl_target:
            return {}
        controller, metrics = CONTROLLERS[algo.kl_controller], {}
        if controller.is_of_response and batch.ref_logprobs is not None:
            metrics["kl/response"] = float(response_kl(batch.policy_logprobs, batch.ref_logprobs, batch.mask))
        if kl is not None:
            share = len(batch) / algo.kl_horizon
            self.beta = controller.adapt(self.beta, metrics.get("kl/response", kl), algo.kl_target, share=share)
        return {"beta": self.beta, **metrics}

    # ------------------------------------------------------------------------------------------------- state

    def state(self) -> dict[str, object]:
        """The numbers, besides weights and optimiser state, that a checkpoint stores."""
        return super().state() | ({} if self.pass_rates is None else {"pass_rates": self.pass_rates.state()})

    def restore(self, state: Mapping[str, Any]) -> None:
        """Load what state() returned."""
        super().restore(state)
        if self.pass_rates is not None:
            self.pass_rates.restore(state["pass_rates"])
