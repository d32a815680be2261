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
from reasoner.models import token_logprobs
from reasoner.rl.algorithms import Algorithm
from reasoner.rl.batch import Batch
from reasoner.rl.kl import KL
from reasoner.rl.losses import clipped_surrogate, is_clipped, token_weights


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
        for index, rows in batch.micro_batches(self.cfg.optim.micro_batch_tokens):
            found[index, : rows.completion_ids.shape[1]] = self._logprobs(model, rows)[0]
        return found

    def _logprobs(self, model: PreTrainedModel, rows: Batch) -> tuple[Tensor, Tensor]:
        with self._precision():
            return token_logprobs(
                model,
                rows.prompt_ids,
                rows.prompt_lengths,
                rows.prompt_of,
                rows.completion_ids,
                rows.lengths,
                temperature=self.cfg.sampling.temperature,
            )

    def _precision(self) -> AbstractContextManager[object]:
        enabled = self.cfg.optim.dtype == "bfloat16"
        return torch.autocast(self.policy.device.type, dtype=torch.bfloat16, enabled=enabled)

    # ------------------------------------------------------------------------------------------------ update

    def update(self, batch: Batch) -> dict[str, float]:
        """All optimiser steps on the batch; what happened, averaged over its tokens (names: reasoner.journal.METRICS)."""
        sums: dict[str, float] = {}
        norms: list[float] = []
        skipped = 0
        for epoch in range(self.cfg.algo.epochs):
            for index in self._minibatches(len(batch), epoch):
                norm = self._step(batch.rows(index), sums)
                skipped += norm is None
                norms += [] if norm is None else [norm]
        self.steps_done += 1
        tokens = max(1.0, sums.pop("tokens", 0.0))
        gap_max = sums.pop("gap_max", 0.0)
        averages = {name: total / tokens for name, total in sums.items() if name != "loss"}
        return {
            "loss": sums.get("loss", 0.0) / max(1, len(norms) + skipped),
            "kl": averages.get("kl", 0.0),
            "entropy": averages.get("entropy", 0.0),
            "clip_ratio": averages.get("clipped", 0.0),
            "sampler/logprob_gap_mean": averages.get("gap", 0.0),
            "sampler/logprob_gap_max": gap_max,
            "grad_norm": sum(norms) / max(1, len(norms)),
            "lr": self._lr(),
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

    def _step(self, batch: Batch, sums: dict[str, float]) -> float | None:
        """One optimiser step; the norm of its gradient, or None when that is not finite and nothing was changed."""
        weights = token_weights(batch.mask, self.algorithm.weights, max_tokens=self.cfg.sampling.max_tokens)
        batch = replace(batch, weights=weights)
        # A row without advantage moves nothing unless the reference pulls at it. It stays in the denominators above.
        index = None if self.reference is not None else batch.advantages.nonzero()[:, 0]
        self.optimizer.zero_grad()
        if index is None or len(index):
            for _, rows in batch.micro_batches(self.cfg.optim.micro_batch_tokens, index):
                self._loss(rows, sums).backward()
        norm = torch.nn.utils.clip_grad_norm_(self.policy.parameters(), self.cfg.optim.max_grad_norm)
        if not torch.isfinite(norm):
            self.optimizer.zero_grad()
            return None
        for param_group in self.optimizer.param_groups:
            param_group["lr"] = self._lr()
        self.optimizer.step()
        return float(norm)

    def _loss(self, rows: Batch, sums: dict[str, float]) -> Tensor:
        """The rows' share of the step's loss; adds their figures to `sums`."""
        mask = rows.mask
        logp, entropy = self._logprobs(self.policy, rows)
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
        if rows.ref_logprobs is not None:
            kl = KL[self.cfg.algo.kl](logp, rows.ref_logprobs)
            per_token = per_token + self.cfg.algo.beta * kl
            figures["kl"] = (kl.detach() * mask).sum()
        loss = (rows.weights * per_token).sum()
        for name, value in (figures | {"loss": loss.detach()}).items():
            sums[name] = sums.get(name, 0.0) + float(value)
        sums["gap_max"] = max(sums.get("gap_max", 0.0), float(gap.max()))
        return loss

    def _lr(self) -> float:
        """Linear warm-up, then constant."""
        return self.cfg.optim.lr * min(1.0, (self.steps_done + 1) / max(1, self.cfg.optim.warmup_steps))

    # ------------------------------------------------------------------------------------------------- state

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """(name, tensor) of the policy as a checkpoint names them; tied tensors once."""
        tied = set(getattr(self.policy, "_tied_weights_keys", None) or ())
        shares = self.policy.config.get_text_config().tie_word_embeddings
        for name, tensor in self.policy.state_dict().items():
            if not (shares and name in tied):
                yield name, tensor
