"""`reasoner doctor --gpu KIND`: the memory of a run on N GPUs of a kind, predicted from its settings and the model's
shape alone. No GPU is needed and no weights are loaded.

The parts of a single process are those of doctor.memory. What sharding (optim.sharding) changes follows torch's FSDP2:
weights, gradients and moments are divided by the number of ranks, also while they are loaded; `gathered` holds all
weights, in the precision of the passes, and all gradients, in float32, for the passes of a step, `sharded` those of two
layers (the one at work and the next, whose gather has begun) and of the embeddings.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path

from transformers import PreTrainedModel

from reasoner.config.presets import bytes_of_gpu
from reasoner.config.recipes import RECIPES
from reasoner.config.schema import Config
from reasoner.doctor.findings import Finding, Severity
from reasoner.doctor.memory import MemoryEstimate, model_sizes, passes_peak
from reasoner.doctor.preset_fit import meta_model, most_prompt_tokens
from reasoner.models.loading import load_meta_model

_GIB = 2**30
STRATEGIES = ("replicated", "gathered", "sharded")  # values of optim.sharding, from the fastest to the smallest
_BUCKET = 4 * 2**24  # bytes of gradients that are copied for a sum, or one tensor: distributed.gradients
_LAYERS = 2  # whole at once under `sharded`
_RESIDENT = ("weights", "optimiser", "reference", "critic", "reward_models", "teacher")
_OF_PASSES = ("whole_weights", "whole_gradients", "head_gradient")
_DIVIDED = ("weights", "gradients", "optimiser", "reference", "critic", "teacher")


@dataclass(frozen=True, slots=True)
class RankMemory:
    """The memory that a run needs on each of `ranks` GPUs."""

    estimate: MemoryEstimate  # of a single process with the micro-batches of one rank
    ranks: int

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
            # Of a trained output layer autograd holds it beside the sum: it is added in place only to weights that are
            # not sharded (reasoner.models.embedding_gradients).
            "head_gradient": 0 if self.estimate.cfg.lora.rank else 4 * model_sizes(self.estimate.model).head,
        }
        return part | divided | whole

    def peak(self, sharding: str) -> int:
        """Most bytes at once: in the passes of the update, in those of the reference, or while sampling or syncing."""
        part = self.parts(sharding)
        resident = sum(part[name] for name in _RESIDENT)
        passes = passes_peak(part) + sum(part.get(name, 0) for name in _OF_PASSES)
        training = part["gradients"] + max(passes, part.get("gradient_sum", 0), part.get("whole_reference", 0))
        return resident + self.estimate.beside_engine(training, part)

    def _in_passes(self, held: int) -> int:
        """Bytes of a whole model of `held` bytes in the precision of the passes."""
        is_low = self.estimate.cfg.optim.dtype == "bfloat16"
        return min(held, 2 * self.estimate.model.num_parameters()) if is_low else held

    def _largest_tensor(self) -> int:
        """Bytes of the largest tensor in float32."""
        return 4 * max(parameter.numel() for parameter in self.estimate.model.parameters())

    def _whole_share(self) -> float:
        """The share of the model that is whole at once under `sharded`."""
        sizes, total = model_sizes(self.estimate.model), self.estimate.model.num_parameters()
        layer = (total - sizes.embeddings) / sizes.layers
        return min(1.0, (sizes.embeddings + _LAYERS * layer) / total)

    def peaks(self) -> dict[str, int]:
        """peak() of each way to hold the weights; a single GPU has one."""
        return {sharding: self.peak(sharding) for sharding in (STRATEGIES if self.ranks > 1 else STRATEGIES[:1])}

    def first_that_fits(self) -> str | None:
        """The fastest way to hold the weights whose peak fits into the available bytes; None where none does."""
        return next((way for way, peak in self.peaks().items() if peak <= self.estimate.available), None)


def rank_memory(model: PreTrainedModel, cfg: Config, gpu_bytes: int) -> RankMemory:
    """The memory of each of `cfg.processes` GPUs of this size."""
    share = replace(cfg, data=replace(cfg.data, prompts_per_step=ceil(cfg.data.prompts_per_step / cfg.processes)))
    return RankMemory(MemoryEstimate(model, share, most_prompt_tokens(cfg, model), "cuda", gpu_bytes), cfg.processes)


def gpu_findings(cfg: Config, model_folder: Path | None, kind: str) -> Iterator[Finding]:
    """The findings: memory of each way to hold the weights, and the way to take. ValueError for a model that is neither
    on this machine (`model_folder` None) nor the model of a preset.
    """
    recipe = next((recipe for recipe in RECIPES.values() if cfg.model in recipe.models), None)
    if model_folder is not None:
        model = load_meta_model(model_folder)
    elif recipe is not None:
        model = meta_model(recipe.shape)
    else:
        raise ValueError(f"{cfg.model} is not in the cache and no preset has its shape: download it first")
    if cfg.engine.name == "auto" and not cfg.engine.urls:  # what a machine with GPUs samples with
        cfg = replace(cfg, engine=replace(cfg.engine, name="vllm"))
    memory = rank_memory(model, cfg, bytes_of_gpu(kind))
    yield Finding(
        Severity.OK,
        "prediction",
        f"{cfg.processes} x {kind} of {memory.estimate.total / _GIB:.0f} GiB, by a formula, not measured; completions "
        f"of {cfg.sampling.max_tokens:,} tokens, prompts of {memory.estimate.longest_prompt:,}",
    )
    available, peaks = memory.estimate.available, memory.peaks()
    for sharding, peak in peaks.items():
        sizes = {name.replace("_", " "): size / _GIB for name, size in memory.parts(sharding).items()}
        parts = ", ".join(f"{name} {size:.1f}" for name, size in sizes.items() if size >= 0.05)
        fit = "fits" if peak <= available else "does not fit"
        text = f"{sharding}: {peak / _GIB:,.1f} of {available / _GIB:.1f} GiB on each GPU, {fit} ({parts})"
        yield Finding(Severity.OK, "memory", text)
    fitting = memory.first_that_fits()
    yield replace(_sharding_finding(fitting), measurements={"predicted_peak": peaks, "predicted_sharding": fitting})


def _sharding_finding(sharding: str | None) -> Finding:
    if sharding is not None:
        why = "the fastest that fits" if sharding != STRATEGIES[0] else "every GPU holds the whole model"
        suggestion = "" if sharding == STRATEGIES[0] else f"--optim.sharding {sharding}"
        return Finding(Severity.OK, "sharding", f"{sharding}: {why}", suggestion)
    text = "no way to hold the weights fits: take more GPUs, lower optim.micro_batch_tokens or engine.gpu_memory, use "
    return Finding(Severity.ERROR, "sharding", f"{text}optim.recompute or lora.rank")
