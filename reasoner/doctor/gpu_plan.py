"""`reasoner doctor --gpu KIND`: the memory of a run on N GPUs of a kind, predicted from its settings and the model's
shape alone, by the formula of doctor.memory. No GPU is needed and no weights are loaded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel

from reasoner.config.recipes import RECIPES
from reasoner.config.schema import Config
from reasoner.doctor.findings import Finding, Severity
from reasoner.doctor.memory import MemoryEstimate
from reasoner.doctor.preset_fit import meta_model, most_prompt_tokens
from reasoner.doctor.rank_memory import STRATEGIES, RankMemory, first_that_fits
from reasoner.models.loading import load_meta_model
from reasoner.rl.algorithms import resolve_algorithm

_GIB = 2**30


def rank_memory(model: PreTrainedModel, cfg: Config, gpu_bytes: int) -> RankMemory:
    """The memory of each of `cfg.processes` GPUs of this size."""
    share = replace(cfg, data=replace(cfg.data, prompts_per_step=ceil(cfg.data.prompts_per_step / cfg.processes)))
    prompt = most_prompt_tokens(cfg, model)
    return RankMemory(
        MemoryEstimate(model, resolve_algorithm(cfg.algo), share, prompt, "cuda", gpu_bytes), cfg.processes
    )


def gpu_findings(
    cfg: Config, folder: Path | None, kind: str, gpu_bytes: int, measurements: dict[str, Any]
) -> Iterator[Finding]:
    """The findings: memory of each way to hold the weights, and the way to take. Fills `measurements` with the
    predictions. ValueError for a model that is neither on this machine nor the model of a preset.
    """
    recipe = next((recipe for recipe in RECIPES.values() if cfg.model in recipe.models), None)
    if folder is not None:
        model = load_meta_model(folder)
    elif recipe is not None:
        model = meta_model(recipe.shape)
    else:
        raise ValueError(f"{cfg.model} is not in the cache and no preset has its shape: download it first")
    if cfg.engine.name == "auto" and not cfg.engine.urls:  # what a machine with GPUs samples with
        cfg = replace(cfg, engine=replace(cfg.engine, name="vllm"))
    memory = rank_memory(model, cfg, gpu_bytes)
    count, available = cfg.processes, memory.available
    yield Finding(
        Severity.OK,
        "prediction",
        f"{count} x {kind} of {gpu_bytes / _GIB:.0f} GiB, by a formula, not measured; completions of "
        f"{cfg.sampling.max_tokens:,} tokens, prompts of {memory.estimate.longest_prompt:,}",
    )
    peaks = {sharding: memory.peak(sharding) for sharding in (STRATEGIES if count > 1 else STRATEGIES[:1])}
    for sharding, peak in peaks.items():
        sizes = {name.replace("_", " "): size / _GIB for name, size in memory.parts(sharding).items()}
        parts = ", ".join(f"{name} {size:.1f}" for name, size in sizes.items() if size >= 0.05)
        fit = "fits" if peak <= available else "does not fit"
        text = f"{sharding}: {peak / _GIB:,.1f} of {available / _GIB:.1f} GiB on each GPU, {fit} ({parts})"
        yield Finding(Severity.OK, "memory", text)
    fitting = first_that_fits(peaks, available)
    yield _sharding_finding(fitting)
    measurements |= {"predicted_peak": peaks, "predicted_sharding": fitting}


def _sharding_finding(sharding: str | None) -> Finding:
    if sharding is not None:
        why = "the fastest that fits" if sharding != STRATEGIES[0] else "every GPU holds the whole model"
        suggestion = "" if sharding == STRATEGIES[0] else f"--optim.sharding {sharding}"
        return Finding(Severity.OK, "sharding", f"{sharding}: {why}", suggestion)
    text = "no way to hold the weights fits: take more GPUs, lower optim.micro_batch_tokens or engine.gpu_memory, use "
    return Finding(Severity.ERROR, "sharding", f"{text}optim.recompute or lora.rank")
