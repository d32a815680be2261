"""The sync certificate: before its first step a run shows that its engine samples from the weights that it is sent.

A probe with the weights that an engine was loaded with cannot see what an update does not copy. So every trained weight
is changed, sent, compared and put back: the log-probabilities of engine and trainer must agree with all weights
changed, and with those of before again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor

from data import Problem
from reasoner.models.loading import computes_in_bfloat16
from reasoner.models.lora import has_adapter, trained_parameters
from reasoner.models.output_layer import OutputLayer
from reasoner.runs.sync_certificate import SyncCertificate
from reasoner.trainer.parity import logprobs_of, sample
from reasoner.trainer.rollout_generator import RolloutGenerator
from reasoner.trainer.trainer import Trainer
from reasoner.types import Prompt, RolloutGroup, SamplingParams

# Nats: the mean |difference| of log-probabilities that rounding makes.
LIMITS = {"float32": 1e-3, "bfloat16": 0.5, "fp8": 1.0}
_ROWS, _PROMPT_TOKENS, _TOKENS = 4, 16, 8  # of the completions that are compared
_STRIDE = 7919  # between the ids of the prompts
_FROM_ZERO = 0.25  # what the changed values of a weight of zeros become
_EVERY, _EVERY_FP8 = 2, 8  # one value in so many is changed; with more of them fp8 rounds by more than it should show


def certify_sync(trainer: Trainer, generator: RolloutGenerator) -> SyncCertificate:
    """Compare engine and trainer after a change of every trained weight, and after the change back. Both then have the
    weights of before, to the bit. A collective operation.

    RuntimeError where the difference is above the limit for the precision of the engine and of the trainer's passes,
    and in fp8 where no change of one kind of weights is larger than that limit.
    """
    probe, dtype = _Probe(trainer, generator), generator.cfg.engine.dtype
    limit = max(LIMITS[dtype], LIMITS["bfloat16"] if computes_in_bfloat16(trainer.policy) else 0.0)
    every = _EVERY_FP8 if dtype == "fp8" else _EVERY
    changes = {name: _Change(weights, every) for name, weights in _groups(trainer).items()}
    try:
        for change in changes.values():
            change.apply()
        changed = probe.gap()
        without: dict[str, tuple[float, float]] = {}
        for name, change in changes.items():
            change.undo()
            without[name] = probe.gap_and_effect()
            change.apply()
    finally:
        for change in changes.values():
            change.undo()
    restored = probe.gap()
    if not max(changed, restored) <= limit:  # also where one is not a number
        stale = [name for name, (gap, _) in without.items() if gap <= limit]
        raise RuntimeError(
            f"the engine {generator.engine.name} does not sample from the weights that it is sent: log-probabilities "
            f"differ from the trainer's by {changed:.2g} nats a token after an update of every weight, and by "
            f"{restored:.2g} after the update back (at most {limit:g})"
            + (f"; it has not taken {', '.join(stale)}" if stale else "")
            + "; --engine transformers samples with the trainer's own kind of model"
        )
    unseen = tuple(name for name, (_, effect) in without.items() if effect <= limit)
    if dtype == "fp8" and len(unseen) == len(changes):
        raise RuntimeError(
            "nothing shows that the engine in fp8 samples from the weights that it is sent: no change of one kind of "
            f"weights moves this model's log-probabilities by more than {limit:g} nats, what fp8 may round by; "
            "--engine.dtype bfloat16 or float32 can be checked"
        )
    kind, has_lora = type(trainer.policy).__name__, has_adapter(trainer.policy)
    return SyncCertificate(kind, generator.engine.name, dtype, has_lora, changed, restored, len(changes), unseen, limit)


def _groups(trainer: Trainer) -> dict[str, list[Tensor]]:
    """The trained weights of each name, with * for the numbers of layers."""
    groups: dict[str, list[Tensor]] = {}
    for name, weight in trained_parameters(trainer.policy):
        groups.setdefault(re.sub(r"\b\d+\b", "*", name), []).append(weight)
    return groups


class _Change:
    """A change of weights that is undone to the bit without a copy of them: one value in `every` is doubled, or is
    _FROM_ZERO where all of them are 0, as in an adapter that is not trained yet. A rank changes what it holds.
    """

    def __init__(self, weights: Sequence[Tensor], every: int) -> None:
        own = [weight.detach() for weight in weights]
        local = [weight.to_local() if isinstance(weight, DTensor) else weight for weight in own]
        self._parts = [weight.view(-1)[::every] for weight in local]
        self._are_zero = [not bool(part.any()) for part in self._parts]
        self._is_applied = False

    def apply(self) -> None:
        for part, is_zero in zip(self._parts, self._are_zero, strict=True):
            part.fill_(_FROM_ZERO) if is_zero else part.mul_(2.0)
        self._is_applied = True

    def undo(self) -> None:
        """Undo the change, if it is applied."""
        for part, is_zero in zip(self._parts, self._are_zero, strict=True) if self._is_applied else ():
            part.zero_() if is_zero else part.mul_(0.5)
        self._is_applied = False


class _Probe:
    """Short completions that the engine samples, and their log-probabilities in engine and trainer."""

    def __init__(self, trainer: Trainer, generator: RolloutGenerator) -> None:
        self._trainer, self._generator = trainer, generator
        num_ids = OutputLayer.of(trainer.policy).num_ids
        ids = [(_STRIDE * number) % num_ids for number in range(_ROWS * _PROMPT_TOKENS)]
        rows = [tuple(ids[start : start + _PROMPT_TOKENS]) for start in range(0, len(ids), _PROMPT_TOKENS)]
        self._prompts = [Prompt(Problem("probe", "", "0"), "", "", row) for row in rows]
        self._sampling = SamplingParams(num_samples=2, max_tokens=_TOKENS, temperature=generator.sampling.temperature)
        self._groups: Sequence[RolloutGroup] = ()
        self._logprobs = torch.empty(0)  # of the trainer, when they were sampled

    def gap(self) -> float:
        """Send the policy's weights to the engine -> the mean |difference| from the trainer on new completions, in
        nats: the largest mean of a rank.
        """
        self._generator.update_weights(self._trainer.policy, version=self._trainer.steps_done)
        self._groups = sample(self._generator.engine, self._prompts, self._sampling)
        sampled, self._logprobs = self._compare()
        return self._mean(sampled - self._logprobs)

    def gap_and_effect(self) -> tuple[float, float]:
        """For the same completions, with the trainer's weights as they are now: the difference from the engine, and
        from the trainer's log-probabilities at the time of the sampling.
        """
        sampled, now = self._compare()
        return self._mean(sampled - now), self._mean(self._logprobs - now)

    def _compare(self) -> tuple[Tensor, Tensor]:
        return logprobs_of(self._groups, self._trainer.policy, self._sampling.temperature)

    def _mean(self, difference: Tensor) -> float:
        return self._generator.world.largest(float(difference.abs().mean()), "the sync certificate")
