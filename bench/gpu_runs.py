"""The parts of bench/gpu.py that train the embedded base: metrics, equal bytes, resuming."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from gpu_rows import Sizes, SkipPart, row
from safetensors.torch import load_file

from reasoner.trainer.resolve_run import resolve_new_run
from reasoner.trainer.run_stage import run_stage


def _values(sizes: Sizes, work: Path, name: str, steps: int) -> dict[str, object]:
    """The settings of a run of the embedded base that saves a checkpoint after each quarter of the steps."""
    return {
        "run.dir": str(work / "runs"),
        "run.name": name,
        "run.save_interval": sizes.steps // 4,
        "run.keep_last": 10,
        "steps": steps,
        "data.prompts_per_step": sizes.prompts_per_step,
        "sampling.max_tokens": sizes.response,
        "optim.decay_share": 0.0,  # the first steps do not depend on the number of steps
        "validation.interval": 0,
        "eval.heldout_problems": 0,
    }


def _train(sizes: Sizes, work: Path, name: str, steps: int) -> Path:
    resolved, run_dir = resolve_new_run(_values(sizes, work, name, steps), origin="bench/gpu.py")
    run_stage(resolved, run_dir)
    return run_dir


def training(sizes: Sizes, work: Path) -> None:
    """The metrics of the last step, and the seconds of its parts."""
    start = time.perf_counter()
    run = _train(sizes, work, "first", sizes.steps)
    row(f"{sizes.steps} steps, start included", time.perf_counter() - start, "s")
    lines = _read_lines(run / "metrics.jsonl")
    row("parity of the first step", lines[0]["parity/logprob_diff_max"], "nats")
    for name in ("reward/mean", "correct", "grad_norm", "entropy", "sampling/logprob_diff_mean"):
        if name in lines[0]:
            row(f"{name}, first step", float(lines[0][name]))
        if name in lines[-1]:
            row(f"{name}, last step", float(lines[-1][name]))
    row("skipped updates", sum(line["skipped_updates"] for line in lines))
    times = _read_lines(run / "times.jsonl")
    for name in ("time/generate", "time/train", "time/weight_sync", "time/step", "tokens_per_second"):
        values = sorted(line[name] for line in times)
        row(f"{name}, median", float(values[len(values) // 2]), "tokens/s" if name == "tokens_per_second" else "s")


def determinism(sizes: Sizes, work: Path) -> None:
    """The first quarter of the steps of the part "training" once more: the same bytes, or how far apart."""
    steps = sizes.steps // 4
    _compare(_first(sizes, work), _train(sizes, work, "again", steps), steps)


def strict_determinism(sizes: Sizes, work: Path) -> None:
    """The same with deterministic algorithms as a demand: torch raises where a kernel has none, instead of warning."""
    from reasoner.runtime import setup_torch

    def setup(*, threads: int, seed: int) -> torch.device:
        device = setup_torch(threads=threads, seed=seed)
        torch.use_deterministic_algorithms(True)
        return device

    steps = max(1, sizes.steps // 4)
    with patch("reasoner.trainer.setup.setup_torch", setup):
        _compare(_train(sizes, work, "strict", steps), _train(sizes, work, "strict-again", steps), steps)


def resume(sizes: Sizes, work: Path) -> None:
    """Half of the run, killed after a checkpoint and resumed: the same bytes as without, or how far apart."""
    first = _first(sizes, work)
    steps, quarter = sizes.steps // 2, sizes.steps // 4
    values = _values(sizes, work, "killed", steps)
    run = work / "runs" / "killed"
    arguments = [text for key, value in values.items() for text in (f"--{key}", str(value))]
    command = [sys.executable, "-m", "reasoner", "train"]
    with (work / "killed.log").open("w") as log:
        child = subprocess.Popen([*command, *arguments], stdout=log, stderr=log)
        try:
            while child.poll() is None and _num_steps(run) <= quarter:
                time.sleep(0.02)
        finally:
            if child.poll() is None:
                os.kill(child.pid, signal.SIGKILL)
            child.wait()
        done = _num_steps(run)
        row("steps when killed", done)
        again = subprocess.run([*command, "--resume", str(run)], stdout=log, stderr=log, check=False)
    if again.returncode:
        raise RuntimeError(f"resuming ended with {again.returncode}: {(work / 'killed.log').read_text()[-200:]}")
    if done >= steps:
        raise RuntimeError("the run had ended before it could be killed")
    _compare(first, run, steps)


def _num_steps(run: Path) -> int:
    path = run / "metrics.jsonl"
    return len(path.read_text().splitlines()) if path.exists() else 0


def _first(sizes: Sizes, work: Path) -> Path:
    """The run of the part "training", which this part is compared with."""
    run = work / "runs" / "first"
    if _num_steps(run) < sizes.steps:
        raise SkipPart("the part training did not run to its end")
    return run


def _compare(one: Path, other: Path, steps: int) -> None:
    """Rows on whether the first steps of two runs have left the same bytes, and how far apart they are if not."""
    lines = [_read_lines(run / "metrics.jsonl")[:steps] for run in (one, other)]
    same = {
        "metrics": lines[0] == lines[1],
        "rollouts": _digests(one, steps) == _digests(other, steps),
    }
    weights = [load_file(run / "checkpoints" / f"step-{steps:06d}" / "model.safetensors") for run in (one, other)]
    difference = max(float((weights[0][name] - weights[1][name]).abs().max()) for name in weights[0])
    same["weights"] = difference == 0
    for name, is_same in same.items():
        row(f"{name} of {steps} steps: the same", is_same)
    if not all(same.values()):
        row("largest difference of weights", difference)
        row("largest difference of metrics", max(_distance(*pair) for pair in zip(*lines, strict=True)))
        row(
            "first step with other metrics",
            next((i for i, (a, b) in enumerate(zip(*lines, strict=True)) if a != b), -1),
        )


def _read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def _distance(one: dict[str, Any], other: dict[str, Any]) -> float:
    return max((abs(one[name] - other[name]) for name in one.keys() & other.keys()), default=0.0)


def _digests(run: Path, steps: int) -> list[str]:
    paths = (run / "rollouts" / f"step-{step:06d}.parquet" for step in range(steps))
    return [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths]
