"""Disk space that a run needs, and the speed of the disk."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path

from reasoner.config.schema import Config
from reasoner.doctor.findings import Finding, Severity
from reasoner.trainer.checkpoint import nearest, room_needed
from reasoner.trainer.trainer import Trainer

_MIB = 2**20
_TEST_BYTES = 2**26  # written to measure the speed


def disk_finding(
    run_dir: Path, trainer: Trainer, cfg: Config, *, tokens: float, bytes_per_token: float
) -> tuple[Finding, dict[str, float]]:
    """(the finding on disk space, its measurements in bytes). `tokens`: sampled by all steps of the run. The space for
    checkpoints is computed as a run computes it when it starts.
    """
    free = shutil.disk_usage(nearest(run_dir)).free
    rollouts = bytes_per_token * tokens
    checkpoint, checkpoints = room_needed(trainer, keep=cfg.run.keep_last)
    required = checkpoints + rollouts
    measurements = {"checkpoint": checkpoint, "rollouts": rollouts, "required": required, "free": free}
    measurements["bytes_per_token"] = bytes_per_token
    text = (
        f"{required / _MIB:,.0f} MiB in total: {rollouts / _MIB:,.1f} of rollouts "
        f"({bytes_per_token:.0f} bytes a token), "
        f"{checkpoint / _MIB:,.0f} each checkpoint, of which {cfg.run.keep_last} are kept; "
        f"{free / _MIB:,.0f} free in {nearest(run_dir)}"
    )
    if required <= free:
        return Finding(Severity.OK, "disk", text), measurements
    fewer = cfg.run.keep_last > 1 and required - (cfg.run.keep_last - 1) * checkpoint <= free
    return Finding(Severity.ERROR, "disk", text, "--run.keep_last 1" if fewer else ""), measurements


def write_seconds(folder: Path, size: int) -> float:
    """Seconds that the disk takes to write `size` bytes. OSError where the folder cannot be written."""
    part = min(size, _TEST_BYTES)
    start = time.monotonic()
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(os.urandom(2**16) * (part // 2**16 + 1))
        file.flush()
        os.fsync(file.fileno())
    return (time.monotonic() - start) * size / part
