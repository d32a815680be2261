"""The trainer of every stage: a model with its optimiser, and in reinforcement learning with reference and critic.

Shapes: P prompts, G completions of each, N = P * G rows, T completion positions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.optim import AdamW
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from reasoner.config.schema import Config
from reasoner.distributed.gradients import sum_gradients
from reasoner.distributed.world import ALONE, World
from reasoner.inference.remote_teacher import RemoteTeacher
from reasoner.models.compiled_layers import compile_layers
from reasoner.models.folder import BaseModel
from reasoner.models.lora import adapter_off, trained_parameters
from reasoner.models.recompute import recompute_layers
from reasoner.models.sharding import distribute
from reasoner.progress import Progress
from reasoner.rl.algorithms import Algorithm
from reasoner.rl.batch import Batch, collate
from reasoner.rl.credit import kept_rows, teacher_advantages, with_advantages
from reasoner.rl.critic import Critic
from reasoner.rl.kl import adapt_coefficient, response_kl
from reasoner.rl.optimizers import clip_gradients, step_optimizer
from reasoner.rl.passes import ModelPasses
from reasoner.rl.policy_loss import FullTeacher, PolicyLoss
from reasoner.rl.process_rewards import step_rewards
from reasoner.runtime import deterministic_kernels
from reasoner.trainer.constrained_update import constrained_update
from reasoner.trainer.schedule import learning_rate_factor, minibatches
from reasoner.trainer.step_metrics import StepUpdate
from reasoner.types import RolloutGroup


class Trainer:
    """A model and its optimiser, the frozen reference (None without a KL penalty) and the critic, if there is one.

    Every rank of `world` has all of them and gets the same batches; the passes through the models are divided.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        reference: PreTrainedModel | None,
        algorithm: Algorithm,
        cfg: Config,
        tokenizer: PreTrainedTokenizerBase | None = None,
        world: World = ALONE,
        *,
        base_model: BaseModel | None = None,
        teacher: PreTrainedModel | None = None,
        remote_teacher: RemoteTeacher | None = None,
    ) -> None:
        """`tokenizer` is needed by process rewards alone, which locate the tokens of each reasoning step. A policy with
        a LoRA adapter is its own reference, with the adapter off; `base_model` is that of the adapter.
        """
        is_shared, optim = algorithm.critic_backbone == "shared", cfg.optim
        self.critic: Critic | None = None
        if algorithm.critic:  # before the policy, which it copies, is sharded
            self.critic = Critic(model, cfg, shared=is_shared, world=world)
        if optim.compile:
            for own in filter(None, (model, reference, teacher)):
                compile_layers(own.base_model)
        if optim.recompute:
            recompute_layers(model.base_model)
        distributed = distribute(model, optim.sharding, world, optim.dtype)
        self._parameters = [parameter for _, parameter in trained_parameters(model)]
        betas = (optim.beta1, optim.beta2)
        decay = optim.weight_decay
        self.optimizer = AdamW(self._parameters, lr=optim.lr, betas=betas, weight_decay=decay, fused=True)
        self.model, self.reference, self.base_model = model, reference, base_model
        self.algorithm, self.cfg, self.world = algorithm, cfg, world
        self.tokenizer = tokenizer
        self.passes = ModelPasses(
            distributed,
            optim.dtype,
            optim.micro_batch_tokens,
            cfg.sampling.temperature,
            learns_entropy=cfg.algo.entropy_coef > 0,
        )
        if reference is not None:
            distributed = distribute(reference, optim.sharding, world, optim.dtype)
            self._reference_passes = replace(self.passes, distributed=distributed)
        self.teacher: ModelPasses | RemoteTeacher | None = remote_teacher  # whose sampled tokens count
        full_teacher: FullTeacher | None = None
        if teacher is not None:
            distributed = distribute(teacher, optim.sharding, world, optim.dtype)
            passes = replace(self.passes, distributed=distributed)
            if cfg.teacher.kl == "full":
                full_teacher = FullTeacher.of(passes, self.passes)
            else:
                self.teacher = passes
        critic = self.critic if is_shared else None
        self.policy_loss = PolicyLoss(self.passes, algorithm, cfg, critic, cfg.algo.beta, full_teacher)
        self.steps_done = 0  # training steps of the run: the run's position, and that of the schedules
        self.progress = Progress()  # shows the micro-batches
        # Whether a row without advantage has a gradient all the same: from the KL penalty in the loss, the entropy
        # bonus, a teacher's KL in the loss, or a critic on the policy's backbone.
        has_kl_loss = reference is not None and algorithm.kl_in == "loss"
        others = critic is not None or full_teacher is not None
        self._has_regularizer = has_kl_loss or cfg.algo.entropy_coef > 0 or others

    @property
    def is_sharded(self) -> bool:
        """Whether the ranks hold shards of the models."""
        return self.passes.distributed.sharding != "replicated"

    # ------------------------------------------------------------------------------------------------ batch

    def prepare_batch(self, groups: Sequence[RolloutGroup]) -> Batch:
        """Collate the groups and add log-probabilities and values: all that advantages are computed from."""
        steps = None
        if self.algorithm.returns == "process":
            assert self.tokenizer is not None, "process rewards without a tokenizer"
            # Whether an equation holds is mathematics, which a control run must not learn: it has its outcome alone.
            gated, is_control = self.algorithm.step_credit == "gated", bool(self.cfg.control)
            backend = self.tokenizer.backend_tokenizer
            steps = step_rewards(groups, backend, gated=gated, outcome_only=is_control)
        return self.compute_logprobs(collate(groups, steps).to(self.model.device))

    @torch.no_grad()
    def compute_logprobs(self, batch: Batch) -> Batch:
        """Add log-probabilities of the reference, of the teacher and, before several updates, of the policy; and the
        critic's values. In rows that have no use for them the reference's are 0 and the policy's those of the engine.
        """
        on_microbatch, index = self.progress.counter("log-probabilities"), self._rows_in_loss(batch)
        if self.reference is not None:
            with adapter_off(self.reference):
                computed = self._reference_passes.all_logprobs(batch.rows(index), on_microbatch)
            batch = replace(batch, ref_logprobs=_fill(torch.zeros_like(batch.sampler_logprobs), index, computed))
        if self.teacher is not None:
            logprobs = self.teacher.all_logprobs(batch.with_teacher_prompts(), on_microbatch)
            batch = replace(batch, teacher_logprobs=logprobs)
        if self.algorithm.updates > 1 or self.algorithm.trust != "none":
            computed = self.passes.all_logprobs(batch.rows(index), on_microbatch)
            batch = replace(batch, old_logprobs=_fill(batch.sampler_logprobs.clone(), index, computed))
        return batch if self.critic is None else replace(batch, values=self.critic.values(batch))

    def _rows_in_loss(self, batch: Batch) -> Tensor:
        """Index of the rows that need log-probabilities: all, unless only the loss of the rows that are kept does."""
        algo = self.cfg.algo  # with a target the KL of all responses is measured
        only_loss = self.algorithm.kl_in == "loss" and not algo.kl_target and self.teacher is None
        if self.algorithm.filter_zero_advantages and only_loss:
            return kept_rows(batch, self.algorithm, algo.group_size)
        return torch.arange(len(batch), device=batch.lengths.device)

    def compute_advantages(self, batch: Batch) -> Batch:
        """Add advantages to a batch with log-probabilities."""
        return with_advantages(batch, self.algorithm, self.cfg, beta=self.policy_loss.beta)

    # ------------------------------------------------------------------------------------------------ update

    def weigh_tokens(self, batch: Batch) -> Batch:
        """Leave out the groups that the algorithm filters, and add the weights of the token losses."""
        if self.algorithm.filter_zero_advantages:
            batch = batch.rows(kept_rows(batch, self.algorithm, self.cfg.algo.group_size))
        return replace(batch, weights=self.policy_loss.weights(batch))

    @property
    def is_warming_up(self) -> bool:
        """Whether the next step trains the critic alone."""
        return self.critic is not None and self.steps_done < self.cfg.critic.warmup_steps

    def minibatches(self, batch: Batch) -> Iterator[Batch]:
        """Yield the minibatch of each optimiser step of all epochs."""
        for epoch in range(0 if self.is_warming_up else self.algorithm.epochs):
            yield from minibatches(batch, self.algorithm.minibatches, self.cfg, step=self.steps_done, epoch=epoch)

    def rows_with_gradient(self, batch: Batch) -> Tensor:
        """Index of the rows that have a gradient. The others are left out of the passes; those without an advantage
        stay in the denominators of the weights.
        """
        has_signal = (batch.advantages != 0).any(dim=1) | self._has_regularizer
        return (has_signal & batch.weights.any(dim=1)).nonzero()[:, 0]

    @contextmanager
    def gradient(self) -> Iterator[None]:
        """A block whose backward passes make up the gradient of an optimiser step: its sum over the ranks follows.

        Where no row has a gradient it is 0, so that AdamW moves on by its momentum, as in TRL's GRPOTrainer: it would
        leave parameters without a gradient as they are.
        """
        self.optimizer.zero_grad()
        with deterministic_kernels(self.cfg.optim.deterministic):
            yield
        sum_gradients(self._parameters, self.world)
        if self.critic is not None and self.critic.shared:
            self.critic.sum_gradients()
        if all(parameter.grad is None for parameter in self._parameters):
            for parameter in self._parameters:
                parameter.grad = torch.zeros_like(parameter)

    def apply_gradient(self, lr_factor: float) -> float:
        """Clip the gradient and step the optimisers. Returns its norm before clipping; if that is not finite, nothing
        was changed.
        """
        norm = float(clip_gradients(self.model.parameters(), self.cfg.optim.max_grad_norm))
        if not math.isfinite(norm):
            self.free_gradients()
            return norm
        step_optimizer(self.optimizer, self.cfg.optim.lr * lr_factor)
        if self.critic is not None and self.critic.shared:
            self.critic.step(lr_factor=lr_factor)
        return norm

    def update_policy(self, batch: Batch, update: StepUpdate) -> None:
        """Step from the gradient of the batch: with the optimiser, or with TRPO's constraint."""
        if self.algorithm.trust == "constrained":
            norm, metrics = constrained_update(self.optimizer, self.policy_loss, batch, self.cfg.algo.delta)
            update.further |= metrics
        else:
            norm = self.apply_gradient(update.lr_factor)
        update.norms.append(norm)

    def single_update(self) -> dict[str, float]:
        """Take a training step of one update from the gradient. Returns its metrics."""
        lr_factor = learning_rate_factor(self.cfg, self.steps_done, tokens_before=0)
        norm = self.apply_gradient(lr_factor)
        self.steps_done += 1
        skipped = float(not math.isfinite(norm))
        return {"grad_norm": norm, "lr": self.cfg.optim.lr * lr_factor, "skipped_updates": skipped}

    def free_gradients(self) -> None:
        """Free the memory of the gradients, which the next update computes anew: the engine can use it until then."""
        self.optimizer.zero_grad()
        if self.critic is not None:
            self.critic.optimizer.zero_grad()

    # ------------------------------------------------------------------------------------------------ schedules

    def adapt_to_reference(self, sampled: Batch, update: StepUpdate) -> None:
        """After a step on the batch `sampled`: adapt the coefficient of the KL to the reference to its target, if an
        update has measured that KL; sync the reference with the policy every algo.ref_sync_steps steps.
        """
        algo, loss = self.cfg.algo, self.policy_loss
        if self.reference is not None and algo.ref_sync_steps and self.steps_done % algo.ref_sync_steps == 0:
            self.reference.load_state_dict(self.model.state_dict())  # both whole, or both in the same shards
        if sampled.teacher_logprobs is not None:
            update.further["teacher/kl"] = -float(teacher_advantages(sampled).sum() / sampled.mask.sum())
        if algo.kl_target and sampled.ref_logprobs is not None:
            kl = float(response_kl(sampled.policy_logprobs, sampled.ref_logprobs, sampled.mask))
            if "kl" in update.token_stats.averages():
                share = len(sampled) / algo.kl_horizon
                loss.beta = adapt_coefficient(loss.beta, kl, algo.kl_target, share=share)
            update.further |= {"beta": loss.beta, "kl/response": kl}

    # ------------------------------------------------------------------------------------------------- state

    def state(self) -> dict[str, object]:
        """The numbers, besides weights and optimiser state, that a checkpoint stores."""
        return {"steps_done": self.steps_done, "beta": self.policy_loss.beta}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Load what state() returned."""
        self.steps_done, self.policy_loss.beta = state["steps_done"], state["beta"]


def _fill(values: Tensor, index: Tensor, computed: Tensor) -> Tensor:
    """[N, T] values with the computed ones of the indexed rows, trimmed to the longest of them, in their places."""
    values[index, : computed.shape[1]] = computed
    return values
