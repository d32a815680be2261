"""Which way of holding the weights fits the machine: optim.sharding auto."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch

from reasoner.config.schema import Config
from reasoner.console import log
from reasoner.distributed.world import World
from reasoner.models.loading import load_meta_model
from reasoner.models.lora import num_adapter_parameters
from reasoner.rl.algorithms import Algorithm

_SHARE = 0.5  # of a GPU's memory for weights, gradients and moments; the rest is for activations and the engine


def resolve_sharding(cfg: Config, algorithm: Algorithm, base: Path, device: torch.device, world: World) -> Config:
    """The settings with optim.sharding `auto` replaced by the first way that fits the smallest GPU of the ranks; by
    `replicated` on a CPU, in a single process, and where nothing else can be. `base` is the folder of the initial
    model. A collective operation.
    """
    if cfg.optim.sharding != "auto":
        return cfg
    sharding = "replicated"
    is_whole = algorithm.trust == "constrained"  # see reasoner.config.check.RULES
    if device.type == "cuda" and cfg.processes > 1 and not is_whole:
        memory = int(-world.largest(-torch.cuda.get_device_properties(device).total_memory, "the GPUs' memory"))
        sharding = first_that_fits(*_bytes(cfg, algorithm, base), processes=cfg.processes, memory=memory)
    log(f"optim.sharding auto: {sharding}")
    return replace(cfg, optim=replace(cfg.optim, sharding=sharding))


def first_that_fits(held: int, during_passes: int, *, processes: int, memory: int) -> str:
    """Bytes of all weights, gradients and moments, and those of the weights and gradients of one model's passes -> the
    way of holding them that needs the fewest collective operations of those that fit the GPU's memory.
    """
    room = _SHARE * memory
    if held <= room:
        return "replicated"
    return "gathered" if held / processes + during_passes <= room else "sharded"


def _bytes(cfg: Config, algorithm: Algorithm, base: Path) -> tuple[int, int]:
    """(held, during_passes) of first_that_fits(): a trained parameter takes 4 bytes for itself, 4 for its gradient and
    8 for AdamW's moments; in a pass in bfloat16 the weights take 2.
    """
    model = load_meta_model(base)
    parameters, adapter = sum(own.numel() for own in model.parameters()), num_adapter_parameters(model, cfg.lora)
    trained = adapter or parameters
    weights = parameters * (2 if adapter and cfg.lora.base_dtype == "bfloat16" else 4) + 4 * adapter
    has_reference = cfg.algo.beta > 0 and not cfg.lora.rank
    reference = weights // (2 if cfg.optim.dtype == "bfloat16" else 1) if has_reference else 0
    models = 2 if algorithm.critic and algorithm.critic_backbone == "separate" else 1
    in_passes = 2 * parameters if cfg.optim.dtype == "bfloat16" else weights
    return models * (weights + 12 * trained) + reference, in_passes + 4 * trained
