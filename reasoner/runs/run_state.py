"""The state of a run, told from its folder: what `reasoner runs`, the dashboard and `Run.state` show."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reasoner.runs.json_files import is_file, read_object

_START_SECONDS = 120.0  # seconds without a change after which an unlocked run without steps counts as stopped


def run_state(run_dir: Path, cfg: Mapping[str, Any], last: Mapping[str, float]) -> str:
    """The state of a run with these settings, whose last line of metrics.jsonl is `last` (empty without one):

    live, imported, finished, trained (all steps done, and the final evaluation, which it should have, is missing),
    starting, or stopped (killed or failed).
    """
    if "imported" in cfg:
        return "imported"
    if is_live(run_dir):
        return "live"
    budget = cfg.get("max_train_tokens", 0)  # 0: none
    if last and (last["step"] + 1 >= cfg.get("steps", 1) or 0 < budget <= last.get("num_tokens", 0)):
        return "finished" if (run_dir / "report.json").is_file() or not _has_evaluation(run_dir, cfg) else "trained"
    newest = max(map(changed_at, run_dir.iterdir())) / 1e9
    return "starting" if not last and time.time() - newest < _START_SECONDS else "stopped"


def _has_evaluation(run_dir: Path, cfg: Mapping[str, Any]) -> bool:
    """Whether the run ends with an evaluation on held-out problems, or of a reward model on held-out preferences."""
    if cfg.get("rm.data"):
        return bool(read_object(run_dir / "data.json").get("heldout_prompts"))
    return bool(cfg.get("eval.heldout_problems"))


def is_live(run_dir: Path) -> bool:
    """Whether a process holds the run's lock (reasoner.runs.run_start). ValueError if it is not a file."""
    path = run_dir / "lock"
    if not is_file(path):
        return False
    try:
        with path.open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            fcntl.flock(file, fcntl.LOCK_UN)
    except BlockingIOError:
        return True
    except OSError:  # it is gone, or on a file system without locks
        return False
    return False


def changed_at(path: Path) -> int:
    """The modification time of the file or the link itself, in nanoseconds; 0 when there is none."""
    try:
        return path.lstat().st_mtime_ns
    except FileNotFoundError:
        return 0
