"""Compute which settings make each preset fit into each machine's memory, by the doctor's formula.

`python -m reasoner.doctor.preset_fit > reasoner/config/preset_machines.toml` writes the table (`make docs`).

A preset fits if its predicted peak, with vLLM and with the transformers engine, leaves presets.HEADROOM of the GPU
free. What changes no result is lowered first: micro-batches, then layers computed again, then LoRA in place of all
weights.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import torch
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

from reasoner.config.presets import LORA_LEARNING_RATE, MACHINES, Fit
from reasoner.config.recipes import RECIPES, Recipe, Values
from reasoner.config.resolve import resolve
from reasoner.config.schema import Config
from reasoner.doctor.memory import MemoryEstimate
from reasoner.models.loading import context_length

GIB = 2**30
_LONGEST_PROMPT = {"generated": 256, "one-step": 256}  # tokens with the template, by data.train
_MOST_PROMPT = 1024  # of any other problems
_LOW_PRECISION = {"optim.dtype": "bfloat16", "engine.dtype": "bfloat16"}
_MICRO_BATCHES = (16_384, 8192, 4096, 2048)  # tokens; smaller ones leave a GPU idle
_SAVINGS: tuple[Values, ...] = ({}, {"optim.recompute": True})  # one after another, each with all micro-batches
_LORA_RANK = 32
_SHARES = [share / 20 for share in range(2, 19)]  # of the GPU, for vLLM
_ROWS = 512  # completions that vLLM samples at once, at most
_LEAST_ROWS = 16  # completions of full length that its cache must hold at least


@dataclass(frozen=True, slots=True)
class _Candidate:
    """Settings of a machine, with their predictions by engine."""

    settings: Values
    vllm: MemoryEstimate
    transformers: MemoryEstimate

    @property
    def fits(self) -> bool:
        """Whether both engines leave the headroom free, and vLLM's fraction holds a cache that is worth having."""
        peak = max(self.vllm.peak(), self.transformers.peak())
        return peak <= self.vllm.available and self.vllm.fits_share(_num_rows(self.vllm.cfg, _LEAST_ROWS))

    def row(self, *, fits: bool) -> Fit:
        """The row of the table; peaks are rounded up to a tenth of a GiB."""
        peaks = (math.ceil(10 * one.peak() / GIB) / 10 for one in (self.vllm, self.transformers))
        return Fit(fits, self.settings, *peaks)


def compute_fits() -> dict[str, Fit]:
    """The row of every preset and machine by NAME@MACHINE; none on a CPU for a preset without values for one."""
    rows: dict[str, Fit] = {}
    for name, recipe in RECIPES.items():
        model = meta_model(recipe.shape)
        machines = {machine: size for machine, size in MACHINES.items() if size or recipe.cpu is not None}
        rows |= {f"{name}@{machine}": fit_recipe(recipe, model, size) for machine, size in machines.items()}
    return rows


def fit_recipe(recipe: Recipe, model: PreTrainedModel, total: int) -> Fit:
    """The row of a recipe for a GPU of `total` bytes, or with 0 for a CPU. Settings are computed for GPUs, and for
    recipes that are not the same on every machine; where nothing fits, the row has those of the smallest peak.
    """
    values = (recipe.gpu if total else recipe.cpu) or {}
    if not total or not recipe.has_variants:
        return _candidate(model, values, {}, total).row(fits=True)
    candidates = [_candidate(model, values, settings, total) for settings in _settings(values)]
    for candidate in candidates:
        if candidate.transformers.peak() <= candidate.transformers.available and (whole := _with_share(candidate)).fits:
            return whole.row(fits=True)
    return _with_share(min(candidates, key=lambda one: one.transformers.peak())).row(fits=False)


def most_prompt_tokens(cfg: Config, model: PreTrainedModel) -> int:
    """Tokens that a prompt is taken to have at most."""
    return min(_LONGEST_PROMPT.get(cfg.data.train, _MOST_PROMPT), context_length(model) - cfg.sampling.max_tokens)


def meta_model(shape: Values) -> PreTrainedModel:
    """A model of the shape on the meta device: it takes no memory."""
    with torch.device("meta"):
        config = AutoConfig.for_model(**cast(dict[str, Any], dict(shape)))
        model: PreTrainedModel = AutoModelForCausalLM.from_config(config)  # type: ignore[no-untyped-call]
    return model


def _settings(values: Values) -> Iterator[dict[str, object]]:
    """Settings of a GPU in the order of preference, for a recipe's values."""
    cfg = resolve([("recipe", values)]).config
    steps = [*_SAVINGS]
    if cfg.lora.rank == 0:
        lr = round(LORA_LEARNING_RATE * cfg.optim.lr, 12)
        adapter = {"lora.rank": _LORA_RANK, "lora.base_dtype": "bfloat16", "optim.lr": lr}
        steps += [{**saving, **adapter} for saving in _SAVINGS]
    for step in steps:
        for tokens in _MICRO_BATCHES:
            yield {**_LOW_PRECISION, "optim.micro_batch_tokens": tokens, **step}


def _candidate(model: PreTrainedModel, values: Values, settings: Values, total: int) -> _Candidate:
    """The settings beside a recipe's values, with their predictions."""

    def estimate(engine: str) -> MemoryEstimate:
        cfg = resolve([("recipe", values), ("machine", settings), ("engine", {"engine.name": engine})]).config
        prompt, device = most_prompt_tokens(cfg, model), "cuda" if total else "cpu"
        return MemoryEstimate(model, cfg, prompt, device, total)

    return _Candidate(settings, estimate("vllm"), estimate("transformers"))


def _with_share(candidate: _Candidate) -> _Candidate:
    """Give vLLM the smallest fraction that holds all completions it samples at once, and no more than is left; where
    too little is left the smallest that it can run with.
    """
    estimate = candidate.vllm
    wanted, least = (
        estimate.vllm_bytes(_num_rows(estimate.cfg, most)) / estimate.total for most in (_ROWS, _LEAST_ROWS)
    )
    enough = [share for share in _SHARES if share >= least] or _SHARES[-1:]
    most = next((share for share in enough if share >= wanted), enough[-1])
    plans = {share: estimate.changed("engine", gpu_memory=share) for share in enough if share <= most}
    fitting = (share for share in reversed(plans) if plans[share].peak() <= estimate.available)
    share = next(fitting, enough[0])
    settings = {**candidate.settings, "engine.gpu_memory": share}
    return replace(candidate, settings=settings, vllm=plans[share])


def _num_rows(cfg: Config, most: int) -> int:
    """Completions of a step, at most `most`."""
    return min(most, cfg.completions_per_step)


def toml(rows: Mapping[str, Fit]) -> str:
    """The text of preset_machines.toml."""
    lines = ["# Generated by `make docs` (reasoner.doctor.preset_fit): do not edit. GiB are predictions, not measured."]
    for label, row in rows.items():
        lines += ["", f'["{label}"]', f"fits = {json.dumps(row.fits)}"]
        lines += [f"vllm_gib = {row.vllm_gib}", f"transformers_gib = {row.transformers_gib}"]
        lines += [f'["{label}".settings]', *(f'"{key}" = {json.dumps(value)}' for key, value in row.settings.items())]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(toml(compute_fits()), end="")
