"""Memory of each of several ranks, by how they hold the models (optim.sharding): a model, not a measurement.

The parts of a single process are those of doctor.memory. What sharding changes follows torch's FSDP2: weights,
gradients and moments are divided by the number of ranks, also while they are loaded; `gathered` holds all weights, in
the precision of the passes, and all gradients, in float32, for the passes of a step, `sharded` those of two layers (the
one at work and the next, whose gather has begun) and of the embeddings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reasoner.config.presets import HEADROOM
from reasoner.doctor.memory import MemoryEstimate, model_sizes, num_parameters

STRATEGIES = ("replicated", "gathered", "sharded")  # values of optim.sharding, from the fastest to the smallest
_BUCKET = 4 * 2**24  # bytes of gradients that are copied for a sum, or one tensor: distributed.gradients
_LAYERS = 2  # whole at once under `sharded`


@dataclass(frozen=True, slots=True)
class RankMemory:
    """The memory that a run needs on each of `ranks` GPUs."""

    estimate: MemoryEstimate  # of a single process with the micro-batches of one rank
    ranks: int

    @property
    def available(self) -> float:
        """Bytes of a GPU that a prediction may use."""
        return (1 - HEADROOM) * self.estimate.total

    def parts(self, sharding: str) -> dict[str, int]:
        """Bytes of each part. "whole_weights" and "whole_gradients" are held during the passes of a step alone."""
        part = self.estimate.parts()
        if sharding == "replicated" or self.ranks == 1:
            copied = min(part["gradients"], max(_BUCKET, self._largest_tensor()))
            return part | {"gradient_sum": copied if self.ranks > 1 else 0}
        divided = {name: -(-part[name] // self.ranks) for name in _DIVIDED}
        share = 1.0 if sharding == "gathered" else self._whole_share()
        whole = {
            "whole_weights": int(share * self._in_passes(part["weights"])),
            "whole_reference": int(share * self._in_passes(part["reference"])),
            "low_precision_weights": 0,  # they are what is gathered
            "whole_gradients": int(share * part["gradients"]),
            "synced_tensor": self._largest_tensor(),
            "head_gradient": self._head_gradient(),
        }
        return part | divided | whole

    def peak(self, sharding: str) -> int:
        """Most bytes at once: in the passes of the update, in those of the reference, or while sampling or syncing."""
        part = self.parts(sharding)
        resident = sum(part[name] for name in _RESIDENT)
        passes = self.estimate.passes_peak() - self.estimate.parts()["low_precision_weights"]
        passes += sum(part.get(name, 0) for name in _OF_PASSES)
        training = part["gradients"] + max(passes, part.get("gradient_sum", 0), part.get("whole_reference", 0))
        return resident + self.estimate.beside_engine(training, part)

    def _in_passes(self, held: int) -> int:
        """Bytes of a whole model of `held` bytes in the precision of the passes."""
        is_low = self.estimate.cfg.optim.dtype == "bfloat16"
        return min(held, 2 * num_parameters(self.estimate.model)) if is_low else held

    def _largest_tensor(self) -> int:
        """Bytes of the largest tensor in float32."""
        return 4 * max(parameter.numel() for parameter in self.estimate.model.parameters())

    def _head_gradient(self) -> int:
        """Bytes of the gradient of a trained output layer, which autograd holds beside the sum: it is added in place
        only to weights that are not sharded (reasoner.models.embedding_gradients).
        """
        sizes = model_sizes(self.estimate.model)
        return 0 if self.estimate.cfg.lora.rank else 4 * sizes.hidden * sizes.vocabulary

    def _whole_share(self) -> float:
        """The share of the model that is whole at once under `sharded`."""
        sizes, total = model_sizes(self.estimate.model), num_parameters(self.estimate.model)
        layer = (total - sizes.embeddings) / sizes.layers
        return min(1.0, (sizes.embeddings + _LAYERS * layer) / total)


_RESIDENT = ("weights", "optimiser", "reference", "critic", "reward_models", "teacher")
_OF_PASSES = ("whole_weights", "whole_gradients", "head_gradient", "low_precision_weights")
_DIVIDED = ("weights", "gradients", "optimiser", "reference", "critic", "teacher")


def first_that_fits(peaks: Mapping[str, int], available: float) -> str | None:
    """The fastest way to hold the weights whose peak fits into the available bytes; None where none does."""
    return next((sharding for sharding in STRATEGIES if peaks.get(sharding, available + 1) <= available), None)
