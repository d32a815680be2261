"""The learner: gives a batch credit and moves the policy.

Shapes: P prompts, G completions of each, N = P * G rows, T completion positions.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace

import torch
from torch import Tensor
from transformers import PreTrainedModel

from reasoner.config import Config
from reasoner.models import ReadPrompts, completion_logprobs, read_prompts
from reasoner.rl.algorithms import Algorithm
from reasoner.rl.batch import Batch
from reasoner.rl.kl import KL
from reasoner.rl.losses import clipped_surrogate, is_clipped, token_weights
from reasoner.rl.tally import Tally


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
        self.steps_done = 0  # of the run; the learning rate follows it

    # ------------------------------------------------------------------------------------------------ credit

    def credit(self, batch: Batch) -> Batch:
        """The batch with advantages; without the groups that the algorithm drops."""
        group = self.cfg.algo.group
        batch = replace(batch, advantages=self.advantages(batch))
        if self.algorithm.drops_flat:
            kept = (batch.advantages.view(-1, group) != 0).any(dim=1).repeat_interleave(group)
            if kept.any():
                batch = batch.rows(kept.nonzero()[:, 0])
        return batch

    def advantages(self, batch: Batch) -> Tensor:
        """[N]"""
        return self.algorithm.credit(batch.rewards.view(-1, self.cfg.algo.group)).flatten()

    @torch.no_grad()
    def annotate(self, batch: Batch) -> Batch:
        """The batch with the reference's log-probabilities, and the policy's own where several updates will follow."""
        if self.reference is not None:
            batch = replace(batch, ref_logprobs=self._all_logprobs(self.reference, batch))
        if self.cfg.algo.epochs * self.cfg.algo.minibatches > 1:
            batch = replace(batch, old_logprobs=self._all_logprobs(self.policy, batch))
        return batch

    def _all_logprobs(self, model: PreTrainedModel, batch: Batch) -> Tensor:
        """[N, T]"""
        found = torch.zeros_like(batch.sampler_logprobs)
        tokens = self.cfg.optim.micro_batch_tokens
        for outer, block in batch.prompt_blocks(tokens, torch.arange(len(batch), device=batch.lengths.device)):
            prompts = self._read(model, block)
            for inner, rows in block.micro_batches(tokens):
                found[outer[inner], : rows.completion_ids.shape[1]] = self._logprobs(model, prompts, rows)[0]
        return found

    def _read(self, model: PreTrainedModel, block: Batch) -> ReadPrompts:
        with self._precision():
            return read_prompts(model, block.prompt_ids, block.prompt_lengths)

    def _logprobs(self, model: PreTrainedModel, prompts: ReadPrompts, rows: Batch) -> tuple[Tensor, Tensor]:
        """[N, T] x 2: log-probabilities and entropies."""
        temperature = self.cfg.sampling.temperature
        with self._precision():
            return completion_logprobs(
                model, prompts, rows.prompt_of, rows.completion_ids, rows.lengths, temperature=temperature
            )

    def _precision(self) -> AbstractContextManager[object]:
        enabled = self.cfg.optim.dtype == "bfloat16"
        return torch.autocast(self.policy.device.type, dtype=torch.bfloat16, enabled=enabled)

    # ------------------------------------------------------------------------------------------------ update

    def update(self, batch: Batch, tally: Tally | None = None) -> dict[str, float]:
        """All optimiser steps on the batch; what happened, averaged over the tokens that were computed.

        The names are explained in reasoner.journal.METRICS. A `tally` can keep the figures of every token.
        """
        tally = tally or Tally()
        norms: list[float] = []
        skipped = 0
        for epoch in range(self.cfg.algo.epochs):
            for index in self._minibatches(len(batch), epoch):
                norm = self._step(batch.rows(index), tally)
                skipped += norm is None
                norms += [] if norm is None else [norm]
        lr = self._lr()
        self.steps_done += 1
        averages = tally.averages()
        return {
            "loss": tally.sums.get("loss", 0.0) / max(1, len(norms) + skipped),
            "kl": averages.get("kl", 0.0),
            "entropy": averages.get("entropy", 0.0),
            "clip_ratio": averages.get("clipped", 0.0),
            "sampler/logprob_gap_mean": averages.get("gap", 0.0),
            "sampler/logprob_gap_max": tally.gap_max,
            "grad_norm": sum(norms) / max(1, len(norms)),
            "lr": lr,
            "skipped_updates": float(skipped),
        }

    def _minibatches(self, rows: int, epoch: int) -> Iterator[Tensor]:
        """Whole groups in an order fixed by (seed, step, epoch); one minibatch keeps the batch's own order."""
        group, parts = self.cfg.algo.group, self.cfg.algo.minibatches
        groups = torch.arange(rows).view(-1, group)
        if parts > 1:
            seed = hash((self.cfg.seed, self.steps_done, epoch)) % 2**63
            groups = groups[torch.randperm(len(groups), generator=torch.Generator().manual_seed(seed))]
        for part in groups.tensor_split(min(parts, len(groups))):
            yield part.flatten()

    def _step(self, batch: Batch, tally: Tally) -> float | None:
        """One optimiser step; the norm of its gradient, or None when that is not finite and nothing was changed."""
        weights = token_weights(batch.mask, self.algorithm.weights, max_tokens=self.cfg.sampling.max_tokens)
        batch = replace(batch, weights=weights)
        # A row without advantage moves nothing unless the reference pulls at it. It stays in the denominators above.
        moving = batch.advantages != 0 if self.reference is None else torch.ones_like(batch.advantages)
        self.optimizer.zero_grad()
        if moving.any():
            self._backward(batch, moving.nonzero()[:, 0], tally)
        norm = torch.nn.utils.clip_grad_norm_(self.policy.parameters(), self.cfg.optim.max_grad_norm)
        if not torch.isfinite(norm):
            self.optimizer.zero_grad()
            return None
        for param_group in self.optimizer.param_groups:
            param_group["lr"] = self._lr()
        self.optimizer.step()
        return float(norm)

    def _backward(self, batch: Batch, index: Tensor, tally: Tally) -> None:
        """Add the gradient of the rows' loss to the parameters.

        A block's prompts are computed once, forth and back. In between its completions go through in micro-batches, and
        their gradients with respect to what they read of the prompts add up.
        """
        tokens = self.cfg.optim.micro_batch_tokens
        for _, block in batch.prompt_blocks(tokens, index):
            prompts = self._read(self.policy, block)
            leaves = prompts.leaves()
            for _, rows in block.micro_batches(tokens):
                self._loss(leaves, rows, tally).backward()
            prompts.backward(leaves)

    def _loss(self, prompts: ReadPrompts, rows: Batch, tally: Tally) -> Tensor:
        """The rows' share of the step's loss; adds their figures to the tally."""
        mask = rows.mask
        logp, entropy = self._logprobs(self.policy, prompts, rows)
        old = logp.detach() if rows.old_logprobs is None else rows.old_logprobs
        clip = {"low": self.algorithm.clip_low, "high": self.algorithm.clip_high}
        advantages = rows.advantages[:, None]
        per_token = clipped_surrogate(logp, old, advantages, **clip)
        gap = ((old - rows.sampler_logprobs).abs() * mask).detach()
        figures = {
            "tokens": mask.sum(),
            "entropy": entropy.sum(),
            "clipped": (is_clipped(logp.detach(), old, advantages, **clip) & mask).sum(),
            "gap": gap.sum(),
        }
        tokens = {"entropy": entropy}
        if rows.ref_logprobs is not None:
            kl = KL[self.cfg.algo.kl](logp, rows.ref_logprobs)
            per_token = per_token + self.cfg.algo.beta * kl
            figures["kl"] = (kl.detach() * mask).sum()
            tokens["kl"] = kl
        weighed = rows.weights * per_token
        loss = weighed.sum()
        tally.add(figures | {"loss": loss.detach()}, gap_max=gap.max())
        tally.keep(rows.place, rows.lengths, tokens | {"loss": weighed})
        return loss

    def _lr(self) -> float:
        """Linear warm-up, then constant, then linear towards 0 over the last `decay_share` of the run."""
        optim, steps = self.cfg.optim, self.cfg.steps
        warm = (self.steps_done + 1) / max(1, optim.warmup_steps)
        left = (steps - self.steps_done) / max(1.0, optim.decay_share * steps) if optim.decay_share else 1.0
        return optim.lr * min(1.0, warm, left)

    # ------------------------------------------------------------------------------------------------- state

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """(name, tensor) of the policy as its state names them, tied tensors under each of their names.

        An engine that keeps a head of its own, as vLLM does on a CPU, would otherwise go on with the old one.
        """
        yield from self.policy.state_dict().items()
