"""The sync certificate: before its first step a run shows that its engine samples from the weights that it is sent.

A probe with the weights that an engine was loaded with cannot see what an update does not copy. So each kind of trained
weights is changed, sent, compared and put back: the log-probabilities of engine and trainer must agree with the changes
and with the weights of before again. A kind is changed by as little as shows in the log-probabilities, all of them at
once, and one at a time where that disagrees: a deep model that is changed by more rounds by nats and tells nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import repeat

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
PROBE_LENGTH = _PROMPT_TOKENS + _TOKENS  # tokens that the engine must take
_STRIDE = 7919  # between the ids of the prompts
# The change of a weight: its mantissa's bit that is worth 2**-k of its binade, for the first k that moves the
# log-probabilities by so many nats or limits, whichever is more.
_BITS, _SHOWN_NATS, _SHOWN_LIMITS = (6, 4, 2, 1), 0.02, 2.0


def certify_sync(trainer: Trainer, generator: RolloutGenerator) -> SyncCertificate:
    """Compare engine and trainer after changes of every trained weight, and after the change back. Both then have the
    weights of before, to the bit. A collective operation.

    RuntimeError where the difference is above the limit for the precision of the engine and of the trainer's passes,
    and in fp8 where no change of one kind of weights is larger than that limit.
    """
    probe, dtype = _Probe(trainer, generator), generator.cfg.engine.dtype
    limit = max(LIMITS[dtype], LIMITS["bfloat16"] if computes_in_bfloat16(trainer.model) else 0.0)
    comparisons = _comparisons(_groups(trainer), probe, limit)
    restored = probe.gap()
    stale = [name for name, (gap, _) in comparisons.items() if not gap <= limit]  # also where it is not a number
    if stale or not restored <= limit:
        raise RuntimeError(
            f"the engine {generator.engine.name} does not sample from the weights that it is sent: log-probabilities "
            f"differ from the trainer's by {restored:.2g} nats a token with the weights as they are (at most {limit:g})"
            + "".join(f", {comparisons[name][0]:.2g} after an update of {name}" for name in stale)
            + "; --engine transformers samples with the trainer's own kind of model"
        )
    changed = max(gap for gap, _ in comparisons.values())
    unseen = tuple(name for name, (_, effect) in comparisons.items() if effect <= limit)
    if dtype == "fp8" and len(unseen) == len(comparisons):
        raise RuntimeError(
            "nothing shows that the engine in fp8 samples from the weights that it is sent: no change of one kind of "
            f"weights moves this model's log-probabilities by more than {limit:g} nats, what fp8 may round by; "
            "--engine.dtype bfloat16 or float32 can be checked"
        )
    kind, has_lora = type(trainer.model).__name__, has_adapter(trainer.model)
    return SyncCertificate(
        kind, generator.engine.name, dtype, has_lora, changed, restored, len(comparisons), unseen, limit
    )


def _groups(trainer: Trainer) -> dict[str, list[Tensor]]:
    """The trained weights of each name, with * for the numbers of layers."""
    groups: dict[str, list[Tensor]] = {}
    for name, weight in trained_parameters(trainer.model):
        groups.setdefault(re.sub(r"\b\d+\b", "*", name), []).append(weight)
    return groups


def _comparisons(groups: Mapping[str, Sequence[Tensor]], probe: _Probe, limit: float) -> dict[str, tuple[float, float]]:
    """(gap, effect) of each kind of weights, in nats: how far the engine is from the trainer with its change, and the
    trainer from itself without it. All weights are as before then, in the trainer alone.
    """
    changes = {name: _Change(weights) for name, weights in groups.items()}
    # Weights of zeros first, and until the end: a change of an adapter's other half shows only beside them.
    zeros = [name for name, change in changes.items() if not probe.largest(change.has_values)]
    changes = {name: changes[name] for name in sorted(changes, key=lambda name: name not in zeros)}
    try:
        probe.gap()
        logprobs = probe.own
        for change in changes.values():
            logprobs = _change_until_shown(change, probe, logprobs, max(_SHOWN_NATS, _SHOWN_LIMITS * limit))
        if (gap := probe.gap()) <= limit:
            return {name: (gap, _effect(change, probe)) for name, change in changes.items()}
        for change in changes.values():
            change.undo()
        comparisons = {}
        for name, change in changes.items():
            change.apply()
            comparisons[name] = probe.gap(), _effect(change, probe)
            if name not in zeros or comparisons[name][0] > limit:
                change.undo()
        return comparisons
    finally:
        for change in changes.values():
            change.undo()


def _change_until_shown(change: _Change, probe: _Probe, before: Tensor, effect: float) -> Tensor:
    """Change weights by as little as moves the trainer's log-probabilities by `effect` nats from those of `before`, or
    by the most -> the log-probabilities then.
    """
    for k in _BITS:
        change.apply(k)
        logprobs = probe.logprobs()
        if probe.mean(logprobs - before) >= effect:
            break
    return logprobs


def _effect(change: _Change, probe: _Probe) -> float:
    """How far the trainer's log-probabilities without a change are from those at the last gap."""
    change.undo()
    effect = probe.mean(probe.logprobs() - probe.own)
    change.apply()
    return effect


