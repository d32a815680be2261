"""The parts of bench/gpu.py that train: three steps, the same ones killed and resumed, and on several cards."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch
from gpu import SKIPPED
from gpu_models import make_model
from gpu_rows import Sizes, row
from runs import options

STEPS = 3
TRAIN = [sys.executable, "-m", "reasoner", "train"]
FAILS = """
import os
def fails(completions, **columns):
    is_due = os.environ["RANK"] != "0" and os.path.getsize({metrics!r}) > 0
    return [1 / (not is_due) for _ in completions]
"""


def run(sizes: Sizes, work: Path, *, preset: str) -> None:
    """Seconds and parity of three steps of a preset, and whether a run that is killed after the first one and resumed
    leaves the same bytes.
    """
    values = _values(sizes, work, preset)
    first, killed = (work / "runs" / f"{preset}-{name}" for name in ("first", "killed"))
    start = time.perf_counter()
    subprocess.run([*TRAIN, *options(values), "--run.name", first.name], check=True)
    row(f"{STEPS} steps, start included", time.perf_counter() - start, "s")
    _report(first)
    child = subprocess.Popen([*TRAIN, *options(values), "--run.name", killed.name])
    try:
        while child.poll() is None and not _lines(killed, "metrics.jsonl"):
            time.sleep(0.02)
    finally:
        child.kill()
        child.wait()
    if (done := len(_lines(killed, "metrics.jsonl"))) >= STEPS:
        raise RuntimeError("the run had ended before it could be killed")
    row("steps when killed", done)
    subprocess.run([*TRAIN, "--resume", str(killed)], check=True)
    _compare(first, killed)


def ranks(sizes: Sizes, work: Path, *, preset: str) -> None:
    """Three steps on all cards beside the same on one, with each way of holding the weights; and the end of a run of
    which every rank but the first fails after the first step. Skipped where there is a single card.
    """
    number = torch.cuda.device_count() or 2
    if number == 1:
        print("one card, and this takes several")
        raise SystemExit(SKIPPED)
    values = _values(sizes, work, preset) | {"run.save_interval": STEPS}
    alone = work / "runs" / f"{preset}-alone"
    subprocess.run([*TRAIN, *options(values), "--run.name", alone.name], check=True)
    values |= {"processes": number}
    for way in ("replicated", "gathered", "sharded"):
        run = work / "runs" / f"{preset}-{way}"
        subprocess.run([*TRAIN, *options(values | {"optim.sharding": way, "run.name": run.name})], check=True)
        (first, *_), (lone, *_) = _lines(run, "metrics.jsonl"), _lines(alone, "metrics.jsonl")
        row(f"{way}: parity of the first step", first["parity/logprob_diff_max"], "nats")
        for name in ("reward/mean", "grad_norm"):
            row(f"{way}: {name} of the first step, less that on one card", first[name] - lone[name])
        row(f"{way}: tokens a second, last step", float(_lines(run, "times.jsonl")[-1]["tokens_per_second"]))
    failed = work / "runs" / f"{preset}-failed"
    (work / "fails.py").write_text(FAILS.format(metrics=str(failed / "metrics.jsonl")))
    values |= {"reward.functions": f"{work}/fails.py:fails", "run.name": failed.name, "steps": 100}
    start = time.perf_counter()
    done = subprocess.run([*TRAIN, *options(values)], stderr=subprocess.PIPE, text=True)
    row("ranks fail after the first step: all have ended after", time.perf_counter() - start, "s")
    row("ranks fail: the last lines say why", "ZeroDivisionError" in "".join(done.stderr.splitlines()[-2:]))


def _values(sizes: Sizes, work: Path, preset: str) -> dict[str, object]:
    return {
        "model": make_model(preset.partition("@")[0], sizes, work), "preset": preset, "steps": STEPS,
        "run.dir": work / "runs", "run.save_interval": 1, "run.keep_last": STEPS, "data.train": "generated",
        "data.prompts_per_step": sizes.prompts_per_step,
        "sampling.max_tokens": min(sizes.response, 288 if preset == "base" else sizes.response),
        "validation.interval": 0, "eval.heldout_problems": 0,
    }  # fmt: skip


def _report(run: Path) -> None:
    """Parity and certificate at the start, and the median seconds of the parts of a step."""
    lines, times = _lines(run, "metrics.jsonl"), _lines(run, "times.jsonl")
    row("parity of the first step", lines[0]["parity/logprob_diff_max"], "nats")
    row("certificate: mean difference", json.loads((run / "sync.json").read_text())["changed"], "nats")
    row("reward, last step", float(lines[-1]["reward/mean"]))
    for name in ("time/generate", "time/train", "time/weight_sync", "time/step", "tokens_per_second"):
        values = sorted(line[name] for line in times)
        row(f"{name}, median", float(values[len(values) // 2]), "tokens/s" if name == "tokens_per_second" else "s")


def _compare(one: Path, other: Path) -> None:
    """Rows on whether two runs have left the same metrics, rollouts and checkpoints."""
    lines = [_lines(run, "metrics.jsonl") for run in (one, other)]
    row("metrics: the same", lines[0] == lines[1])
    for name, pattern in (("rollouts", "rollouts/*.parquet"), ("weights", f"checkpoints/*{STEPS}/*.safetensors")):
        row(f"{name}: the same", _digests(one, pattern) == _digests(other, pattern))
    if lines[0] != lines[1]:
        row("first step with other metrics", next(i for i, (a, b) in enumerate(zip(*lines, strict=True)) if a != b))


def _lines(run: Path, name: str) -> list[dict[str, Any]]:
    path = run / name
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _digests(run: Path, pattern: str) -> dict[str, str]:
    """SHA-256 of each file by its name. FileNotFoundError if there is none."""
    digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in run.glob(pattern)}
    if not digests:
        raise FileNotFoundError(f"{run} holds no {pattern}")
    return digests
