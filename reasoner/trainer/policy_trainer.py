"""The learner: gives a batch credit and moves the policy.

Shapes: P prompts, G completions of each, N = P * G rows, T completion positions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor
from transformers import PreTrainedModel

from reasoner.config.schema import Config
from reasoner.models.loading import ReadPrompts, completion_logprobs, completion_states, read_prompts
from reasoner.progress import Progress
from reasoner.rl.algorithms import Algorithm
from reasoner.rl.batch import Batch
from reasoner.rl.credit import with_advantages, without_zero_variance
from reasoner.rl.critic import Critic, explained_variance
from reasoner.rl.fisher import FisherProduct
from reasoner.rl.kl import kl_k3
from reasoner.rl.losses import is_clipped, token_weights
from reasoner.rl.microbatches import (
    backward_microbatches,
    compute_precision,
    forward_micro_batches,
    forward_microbatches,
)
from reasoner.rl.objective import TokenTerms, token_terms
from reasoner.rl.token_stats import TokenStats
from reasoner.rl.trust_region import adapt_coefficient, constrained_step

# Averages over tokens, by the name of their metric.
_FIGURES = {
    "kl": "kl",
    "entropy": "entropy",
    "clipped": "clip_ratio",
    "gap": "sampling/logprob_diff_mean",
    "trust": "sampling/importance_mean",
    "capped": "sampling/importance_clipped",
}
# Numbers that a resumed run goes on with.
_STATE = ("steps_done", "moving_reward", "penalty", "beta", "attempt", "lr_scale")


class PolicyTrainer:
    """The policy, its optimiser, and the frozen reference (None when nothing pulls towards one)."""

    def __init__(
        self, policy: PreTrainedModel, reference: PreTrainedModel | None, algorithm: Algorithm, cfg: Config
    ) -> None:
        self.policy = policy
        self.reference = reference
        self.algorithm = algorithm
        self.cfg = cfg
        optim = cfg.optim
        self.optimizer = torch.optim.AdamW(
            policy.parameters(),
            lr=optim.lr,
            betas=(optim.beta1, optim.beta2),
            weight_decay=optim.weight_decay,
            fused=True,
        )
        self.critic = Critic(policy, cfg, shared=algorithm.critic_backbone == "shared") if algorithm.critic else None
        self.steps_done = 0  # of the run; the learning rate follows it
        self.beta = cfg.algo.beta  # coefficient of the pull of the reference
        self.penalty = cfg.algo.penalty  # coefficient of KL(old || new), where there is one
        self.attempt = 0  # times that the run was rolled back
        self.lr_scale = 1.0  # of the learning rate, halved each time
        self.moving_reward = 0.0  # average of the steps before, for the baseline of that name
        self.on_microbatch: Callable[[str, int, int], object] = Progress().count  # after each micro-batch
        # Something besides advantages moves a row: the reference's pull in the loss, the entropy bonus, a critic on
        # the same trunk.
        pulled = reference is not None and algorithm.kl_in == "loss"
        self._has_regularizer = (
            pulled or cfg.algo.entropy_coef > 0 or (algorithm.critic and algorithm.critic_backbone == "shared")
        )

    # ------------------------------------------------------------------------------------------------ credit

    def credit(self, batch: Batch) -> Batch:
        """The annotated batch with advantages."""
        algo = self.cfg.algo
        batch = with_advantages(batch, self.algorithm, self.cfg, beta=self.beta, moving_reward=self.moving_reward)
        mean, decay = float(batch.rewards.mean()), algo.moving_decay if self.steps_done else 0.0
        self.moving_reward = decay * self.moving_reward + (1 - decay) * mean
        return batch

    @torch.no_grad()
    def annotate(self, batch: Batch) -> Batch:
        """The batch with the reference's log-probabilities, the policy's own where several updates will follow, and the
        critic's values.
        """
        if self.reference is not None:
            batch = replace(batch, ref_logprobs=self._all_logprobs(self.reference, batch))
        if self.algorithm.updates > 1 or self.algorithm.trust != "none":
            batch = replace(batch, old_logprobs=self._all_logprobs(self.policy, batch))
        return batch if self.critic is None else replace(batch, values=self.critic.values(batch))

    def _all_logprobs(self, model: PreTrainedModel, batch: Batch) -> Tensor:
        """[N, T]"""

        def found(prompts: ReadPrompts, rows: Batch) -> Tensor:
            return self._logprobs(model, self._states(model, prompts, rows), rows)[0]

        on_microbatch = partial(self.on_microbatch, "log-probabilities")
        tokens = self.cfg.optim.micro_batch_tokens
        return forward_microbatches(
            batch, partial(self._read, model), found, tokens=tokens, on_microbatch=on_microbatch
        )

    def _read(self, model: PreTrainedModel, block: Batch) -> ReadPrompts:
        with self._precision():
            return read_prompts(model, block.prompt_ids, block.prompt_lengths)

    def _states(self, model: PreTrainedModel, prompts: ReadPrompts, rows: Batch) -> Tensor:
        """[N, T, H]: before each token."""
        with self._precision():
            return completion_states(model, prompts, rows.prompt_of, rows.completion_ids)

    def _logprobs(self, model: PreTrainedModel, states: Tensor, rows: Batch) -> tuple[Tensor, Tensor]:
        """[N, T] x 2: log-probabilities and entropies."""
        with self._precision():
            return completion_logprobs(
                model,
                states,
                rows.completion_ids,
                rows.lengths,
                temperature=self.cfg.sampling.temperature,
                learns_entropy=self.cfg.algo.entropy_coef > 0,
            )

    def _precision(self) -> AbstractContextManager[object]:
        return compute_precision(self.policy.device, self.cfg.optim.dtype)

    # ------------------------------------------------------------------------------------------------ update

    def update(
        self, batch: Batch, token_stats: TokenStats | None = None, *, tokens_before: float = 0
    ) -> dict[str, float]:
        """All optimiser steps on the batch; what happened, averaged over the tokens that were computed. Where none was,
        for want of anything that moves, there is no entropy, KL or gap to tell.

        The names are explained in reasoner.runs.metric_names.METRICS. A `tally` can keep the figures of every token.
        `tokens_before` is the number of tokens that the run sampled before this batch: with a budget of tokens the
        learning rate follows it.
        """
        token_stats = token_stats or TokenStats()
        if self.algorithm.filter_zero_advantages:
            batch = without_zero_variance(batch, self.cfg.algo.group_size)
        lr_factor = self._lr_factor(tokens_before)
        is_warming = self.critic is not None and self.steps_done < self.cfg.critic.warmup_steps
        metrics = self._teach_critic(batch, lr_factor=lr_factor, alone=is_warming)
        norms: list[float] = []
        skipped = 0
        for epoch in range(0 if is_warming else self.algorithm.epochs):
            for index in self._minibatches(len(batch), epoch):
                if self._is_far(batch, after=len(norms)):
                    break
                norm = self._step(batch.rows(index), token_stats, lr_factor=lr_factor)
                skipped += norm is None
                norms += [] if norm is None else [norm]
        self.steps_done += 1
        averages = token_stats.averages()
        computed = {name: averages[short] for short, name in _FIGURES.items() if short in averages}
        if self.algorithm.trust == "penalty" and self.cfg.algo.penalty_target:
            metrics |= self._adapt_penalty(batch, has_moved=bool(norms))
        metrics |= self._follow_reference(averages.get("kl"))
        return {
            "loss": 0.0,
            **computed,
            **({"sampling/logprob_diff_max": token_stats.gap_max} if computed else {}),
            "grad_norm": sum(norms) / max(1, len(norms)),
            "lr": self.cfg.optim.lr * lr_factor,
            "skipped_updates": float(skipped),
            **metrics,
            **token_stats.losses(len(norms) + skipped),
            **token_stats.told,
        }

    def _adapt_penalty(self, batch: Batch, *, has_moved: bool) -> dict[str, float]:
        """After a step with an update: the coefficient of KL(old || new) moves towards its target."""
        if not has_moved:
            return {"penalty": self.penalty}
        moved = self._measure(batch)[1]
        self.penalty = adapt_coefficient(self.penalty, moved, self.cfg.algo.penalty_target)
        return {"policy_kl": moved, "penalty": self.penalty}

    def _follow_reference(self, kl: float | None) -> dict[str, float]:
        """After a step: beta moves towards its target where a KL was measured; the reference may become the policy."""
        algo = self.cfg.algo
        if self.reference is not None and algo.ref_sync_steps and self.steps_done % algo.ref_sync_steps == 0:
            self.reference.load_state_dict(self.policy.state_dict())
        if not algo.kl_target:
            return {}
        if kl is not None:
            self.beta = adapt_coefficient(self.beta, kl, algo.kl_target)
        return {"beta": self.beta}

    def _teach_critic(self, batch: Batch, *, lr_factor: float, alone: bool) -> dict[str, float]:
        """The critic's own passes over the batch; the loss before the last one. With a head on the policy's trunk it
        has some only while it learns alone: otherwise its loss is part of the policy's.
        """
        if self.critic is None:
            return {}
        metrics = {"critic/explained_variance": explained_variance(batch)}
        if alone or not self.critic.shared:
            batch = replace(batch, weights=self._weights(batch))
            for _ in range(self.cfg.critic.epochs):
                metrics["critic/loss"] = self.critic.update(batch, lr_factor=lr_factor)
        return metrics

    def _weights(self, batch: Batch) -> Tensor:
        """[N, T], over the rows that are learnt from."""
        learnt = ~batch.truncated if self.cfg.algo.mask_truncated_completions else torch.ones_like(batch.truncated)
        shape = {"max_tokens": self.cfg.sampling.max_tokens, "rows": int(learnt.sum())}
        return token_weights(batch.mask & learnt[:, None], self.algorithm.loss_aggregation, **shape)

    def _minibatches(self, rows: int, epoch: int) -> Iterator[Tensor]:
        """Whole groups in an order fixed by (seed, step, epoch); one minibatch keeps the batch's own order."""
        group, parts = self.cfg.algo.group_size, self.algorithm.minibatches
        groups = torch.arange(rows).view(-1, group)
        if parts > 1:
            seed = hash((self.cfg.seed, self.steps_done, epoch)) % 2**63
            groups = groups[torch.randperm(len(groups), generator=torch.Generator().manual_seed(seed))]
        for part in groups.tensor_split(min(parts, len(groups))):
            yield part.flatten()

    def _step(self, batch: Batch, token_stats: TokenStats, *, lr_factor: float) -> float | None:
        """One optimiser step; the norm of its gradient, or None when that is not finite and nothing was changed."""
        batch = replace(batch, weights=self._weights(batch))
        # A row without advantage moves nothing unless the reference pulls at it. It stays in the denominators above.
        moving = (batch.advantages != 0).any(dim=1) | self._has_regularizer
        self.optimizer.zero_grad()
        if moving.any():
            rows, read = moving.nonzero()[:, 0], partial(self._read, self.policy)
            tokens = self.cfg.optim.micro_batch_tokens
            on_microbatch = partial(self.on_microbatch, "learnt")
            backward_microbatches(
                batch, rows, read, partial(self._loss, token_stats), tokens=tokens, on_microbatch=on_microbatch
            )
        if self.algorithm.trust == "constrained":
            return self._constrained(batch, token_stats)
        norm = torch.nn.utils.clip_grad_norm_(self.policy.parameters(), self.cfg.optim.max_grad_norm)
        if not torch.isfinite(norm):
            self.optimizer.zero_grad()
            if self.critic is not None:
                self.critic.optimizer.zero_grad()
            return None
        for param_group in self.optimizer.param_groups:
            param_group["lr"] = self.cfg.optim.lr * lr_factor
        self.optimizer.step()
        if self.critic is not None and self.critic.shared:
            self.critic.step(lr_factor=lr_factor)
        return float(norm)

    def _loss(self, token_stats: TokenStats, prompts: ReadPrompts, rows: Batch) -> Tensor:
        """The rows' share of the step's loss; adds their figures to the tally."""
        mask, row = rows.mask, self.algorithm
        states = self._states(self.policy, prompts, rows)
        logp, entropy = self._logprobs(self.policy, states, rows)
        terms = self._terms(logp, entropy, rows)
        gap = ((terms.old_logprobs - rows.sampler_logprobs).abs() * mask).detach()
        is_at_clip = is_clipped(terms.ratio.detach(), rows.advantages, low=row.clip_low, high=row.clip_high)
        figures = {
            "tokens": mask.sum(),
            "entropy": entropy.detach().sum(),
            "clipped": (is_at_clip & mask).sum(),
            "gap": gap.sum(),
            "trust": (terms.importance * mask).sum(),
            "capped": ((terms.importance >= self.cfg.algo.importance_clip_max) & mask).sum(),
        }
        tokens = {"entropy": entropy} | ({"advantages": rows.advantages} if row.returns != "total" else {})
        if terms.kl is not None:
            figures["kl"] = (terms.kl.detach() * mask).sum()
            tokens["kl"] = terms.kl
        weighed = rows.weights * terms.loss
        loss = weighed.sum()
        if self.critic is not None and self.critic.shared:
            valued = self.critic.loss(states, rows)
            figures["critic/loss"] = valued.detach()
            loss = loss + self.cfg.critic.vf_coef * valued
        token_stats.add(figures | {"loss": loss.detach()}, gap_max=gap.max())
        token_stats.keep(rows.place, rows.lengths, tokens | {"loss": weighed})
        return loss

    def _terms(self, logp: Tensor, entropy: Tensor, rows: Batch) -> TokenTerms:
        return token_terms(logp, entropy, rows, self.algorithm, self.cfg.algo, beta=self.beta, penalty=self.penalty)

    # ------------------------------------------------------------------------------------------- trust region

    def _constrained(self, batch: Batch, token_stats: TokenStats) -> float | None:
        """TRPO's step from the gradient that the parameters hold; its norm, or None when that is not finite."""
        parameters = [p for p in self.policy.parameters() if p.requires_grad]
        gradient = torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).flatten() for p in parameters])
        self.optimizer.zero_grad()
        norm = gradient.norm()
        if not torch.isfinite(norm):
            return None
        if norm == 0:
            return 0.0
        algo = self.cfg.algo
        product = FisherProduct(
            [partial(self._fisher_states, rows) for rows in self._fisher_blocks(batch)],
            self.policy.get_output_embeddings(),  # type: ignore[no-untyped-call]
            parameters,
            temperature=self.cfg.sampling.temperature or 1.0,
            damping=algo.damping,
        )
        delta = algo.delta * self.lr_scale
        done = constrained_step(parameters, gradient, product, partial(self._measure, batch), delta=delta)
        token_stats.told |= {"policy_kl": done.kl, "trust_region/step_fraction": done.share}
        return float(norm)

    def _fisher_blocks(self, batch: Batch) -> Iterator[Batch]:
        """Rows from all over the batch, at most algo.fisher_rows of them, in micro-batches with their prompts."""
        number = min(len(batch), self.cfg.algo.fisher_rows)
        index = torch.arange(number, device=batch.lengths.device) * len(batch) // number
        tokens = self.cfg.optim.micro_batch_tokens
        for _, block in batch.prompt_blocks(tokens, index):
            for _, rows in block.micro_batches(tokens):
                yield rows

    def _fisher_states(self, rows: Batch) -> Tensor:
        """[K, H]: the last states before each of the rows' tokens."""
        return self._states(self.policy, self._read(self.policy, rows), rows)[rows.mask].float()

    @torch.no_grad()
    def _measure(self, batch: Batch) -> tuple[float, float]:
        """(the step's loss, mean k3 estimate of KL(old || new) per token) at the policy as it stands."""
        assert batch.old_logprobs is not None
        loss, moved = 0.0, 0.0
        read, tokens = partial(self._read, self.policy), self.cfg.optim.micro_batch_tokens
        for _, prompts, rows in forward_micro_batches(batch, read, tokens=tokens):
            assert rows.old_logprobs is not None
            logp, entropy = self._logprobs(self.policy, self._states(self.policy, prompts, rows), rows)
            loss += float((rows.weights * self._terms(logp, entropy, rows).loss).sum())
            moved += float((kl_k3(rows.old_logprobs, logp) * rows.mask).sum())
        return loss, moved / max(1, int(batch.mask.sum()))

    def _is_far(self, batch: Batch, *, after: int) -> bool:
        """After some updates, and where it is asked for, the policy has moved further than it may."""
        limit = self.cfg.algo.stop_kl
        return bool(limit) and after > 0 and batch.old_logprobs is not None and self._measure(batch)[1] > limit

    def _lr_factor(self, tokens_before: float) -> float:
        """Of the learning rate: linear warm-up, then 1, then linear towards 0 over the last `decay_share` of the run,
        which ends after its steps or its tokens, whichever is sooner; halved by each rollback.
        """
        optim, cfg = self.cfg.optim, self.cfg
        warm = (self.steps_done + 1) / max(1, optim.warmup_steps)
        left = (cfg.steps - self.steps_done) / max(1.0, optim.decay_share * cfg.steps) if optim.decay_share else 1.0
        if optim.decay_share and cfg.max_train_tokens:
            left = min(left, max(0, cfg.max_train_tokens - tokens_before) / (optim.decay_share * cfg.max_train_tokens))
        return self.lr_scale * min(1.0, warm, left)

    # ------------------------------------------------------------------------------------------------- state

    def state(self) -> dict[str, float]:
        """What a resumed run needs besides weights and optimiser."""
        return {name: getattr(self, name) for name in _STATE}

    def restore(self, state: Mapping[str, float]) -> None:
        for name in _STATE:
            setattr(self, name, state[name])

    def policy_state(self) -> Iterator[tuple[str, Tensor]]:
        """(name, tensor) of the policy as its state names them, tied tensors under each of their names.

        An engine that keeps a head of its own, as vLLM does on a CPU, would otherwise go on with the old one.
        """
        yield from self.policy.state_dict().items()
