"""Many training runs of the embedded base, several at once, each with a share of the cores: what bench/entries.py
and bench/precision.py compare.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from reasoner.runs.metrics import read_evals

Settings = Mapping[str, object]


def train_all(out: Path, runs: Mapping[str, Settings], *, jobs: int, threads: int | None = None) -> None:
    """Each run that has not ended in the folder, from its beginning, with its settings; a log beside it. One that fails
    does not stop the others. `threads`: of each process; None: the cores divided by the jobs.
    """
    out.mkdir(parents=True, exist_ok=True)
    threads = threads or max(1, (os.cpu_count() or 1) // jobs)
    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(partial(_train, out, threads), runs.keys(), runs.values()))


def _train(out: Path, threads: int, name: str, settings: Settings) -> None:
    if is_over(out / name):
        return
    shutil.rmtree(out / name, ignore_errors=True)
    values = {"model": "base", "threads": threads, "run.dir": out, "run.name": name, "run.keep_last": 1, **settings}
    flags = [text for key, value in values.items() for text in (f"--{key}", str(value))]
    command = [sys.executable, "-m", "reasoner", "train", *flags]
    with (out / f"{name}.log").open("w") as log:
        done = subprocess.run(command, stdout=log, stderr=log, env=os.environ | {"OMP_NUM_THREADS": str(threads)})
    print(f"{name}: {'done' if done.returncode == 0 else f'failed, see {log.name}'}", file=sys.stderr, flush=True)


def is_over(run: Path) -> bool:
    return (run / "report.json").is_file()


def validations(run: Path) -> dict[int, float]:
    """pass@1 on the validation problems in percent, by the steps done."""
    return {look["step"]: 100 * look["sampled"]["metrics"]["pass@1"]["value"] for look in read_evals(run)}
