"""`reasoner doctor --gpu KIND`: the memory of a run on N GPUs of a kind, predicted from its settings and the model's
shape alone, by the formula of doctor.memory. No GPU is needed and no weights are loaded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

from transformers import PreTrainedModel

from reasoner.config.presets import HEADROOM
from reasoner.config.recipes import RECIPES
from reasoner.config.schema import Config
from reasoner.doctor.findings import Finding, Severity
from reasoner.doctor.memory import MemoryEstimate
from reasoner.doctor.preset_fit import LONGEST_PROMPT, MOST_PROMPT, meta_model
from reasoner.doctor.rank_memory import STRATEGIES, RankMemory, first_that_fits
from reasoner.models.loading import context_length, load_meta_model
from reasoner.rl.algorithms import Algorithm, resolve_algorithm
from reasoner.trainer.preflight import ResolvedNames

_GIB = 2**30


@dataclass(frozen=True, slots=True)
class GpuPlan:
    """The predictions for a run on `cfg.processes` GPUs of a kind."""

    kind: str
    gpu_bytes: int  # memory of one
    cfg: Config
    model: PreTrainedModel  # on the meta device
    algorithm: Algorithm

    @property
    def available(self) -> float:
        """Bytes of a GPU that a prediction may use."""
        return (1 - HEADROOM) * self.gpu_bytes

    def memory(self) -> RankMemory:
        """The memory of each rank."""
        prompts = ceil(self.cfg.data.prompts_per_step / self.cfg.processes)
        cfg = replace(self.cfg, data=replace(self.cfg.data, prompts_per_step=prompts))
        estimate = MemoryEstimate(self.model, self.algorithm, cfg, self.longest_prompt(), "cuda", self.gpu_bytes)
        return RankMemory(estimate, cfg.processes)

    def longest_prompt(self) -> int:
        """Tokens that a prompt is taken to have at most."""
        most = LONGEST_PROMPT.get(self.cfg.data.train, MOST_PROMPT)
        return min(most, context_length(self.model) - self.cfg.sampling.max_tokens)


def gpu_plan(cfg: Config, resolved: ResolvedNames, kind: str, gpu_bytes: int) -> GpuPlan:
    """The plan of a run. ValueError for a model that is neither on this machine nor the model of a preset."""
    recipe = next((recipe for recipe in RECIPES.values() if cfg.model in recipe.models), None)
    if resolved.model_folder is not None:
        model = load_meta_model(resolved.model_folder)
    elif recipe is not None:
        model = meta_model(recipe.shape)
    else:
        raise ValueError(f"{cfg.model} is not in the cache and no preset has its shape: download it first")
    if cfg.engine.name == "auto" and not cfg.engine.urls:  # what a machine with GPUs samples with
        cfg = replace(cfg, engine=replace(cfg.engine, name="vllm"))
    return GpuPlan(kind, gpu_bytes, cfg, model, resolve_algorithm(cfg.algo))


def plan_findings(plan: GpuPlan, measurements: dict[str, Any]) -> Iterator[Finding]:
    """The findings: memory of each way to hold the weights, and the way to take. Fills `measurements` with the
    predictions.
    """
    count = plan.cfg.processes
    yield Finding(
        Severity.OK,
        "prediction",
        f"{count} x {plan.kind} of {plan.gpu_bytes / _GIB:.0f} GiB, by a formula, not measured; completions of "
        f"{plan.cfg.sampling.max_tokens:,} tokens, prompts of {plan.longest_prompt():,}",
    )
    memory = plan.memory()
    peaks = {sharding: memory.peak(sharding) for sharding in (STRATEGIES if count > 1 else STRATEGIES[:1])}
    for sharding, peak in peaks.items():
        sizes = {name.replace("_", " "): size / _GIB for name, size in memory.parts(sharding).items()}
        parts = ", ".join(f"{name} {size:.1f}" for name, size in sizes.items() if size >= 0.05)
        fit = "fits" if peak <= plan.available else "does not fit"
        text = f"{sharding}: {peak / _GIB:,.1f} of {plan.available / _GIB:.1f} GiB on each GPU, {fit} ({parts})"
        yield Finding(Severity.OK, "memory", text)
    fitting = first_that_fits(peaks, plan.available)
    yield _sharding_finding(fitting)
    measurements |= {"predicted_peak": peaks, "predicted_sharding": fitting}


def _sharding_finding(sharding: str | None) -> Finding:
    if sharding is not None:
        why = "the fastest that fits" if sharding != STRATEGIES[0] else "every GPU holds the whole model"
        suggestion = "" if sharding == STRATEGIES[0] else f"--optim.sharding {sharding}"
        return Finding(Severity.OK, "sharding", f"{sharding}: {why}", suggestion)
    text = "no way to hold the weights fits: take more GPUs, lower optim.micro_batch_tokens or engine.gpu_memory, use "
    return Finding(Severity.ERROR, "sharding", f"{text}optim.recompute or lora.rank")
