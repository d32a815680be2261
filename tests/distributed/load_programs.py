"""What the tests of loading in shards run on the ranks of a world (tests.fixtures.ranks)."""

from __future__ import annotations

import ctypes
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from reasoner.config.learning import LoraConfig
from reasoner.distributed.world import World
from reasoner.models.lora import load_weights, policy_state
from reasoner.models.sharding import whole
from reasoner.trainer.components import build_trainer
from reasoner.trainer.parity import logprobs_of
from reasoner.trainer.train import train_step
from reasoner.trainer.trainer import Trainer
from tests.distributed.programs import record_gradients
from tests.fixtures.tiny import tiny_tokenizer
from tests.fixtures.toys import config, random_groups

CPU = torch.device("cpu")
_M_MMAP_THRESHOLD = -3  # of malloc.h


def loaded_trainer(
    world: World, folder: Path, way: str, *, lora: int = 0, algorithm: str = "grpo", **optim: object
) -> Trainer:
    """The trainer that a run builds; with LoRA on a base in bfloat16."""
    cfg = config(name=algorithm, beta=0.01)
    cfg = replace(cfg, lora=LoraConfig(rank=lora, base_dtype="bfloat16" if lora else "float32"))
    cfg = replace(cfg, engine=replace(cfg.engine, name="transformers"), optim=replace(cfg.optim, sharding=way, **optim))
    return build_trainer(cfg, tiny_tokenizer(), start_from=folder, base=folder, device=CPU, world=world)


def first_steps(
    world: World, way: str, cases: Sequence[tuple[Path, Mapping[str, object]]]
) -> list[tuple[dict[str, np.ndarray], dict[str, float], np.ndarray]]:
    """For each (model folder, options): (tensors of policy and reference as they were loaded and as the engine gets
    them, metrics of a step, its gradient).
    """
    results = []
    for folder, options in cases:
        trainer = loaded_trainer(world, folder, way, **options)
        loaded = {
            f"{kind}.{name}": whole(tensor.detach()).float().numpy().copy()
            for kind, model in (("policy", trainer.model), ("reference", trainer.reference))
            for name, tensor in [*model.named_parameters(), *model.named_buffers(remove_duplicate=False)]
        }
        loaded |= {f"engine.{name}": own.float().numpy().copy() for name, own in policy_state(trainer.model)}
        gradients: list[np.ndarray] = []
        record_gradients(trainer.optimizer, gradients)
        metrics = train_step(trainer, trainer.compute_advantages(trainer.prepare_batch(random_groups(3))))
        results.append((loaded, metrics, gradients[0]))
    return results


def steps_and_traffic(world: World, way: str, folder: Path) -> tuple[np.ndarray, dict[str, set[torch.dtype]], float]:
    """Of a step in bfloat16: (its gradient, the precisions of the tensors that FSDP2 gathers and sums, the gap between
    log-probabilities of the step's passes and those of a parity check).
    """
    precisions: dict[str, set[torch.dtype]] = {"all_gather_single": set(), "reduce_scatter_single": set()}

    def recorded(name: str, *positional: Any, **named: Any) -> Any:
        tensors = [value for value in (*positional, *named.values()) if isinstance(value, Tensor)]
        precisions[name] |= {tensor.dtype for tensor in tensors}
        return originals[name](*positional, **named)

    originals = {name: getattr(dist, name) for name in precisions}
    trainer = loaded_trainer(world, folder, way, dtype="bfloat16", recompute=True)
    batch = trainer.compute_advantages(trainer.prepare_batch(random_groups(3)))
    _, parity = logprobs_of(random_groups(3), trainer.model, 1.0)
    gradients: list[np.ndarray] = []
    record_gradients(trainer.optimizer, gradients)
    with ExitStack() as stack:
        for name in precisions:
            stack.enter_context(patch.object(dist, name, partial(recorded, name)))
        assert batch.ref_logprobs is not None
        gap = float((trainer.passes.all_logprobs(batch)[batch.mask] - parity).abs().max())
        train_step(trainer, batch)
    return gradients[0], precisions, gap


def peaks(world: World, small: Path, large: Path, way: str) -> tuple[float, float]:
    """Largest private memory of this rank above that of before, in bytes: (while a trainer of the large model is built,
    while its weights are loaded again). What the small model's takes first are imports.
    """
    ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, 2**19)  # blocks that are freed go back to the system
    cfg = config()
    cfg = replace(cfg, engine=replace(cfg.engine, name="transformers"), optim=replace(cfg.optim, sharding=way))
    trainers: list[Trainer] = []

    def build(folder: Path) -> None:
        folders = {"start_from": folder, "base": folder}
        trainers.append(build_trainer(cfg, tiny_tokenizer(), **folders, device=CPU, world=world))

    build(small)
    return _peak(lambda: build(large)), _peak(lambda: load_weights(trainers[1].model, large))


def _peak(call: Callable[[], None]) -> float:
    before, largest, is_done = _private_bytes(), 0.0, threading.Event()

    def watch() -> None:
        nonlocal largest
        while not is_done.is_set():
            largest = max(largest, _private_bytes() - before)
            time.sleep(0.001)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        call()
    finally:  # else an error would wait for the watcher
        is_done.set()
    watcher.join()
    return largest


def _private_bytes() -> float:
    """The memory of this process alone: pages of the model's file are shared by all ranks."""
    found = re.search(r"RssAnon:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return 1024 * float(found[1])
