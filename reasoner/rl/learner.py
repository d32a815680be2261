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
from torch.nn.attention import SDPBackend, sdpa_kernel
from transformers import PreTrainedModel

from reasoner.config import Config
from reasoner.models import ReadPrompts, completion_logprobs, completion_states, log_softmax, read_prompts
from reasoner.progress import Progress
from reasoner.rl.advantages import SCALES, advantages, gae, process_advantages, reward_to_go, total_return, whitened
from reasoner.rl.algorithms import Algorithm
from reasoner.rl.batch import Batch
from reasoner.rl.critic import Critic, explained
from reasoner.rl.kl import KL, kl_k3
from reasoner.rl.losses import RATIOS, SURROGATES, is_clipped, sampler_weights, token_weights
from reasoner.rl.passes import add_gradient, every_row
from reasoner.rl.tally import Tally
from reasoner.rl.trust import adapted, constrained_step, fisher_product

# Averages over tokens, by the name of their metric.
_FIGURES = {
    "kl": "kl",
    "entropy": "entropy",
    "clipped": "clip_ratio",
    "gap": "sampler/logprob_gap_mean",
    "trust": "sampler/importance_mean",
    "capped": "sampler/importance_capped",
}
# Numbers that a resumed run goes on with.
_STATE = ("steps_done", "moving_reward", "penalty", "beta", "attempt", "lr_scale")