class _Change:
    """A change of weights that is undone to the bit without a copy of them: a bit of each mantissa is flipped. Every
    second one of weights that all are 0, as in an adapter that is not trained yet, gets a small value. A rank changes
    what it holds.
    """

    def __init__(self, weights: Sequence[Tensor]) -> None:
        own = [weight.detach() for weight in weights]
        self._values = [(weight.to_local() if isinstance(weight, DTensor) else weight).view(-1) for weight in own]
        self._are_zero = [not bool(values.any()) for values in self._values]
        self._flips: list[tuple[Tensor, int]] = []  # the words of weights, and the bits that are flipped in them
        self._is_applied = False

    @property
    def has_values(self) -> bool:
        """Whether a weight that this rank holds is not 0."""
        return not all(self._are_zero)

    def apply(self, k: int | None = None) -> None:
        """Change the weights by 2**-k in place of the change before; None: by as much as that."""
        self.undo()
        if k is not None:
            self._flips = list(map(_flip, self._values, self._are_zero, repeat(k)))
        self._toggle()

    def undo(self) -> None:
        """Undo the change, if it is applied."""
        if self._is_applied:
            self._toggle()

    def _toggle(self) -> None:
        for words, bits in self._flips:
            words.bitwise_xor_(bits)
        self._is_applied = not self._is_applied


def _flip(values: Tensor, is_zero: bool, k: int) -> tuple[Tensor, int]:
    """(words, bits): flipped in the words, the bits change the values, or every second one of zeros, by 2**-k."""
    word = {2: torch.int16, 4: torch.int32}[values.element_size()]
    if is_zero:
        return values.view(word)[::2], int(torch.tensor(2.0**-k, dtype=values.dtype).view(word))
    return values.view(word), round(2.0**-k / torch.finfo(values.dtype).eps)


class _Probe:
    """Short completions that the engine samples, and their log-probabilities in engine and trainer.

    The trainer computes in the precision in which it is closer to the engine with the weights as they are: float32
    rounds less, and in the engine's own the weights are rounded as its are (reasoner.trainer.parity).
    """

    def __init__(self, trainer: Trainer, generator: RolloutGenerator) -> None:
        self._trainer, self._generator = trainer, generator
        num_ids = OutputLayer.of(trainer.model).num_ids
        ids = [(_STRIDE * number) % num_ids for number in range(_ROWS * _PROMPT_TOKENS)]
        rows = [tuple(ids[start : start + _PROMPT_TOKENS]) for start in range(0, len(ids), _PROMPT_TOKENS)]
        self._prompts = [Prompt(Problem("probe", "", "0"), "", "", row) for row in rows]
        self._sampling = SamplingParams(num_samples=2, max_tokens=_TOKENS, temperature=generator.sampling.temperature)
        self._groups: Sequence[RolloutGroup] = ()
        self.own = torch.empty(0)  # the trainer's log-probabilities at the last gap
        self._dtype = ""  # the trainer's precision, once it is chosen

    def gap(self) -> float:
        """Send the policy's weights to the engine -> the mean |difference| from the trainer on new completions, in
        nats: the largest mean of a rank.
        """
        self._generator.update_weights(self._trainer.model, version=self._trainer.steps_done)
        self._groups = sample(self._generator.engine, self._prompts, self._sampling)
        self._dtype = self._dtype or min(("float32", self._generator.cfg.engine.dtype), key=self._gap)
        return self._gap(self._dtype)

    def _gap(self, dtype: str) -> float:
        sampled, self.own = self._compare(dtype)
        return self.mean(sampled - self.own)

    def logprobs(self) -> Tensor:
        """The trainer's log-probabilities of the completions, with its weights as they are now."""
        return self._compare(self._dtype)[1]

    def _compare(self, dtype: str) -> tuple[Tensor, Tensor]:
        return logprobs_of(self._groups, self._trainer.model, self._sampling.temperature, dtype)

    def mean(self, difference: Tensor) -> float:
        """The mean |difference|: the largest of all ranks."""
        return self.largest(float(difference.abs().mean()))

    def largest(self, value: float) -> float:
        return self._generator.world.largest(value, "the sync certificate")
