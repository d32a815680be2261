"""Disk space that a run needs."""

from __future__ import annotations

import shutil
from pathlib import Path

from reasoner.config.schema import Config
from reasoner.doctor.findings import Finding, Severity
from reasoner.runs.run_dir import nearest
from reasoner.trainer.checkpoint import room_needed
from reasoner.trainer.trainer import Trainer

_MIB = 2**20


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