class Learner:
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
        self.critic = Critic(policy, cfg, shared=algorithm.trunk == "shared") if algorithm.critic else None
        self.steps_done = 0  # of the run; the learning rate follows it
        self.beta = cfg.algo.beta  # coefficient of the pull of the reference
        self.penalty = cfg.algo.penalty  # coefficient of KL(old || new), where there is one
        self.attempt = 0  # times that the run was rolled back
        self.lr_scale = 1.0  # of the learning rate, halved each time
        self.moving_reward = 0.0  # average of the steps before, for the baseline of that name
        self.passed: Callable[[str, int, int], object] = Progress().count  # after each micro-batch
        # Something besides advantages moves a row: the reference's pull in the loss, the entropy bonus, a critic on
        # the same trunk.
        pulled = reference is not None and algorithm.kl_in == "loss"
        self._pulls = pulled or cfg.algo.entropy > 0 or (algorithm.critic and algorithm.trunk == "shared")

    # ------------------------------------------------------------------------------------------------ credit

    def credit(self, batch: Batch) -> Batch:
        """The annotated batch with advantages."""
        row, algo = self.algorithm, self.cfg.algo
        if row.returns == "process":
            assert batch.step_rewards is not None and batch.step_ends is not None, "process returns without steps"
            found = process_advantages(batch.step_rewards, batch.step_ends, batch.mask, group=algo.group)
            return replace(batch, advantages=found)
        rewards = self._token_rewards(batch)
        if row.critic:
            return self._by_critic(batch, rewards)
        found = advantages(
            rewards,
            batch.mask,
            group=algo.group,
            returns=row.returns,
            baseline=row.baseline,
            scale=row.scale,
            moving=self.moving_reward,
        )
        mean, decay = float(batch.rewards.mean()), algo.moving_decay if self.steps_done else 0.0
        self.moving_reward = decay * self.moving_reward + (1 - decay) * mean
        return replace(batch, advantages=found)

    def _by_critic(self, batch: Batch, rewards: Tensor) -> Batch:
        """Advantages over the critic's values, scaled, and the returns that it learns from."""
        assert batch.values is not None, "a critic without values"
        row, critic = self.algorithm, self.cfg.critic
        if row.returns == "gae":
            rule = {"gamma": critic.gamma, "lam": critic.lam}
            found, returns = gae(rewards, batch.values, batch.mask, batch.truncated, **rule)
        else:
            returns = reward_to_go(rewards, batch.mask, gamma=critic.gamma).float() * batch.mask
            found = (returns - batch.values[:, :-1]) * batch.mask
        totals = total_return(rewards, batch.mask)[:, 0]
        found = SCALES[row.scale](found.double(), totals, batch.mask, group=self.cfg.algo.group)
        return replace(batch, advantages=torch.where(batch.mask, found, 0.0).float(), returns=returns)

    def _token_rewards(self, batch: Batch) -> Tensor:
        """[N, T]: the reward at the last token, and where the row says so the KL penalty at every one."""
        rewards = torch.zeros_like(batch.sampler_logprobs)
        earned = batch.rewards - self.cfg.algo.missing_end * batch.truncated
        rewards.scatter_(1, (batch.lengths - 1).clamp_min(0)[:, None], earned[:, None])
        if self.algorithm.kl_in == "reward" and batch.ref_logprobs is not None:
            drawn = batch.sampler_logprobs if batch.old_logprobs is None else batch.old_logprobs
            rewards = rewards - self.beta * KL[self.algorithm.kl](drawn, batch.ref_logprobs) * batch.mask
        if self.critic is not None and self.cfg.critic.whiten_rewards:
            rewards = whitened(rewards, batch.mask, keeps_mean=True).float()
        return rewards

    def _kept(self, batch: Batch) -> Batch:
        """Without the groups that the algorithm drops; all of them where there is nothing else."""
        if not self.algorithm.drops_flat:
            return batch
        group = self.cfg.algo.group
        kept = (batch.advantages != 0).any(dim=1).view(-1, group).any(dim=1).repeat_interleave(group)
        return batch.rows(kept.nonzero()[:, 0]) if kept.any() else batch

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

        passed = partial(self.passed, "log-probabilities")
        tokens = self.cfg.optim.micro_batch_tokens
        return every_row(batch, partial(self._read, model), found, tokens=tokens, passed=passed)

    def _read(self, model: PreTrainedModel, block: Batch) -> ReadPrompts:
        with self._precision():
            return read_prompts(model, block.prompt_ids, block.prompt_lengths)

    def _states(self, model: PreTrainedModel, prompts: ReadPrompts, rows: Batch) -> Tensor:
        """[N, T, H]: before each token."""
        with self._precision():
            return completion_states(model, prompts, rows.prompt_of, rows.completion_ids)

    def _logprobs(self, model: PreTrainedModel, states: Tensor, rows: Batch) -> tuple[Tensor, Tensor]:
        """[N, T] x 2: log-probabilities and entropies."""
        how = {"temperature": self.cfg.sampling.temperature, "learns_entropy": self.cfg.algo.entropy > 0}
        with self._precision():
            return completion_logprobs(model, states, rows.completion_ids, rows.lengths, **how)

    def _precision(self) -> AbstractContextManager[object]:
        enabled = self.cfg.optim.dtype == "bfloat16"
        return torch.autocast(self.policy.device.type, dtype=torch.bfloat16, enabled=enabled)

    # ------------------------------------------------------------------------------------------------ update

    def update(self, batch: Batch, tally: Tally | None = None) -> dict[str, float]:
        """All optimiser steps on the batch; what happened, averaged over the tokens that were computed. Where none was,
        for want of anything that moves, there is no entropy, KL or gap to tell.

        The names are explained in reasoner.journal.METRICS. A `tally` can keep the figures of every token.
        """
        tally = tally or Tally()
        batch = self._kept(batch)
        norms: list[float] = []
        skipped = 0
        told = self._teach_critic(batch)
        if self.critic is not None and self.steps_done < self.cfg.critic.warmup_steps:
            batch = replace(batch, advantages=torch.zeros_like(batch.advantages))
        for epoch in range(self.algorithm.epochs):
            for index in self._minibatches(len(batch), epoch):
                if self._is_far(batch, after=len(norms)):
                    break
                norm = self._step(batch.rows(index), tally)
                skipped += norm is None
                norms += [] if norm is None else [norm]
        lr = self._lr()
        self.steps_done += 1
        averages = tally.averages()
        computed = {name: averages[short] for short, name in _FIGURES.items() if short in averages}
        if self.algorithm.trust == "penalty" and self.cfg.algo.penalty_target:
            told["policy_kl"] = self._moved(batch)[1]
            self.penalty = adapted(self.penalty, told["policy_kl"], self.cfg.algo.penalty_target)
            told["penalty"] = self.penalty
        told |= self._follow_reference(averages.get("kl", 0.0))
        return {
            "loss": 0.0,
            **computed,
            **({"sampler/logprob_gap_max": tally.gap_max} if computed else {}),
            "grad_norm": sum(norms) / max(1, len(norms)),
            "lr": lr,
            "skipped_updates": float(skipped),
            **told,
            **tally.losses(len(norms) + skipped),
            **tally.told,
        }

    def _follow_reference(self, kl: float) -> dict[str, float]:
        """After a step: the coefficient moves towards its target, and the reference may become the policy."""
        algo = self.cfg.algo
        if self.reference is not None and algo.refresh_reference and self.steps_done % algo.refresh_reference == 0:
            self.reference.load_state_dict(self.policy.state_dict())
        if not algo.kl_target:
            return {}
        self.beta = adapted(self.beta, kl, algo.kl_target)
        return {"beta": self.beta}

    def _teach_critic(self, batch: Batch) -> dict[str, float]:
        """The passes over the batch of a critic with a trunk of its own; the loss before the last one."""
        if self.critic is None:
            return {}
        told = {"critic/explained": explained(batch)}
        if not self.critic.shared:
            batch = replace(batch, weights=self._weights(batch))
            for _ in range(self.cfg.critic.epochs):
                told["critic/loss"] = self.critic.update(batch)
        return told

    def _weights(self, batch: Batch) -> Tensor:
        """[N, T], over the rows that are learnt from."""
        learnt = ~batch.truncated if self.cfg.algo.mask_truncated else torch.ones_like(batch.truncated)
        shape = {"max_tokens": self.cfg.sampling.max_tokens, "rows": int(learnt.sum())}
        return token_weights(batch.mask & learnt[:, None], self.algorithm.weights, **shape)

    def _minibatches(self, rows: int, epoch: int) -> Iterator[Tensor]:
        """Whole groups in an order fixed by (seed, step, epoch); one minibatch keeps the batch's own order."""
        group, parts = self.cfg.algo.group, self.algorithm.minibatches
        groups = torch.arange(rows).view(-1, group)
        if parts > 1:
            seed = hash((self.cfg.seed, self.steps_done, epoch)) % 2**63
            groups = groups[torch.randperm(len(groups), generator=torch.Generator().manual_seed(seed))]
        for part in groups.tensor_split(min(parts, len(groups))):
            yield part.flatten()

    def _step(self, batch: Batch, tally: Tally) -> float | None:
        """One optimiser step; the norm of its gradient, or None when that is not finite and nothing was changed."""
        batch = replace(batch, weights=self._weights(batch))
        # A row without advantage moves nothing unless the reference pulls at it. It stays in the denominators above.
        moving = (batch.advantages != 0).any(dim=1) | self._pulls
        self.optimizer.zero_grad()
        if moving.any():
            rows, read = moving.nonzero()[:, 0], partial(self._read, self.policy)
            tokens = self.cfg.optim.micro_batch_tokens
            passed = partial(self.passed, "learnt")
            add_gradient(batch, rows, read, partial(self._loss, tally), tokens=tokens, passed=passed)
        if self.algorithm.trust == "constrained":
            return self._constrained(batch, tally)
        norm = torch.nn.utils.clip_grad_norm_(self.policy.parameters(), self.cfg.optim.max_grad_norm)
        if not torch.isfinite(norm):
            self.optimizer.zero_grad()
            return None
        for param_group in self.optimizer.param_groups:
            param_group["lr"] = self._lr()
        self.optimizer.step()
        if self.critic is not None and self.critic.shared:
            self.critic.step()
        return float(norm)

    def _loss(self, tally: Tally, prompts: ReadPrompts, rows: Batch) -> Tensor:
        """The rows' share of the step's loss; adds their figures to the tally."""
        mask = rows.mask
        states = self._states(self.policy, prompts, rows)
        logp, entropy = self._logprobs(self.policy, states, rows)
        old = logp.detach() if rows.old_logprobs is None else rows.old_logprobs
        row, algo = self.algorithm, self.cfg.algo
        ratio = RATIOS[row.ratio](logp, old, mask)
        trusted = sampler_weights(old, rows.sampler_logprobs, mask, how=algo.importance, cap=algo.importance_cap)
        kl = None if rows.ref_logprobs is None else KL[row.kl](logp, rows.ref_logprobs)
        per_token = self._pulled(trusted * self._surrogate(ratio, logp, old, rows), kl) - algo.entropy * entropy
        gap = ((old - rows.sampler_logprobs).abs() * mask).detach()
        figures = {
            "tokens": mask.sum(),
            "entropy": entropy.detach().sum(),
            "clipped": (is_clipped(ratio.detach(), rows.advantages, low=row.clip_low, high=row.clip_high) & mask).sum(),
            "gap": gap.sum(),
            "trust": (trusted * mask).sum(),
            "capped": ((trusted >= algo.importance_cap) & mask).sum(),
        }
        tokens = {"entropy": entropy} | ({"advantages": rows.advantages} if row.returns != "total" else {})
        if kl is not None:
            figures["kl"] = (kl.detach() * mask).sum()
            tokens["kl"] = kl
        weighed = rows.weights * per_token
        loss = weighed.sum()
        if self.critic is not None and self.critic.shared:
            valued = self.critic.loss(states, rows)
            figures["critic/loss"] = valued.detach()
            loss = loss + self.cfg.critic.coefficient * valued
        tally.add(figures | {"loss": loss.detach()}, gap_max=gap.max())
        tally.keep(rows.place, rows.lengths, tokens | {"loss": weighed})
        return loss

    def _surrogate(self, ratio: Tensor, logp: Tensor, old: Tensor, rows: Batch) -> Tensor:
        """[N, T]: the surrogate's loss of each token, the penalty for moving away from the old policy included."""
        row = self.algorithm
        clip = {"low": row.clip_low, "high": row.clip_high, "dual": row.dual_clip}
        found = SURROGATES[row.surrogate](ratio, logp, rows.advantages, **clip)
        return found + self.penalty * kl_k3(old, logp) if row.trust == "penalty" else found

    def _pulled(self, per_token: Tensor, kl: Tensor | None) -> Tensor:
        """[N, T] x 2: with the pull of the reference, where it is in the loss."""
        return per_token if kl is None or self.algorithm.kl_in != "loss" else per_token + self.beta * kl

    # ------------------------------------------------------------------------------------------- trust region

    def _constrained(self, batch: Batch, tally: Tally) -> float:
        """TRPO's step from the gradient that the parameters hold; its norm."""
        parameters = [p for p in self.policy.parameters() if p.requires_grad]
        gradient = torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).flatten() for p in parameters])
        self.optimizer.zero_grad()
        if gradient.abs().max() == 0:
            return 0.0
        product = fisher_product(partial(self._fisher_divergence, batch), parameters, damping=self.cfg.algo.damping)
        delta = self.cfg.algo.delta * self.lr_scale
        done = constrained_step(parameters, gradient, product, partial(self._moved, batch), delta=delta)
        tally.told |= {"policy_kl": done.kl, "trust/share": done.share}
        return float(gradient.norm())

    def _fisher_divergence(self, batch: Batch) -> Tensor:
        """Mean KL(policy as it is || policy) over tokens of rows from all over the batch, whole distributions: 0, and
        curved.
        """
        number = min(len(batch), self.cfg.algo.fisher_rows)
        chosen = torch.arange(number, device=batch.lengths.device) * len(batch) // number
        ((_, rows),) = batch.prompt_blocks(batch.prompt_ids.numel() + 1, chosen)
        with sdpa_kernel(SDPBackend.MATH):  # the fused kernels have no second derivative
            prompts = self._read(self.policy, rows)
            states = self._states(self.policy, prompts, rows)[rows.mask]
            found = log_softmax(self.policy, states, temperature=self.cfg.sampling.temperature)
        old = found.detach()
        return (old.exp() * (old - found)).sum(dim=-1).mean()

    @torch.no_grad()
    def _moved(self, batch: Batch) -> tuple[float, float]:
        """(the step's loss, the pull of the reference included; mean k3 estimate of KL(old || new)) at the policy as it
        stands.
        """
        assert batch.old_logprobs is not None
        logp, tokens = self._all_logprobs(self.policy, batch), batch.mask.sum().clamp_min(1)
        ratio = RATIOS[self.algorithm.ratio](logp, batch.old_logprobs, batch.mask)
        kl = None if batch.ref_logprobs is None else KL[self.algorithm.kl](logp, batch.ref_logprobs)
        per_token = self._pulled(self._surrogate(ratio, logp, batch.old_logprobs, batch), kl)
        moved = (kl_k3(batch.old_logprobs, logp) * batch.mask).sum() / tokens
        return float((batch.weights * per_token).sum()), float(moved)

    def _is_far(self, batch: Batch, *, after: int) -> bool:
        """After some updates, and where it is asked for, the policy has moved further than it may."""
        limit = self.cfg.algo.stop_kl
        return bool(limit) and after > 0 and batch.old_logprobs is not None and self._moved(batch)[1] > limit

    def _lr(self) -> float:
        """Linear warm-up, then constant, then linear towards 0 over the last `decay_share` of the run."""
        optim, steps = self.cfg.optim, self.cfg.steps
        warm = (self.steps_done + 1) / max(1, optim.warmup_steps)
        left = (steps - self.steps_done) / max(1.0, optim.decay_share * steps) if optim.decay_share else 1.0
        return optim.lr * self.lr_scale * min(1.0, warm, left)

    # ------------------------------------------------------------------------------------------------- state

    def state(self) -> dict[str, float]:
        """What a resumed run needs besides weights and optimiser."""
        return {name: getattr(self, name) for name in _STATE}

    def restore(self, state: Mapping[str, float]) -> None:
        for name in _STATE:
            setattr(self, name, state[name])

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """(name, tensor) of the policy as its state names them, tied tensors under each of their names.

        An engine that keeps a head of its own, as vLLM does on a CPU, would otherwise go on with the old one.
        """
        yield from self.policy.state_dict().items()
