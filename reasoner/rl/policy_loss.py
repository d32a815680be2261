"""The loss of the policy over a batch: the share of a micro-batch, for its gradient, and the value of the whole. The
gradient and TRPO's line search share one objective, the loss of every token.

Shapes: N rows, T completion positions.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from reasoner.config.schema import Config
from reasoner.models.fused_lm_head import Teacher
from reasoner.models.loading import PromptCache
from reasoner.models.output_layer import OutputLayer
from reasoner.rl.algorithms import Algorithm, sampler_correction
from reasoner.rl.batch import Batch
from reasoner.rl.critic import Critic
from reasoner.rl.kl import KL, kl_k3
from reasoner.rl.losses import RATIOS, sampler_weights, token_weights
from reasoner.rl.passes import ModelPasses
from reasoner.rl.surrogates import SURROGATES
from reasoner.rl.token_stats import TokenStats


@dataclass(frozen=True, slots=True, eq=False)
class TokenTerms:
    """[N, T] each; undefined in the padding, where the weights are 0."""

    loss: Tensor  # before weighting
    ratio: Tensor  # policy / old policy
    old_logprobs: Tensor  # of the policy before the step; the current ones, detached, if there is one update
    importance: Tensor  # weights of the correction for the sampler: losses.sampler_weights()
    kl: Tensor | None  # to the reference, if there is one


@dataclass(slots=True, eq=False)
class FullTeacher:
    """The teacher of on-policy distillation whose whole distribution counts (teacher.kl full): a frozen model that
    reads each micro-batch beside the policy. Only that micro-batch's states, of width H', are stored.
    """

    passes: ModelPasses
    _block: tuple[PromptCache, PromptCache] | None = None  # the policy's pass over a block's prompts, and the teacher's

    @classmethod
    def of(cls, passes: ModelPasses, policy: ModelPasses) -> FullTeacher:
        """The teacher of a policy. ValueError for output layers that are not computed in tiles."""
        own, other = OutputLayer.of(passes.model), OutputLayer.of(policy.model)
        for who, layer in (("teacher", own), ("policy", other)):
            if type(layer.head) is not nn.Linear:
                kind = type(layer.head).__name__
                raise ValueError(f"teacher.kl full needs a linear output layer, and the {who}'s is {kind}; use sampled")
        if own.num_ids < other.num_ids:
            raise ValueError(f"teacher.kl full: the teacher has {own.num_ids} token ids, the policy {other.num_ids}")
        return cls(passes)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """A block of passes. A collective operation; the ranks run equally many, as those of the policy."""
        with self.passes.distributed.passes():
            yield
        self._block = None

    @torch.no_grad()
    def read(self, block: PromptCache, rows: Batch) -> Teacher:
        """The output layer, and [N, T, H'] last states before each completion token of a micro-batch. `block` is the
        policy's pass over the prompts that its micro-batches share: they go through the teacher once as well.
        """
        if self._block is None or self._block[0] is not block:
            self._block = block, self.passes.encode(rows.with_teacher_prompts())
        return OutputLayer.of(self.passes.model), self.passes.states(self._block[1], rows)


@dataclass(slots=True)
class PolicyLoss:
    """The loss of an algorithm's row, with one denominator for the whole optimiser step."""

    passes: ModelPasses  # of the policy
    algorithm: Algorithm
    cfg: Config
    critic: Critic | None  # on the policy's backbone: its loss is a part of the policy's
    beta: float  # coefficient of the KL penalty towards the reference; a run may adapt it
    teacher: FullTeacher | None = None  # whose KL over the vocabulary is a part of the loss

    def weights(self, batch: Batch) -> Tensor:
        """[N, T] weights of the token losses; 0 for completions that algo.mask_truncated_completions excludes."""
        missing_eos = batch.missing_eos
        included = ~missing_eos if self.cfg.algo.mask_truncated_completions else torch.ones_like(missing_eos)
        shape = {"max_tokens": self.cfg.sampling.max_tokens, "rows": int(included.sum())}
        return token_weights(batch.mask & included[:, None], self.algorithm.loss_aggregation, **shape)

    def of_microbatch(self, token_stats: TokenStats, prompts: PromptCache, rows: Batch) -> Tensor:
        """The rows' share of the step's loss. Adds their sums and token values to `token_stats`."""
        mask, algorithm = rows.mask, self.algorithm
        states = self.passes.states(prompts, rows)
        teacher = None if self.teacher is None else self.teacher.read(prompts, rows)
        logp, entropy, *teacher_kl = self.passes.logprobs(states, rows, teacher)
        terms = self._terms(logp, entropy, rows)
        gap = ((terms.old_logprobs - rows.sampler_logprobs).abs() * mask).detach()
        is_at_clip = SURROGATES[algorithm.surrogate].is_clipped(terms.ratio.detach(), rows.advantages, **self._clip)
        is_at_bound = (terms.importance >= self.cfg.algo.importance_clip_max) | (terms.importance == 0)
        sums = {"tokens": mask.sum()}
        if terms.kl is not None:
            sums["kl"] = (terms.kl.detach() * mask).sum()
        sums |= {
            "entropy": entropy.detach().sum(),
            "clip_ratio": (is_at_clip & mask).sum(),
            "sampling/logprob_diff_mean": gap.sum(),
            "sampling/importance_mean": (terms.importance * mask).sum(),
            "sampling/importance_clipped": (is_at_bound & mask).sum(),
        }
        token_values = {"entropy": entropy} | ({"advantages": rows.advantages} if algorithm.returns != "total" else {})
        if terms.kl is not None:
            token_values["kl"] = terms.kl
        token_loss = terms.loss
        for own in teacher_kl:  # one, or none
            sums["teacher/kl"] = own.detach().sum()
            token_loss = token_loss + self.cfg.teacher.weight * own
        weighted = rows.weights * token_loss
        loss = weighted.sum()
        if self.critic is not None:
            value_loss = self.critic.loss(states, rows)
            sums["critic/loss"] = value_loss.detach()
            loss = loss + self.cfg.critic.vf_coef * value_loss
        token_stats.add(sums | {"loss": loss.detach()}, gap_max=gap.max())
        token_stats.record(rows.row_index, rows.lengths, token_values | {"loss": weighted})
        return loss

    def passes_of_teacher(self) -> AbstractContextManager[None]:
        """A block in which of_microbatch() is called."""
        return nullcontext() if self.teacher is None else self.teacher.reading()

    @torch.no_grad()
    def measure(self, batch: Batch) -> tuple[float, float]:
        """(loss, mean k3 estimate of KL(old || new) per token in nats) of the batch under the current policy. A
        collective operation.
        """
        assert batch.old_logprobs is not None
        loss, divergence = 0.0, 0.0
        for _, prompts, rows in self.passes.microbatches(batch):
            assert rows.old_logprobs is not None
            logp, entropy = self.passes.logprobs(self.passes.states(prompts, rows), rows)
            loss += float((rows.weights * self._terms(logp, entropy, rows).loss).sum())
            divergence += float((kl_k3(rows.old_logprobs, logp) * rows.mask).sum())
        loss, divergence = (self.passes.world.total(value, "the loss of the batch") for value in (loss, divergence))
        return loss, divergence / max(1, int(batch.mask.sum()))

    def _terms(self, logprobs: Tensor, entropy: Tensor, rows: Batch) -> TokenTerms:
        """[N, T] log-probabilities and entropies of the current policy -> loss of each token and its parts.

        loss = importance * surrogate + beta * KL(policy || reference) - algo.entropy_coef * entropy
        """
        mask, algorithm, cfg = rows.mask, self.algorithm, self.cfg.algo
        old = logprobs.detach() if rows.old_logprobs is None else rows.old_logprobs
        ratio = RATIOS[algorithm.ratio](logprobs, old, mask)
        how, low, high = sampler_correction(self.cfg), cfg.importance_clip_min, cfg.importance_clip_max
        importance = sampler_weights(old, rows.sampler_logprobs, mask, how=how, low=low, high=high)
        surrogate = SURROGATES[algorithm.surrogate].loss(ratio, logprobs, rows.advantages, **self._clip)
        kl = None if rows.ref_logprobs is None else KL[algorithm.kl](logprobs, rows.ref_logprobs)
        loss = importance * surrogate
        if kl is not None and algorithm.kl_in == "loss":
            loss = loss + self.beta * kl
        return TokenTerms(loss - cfg.entropy_coef * entropy, ratio, old, importance, kl)

    @property
    def _clip(self) -> dict[str, float]:
        """The bounds of the surrogate's clip."""
        return {"low": self.algorithm.clip_low, "high": self.algorithm.clip_high, "dual": self.algorithm.dual_clip}
