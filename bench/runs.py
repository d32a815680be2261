"""Many training runs of the embedded base, several at once, each with a share of the cores: what bench/entries.py
and bench/precision.py compare.
"""

from __future__ import annotations

import os
import shlex
import shutil
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from reasoner.runs.metrics import read_evals
from reasoner.runs.run_dir import read_settings

Settings = Mapping[str, object]  # and "program", the words that start the command line in place of REASONER
# What the base's preset had before four smaller updates a step, and what docs/RESULTS.md compares settings at.
ONE_UPDATE: Settings = {"algo.minibatches": 1, "optim.lr": 5e-4}
REASONER = f"{sys.executable} -m reasoner"


def train_all(out: Path, runs: Mapping[str, Settings], *, jobs: int, threads: int | None = None) -> None:
    """Each run that has not ended in the folder, with its settings; one that was stopped goes on. A log beside it. One
    that fails does not stop the others. `threads`: of each process; None: the cores divided by the jobs.

    ValueError where a run of the name has other settings.
    """
    out.mkdir(parents=True, exist_ok=True)
    threads = threads or max(1, (os.cpu_count() or 1) // jobs)
    values = {
        name: {"model": "base", "threads": threads, "run.dir": out, "run.name": name, "run.keep_last": 1, **settings}
        for name, settings in runs.items()
    }
    for name, own in values.items():
        _check_settings(out / name, own)
    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(partial(_train, out), values.values()))


def _check_settings(run: Path, values: Settings) -> None:
    """ValueError where a run is there and was started with others of these settings."""
    if not (run / "config.json").is_file():
        return
    stored = read_settings(run)["config"]
    for key in stored.keys() & values.keys():
        kind = type(stored[key]) if isinstance(stored[key], int | float) else str
        if not key.startswith("run.") and kind(values[key]) != kind(stored[key]):
            raise ValueError(f"{run} has {key} {stored[key]}, and {values[key]} is asked for; choose another --out")


def _train(out: Path, values: Settings) -> None:
    run = out / str(values["run.name"])
    program = shlex.split(str(values.get("program", REASONER)))
    if is_over(run):
        return
    if (run / "config.json").is_file():
        arguments = ["--resume", str(run)]
    else:
        shutil.rmtree(run, ignore_errors=True)
        pairs = ((f"--{key}", str(value)) for key, value in values.items() if key != "program")
        arguments = [text for pair in pairs for text in pair]
    environment = os.environ | {"OMP_NUM_THREADS": str(values["threads"])}
    with (out / f"{run.name}.log").open("a") as log:
        done = subprocess.run([*program, "train", *arguments], stdout=log, stderr=log, env=environment)
    print(f"{run.name}: {'done' if done.returncode == 0 else f'failed, see {log.name}'}", file=sys.stderr, flush=True)


def is_over(run: Path) -> bool:
    return (run / "report.json").is_file()


def validations(run: Path) -> dict[int, float]:
    """pass@1 on the validation problems in percent, by the steps done."""
    return {look["step"]: 100 * look["sampled"]["metrics"]["pass@1"]["value"] for look in read_evals(run)}


# 97.5 % points of Student's t by degrees of freedom.
_STUDENT = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26}


def over_seeds(differences: Sequence[float], digits: int = 1) -> str:
    """The mean of the seeds' differences with its 95 % interval by Student's t, which holds what two runs of the same
    settings differ by; of one seed the difference alone.
    """
    if not differences:
        return ""
    form, mean = f"{{:+.{digits}f}}".format, statistics.fmean(differences)
    if len(differences) - 1 not in _STUDENT:
        return form(mean)
    half = _STUDENT[len(differences) - 1] * statistics.stdev(differences) / len(differences) ** 0.5
    return f"{form(mean)} [{form(mean - half)}, {form(mean + half)}]"
