"""How the experiments run: their arguments, many training runs at once, each with a share of the cores, commands of
reasoner, and what draws.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from reasoner.runs.metrics import read_evals
from reasoner.runs.run_dir import read_settings

Settings = Mapping[str, object]  # and "program", the words that start the command line in place of REASONER
# What the base's preset had before four smaller updates a step, and what docs/RESULTS.md compares settings at.
ONE_UPDATE: Settings = {"algo.minibatches": 1, "optim.lr": 5e-4}
REASONER = f"{sys.executable} -m reasoner"


def arguments(
    description: str | None, *, out: str | None = None, seeds: int = 3, jobs: int = 2
) -> argparse.ArgumentParser:
    """The arguments of an experiment. `seeds`: how many by default, from 0."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=description, formatter_class=formatter)
    default = None if out is None else Path(out)
    parser.add_argument("--out", type=Path, default=default, required=out is None, help=f"folder of all runs [{out}]")
    numbers = list(range(seeds))
    parser.add_argument("--seeds", type=int, nargs="+", default=numbers, help=f"[{' '.join(map(str, numbers))}]")
    parser.add_argument("--jobs", type=int, default=jobs, help=f"runs at once [{jobs}]")
    parser.add_argument("--threads", type=int, help="threads of each run [the cores divided by the jobs]")
    return parser


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
        arguments = options({key: value for key, value in values.items() if key != "program"})
    environment = os.environ | {"OMP_NUM_THREADS": str(values["threads"])}
    with (out / f"{run.name}.log").open("a") as log:
        done = subprocess.run([*program, "train", *arguments], stdout=log, stderr=log, env=environment)
    print(f"{run.name}: {'done' if done.returncode == 0 else f'failed, see {log.name}'}", file=sys.stderr, flush=True)


def options(values: Settings) -> list[str]:
    """The words of a command line."""
    return [text for key, value in values.items() for text in (f"--{key}", str(value))]


def is_over(run: Path) -> bool:
    return (run / "report.json").is_file()


def validations(run: Path) -> dict[int, float]:
    """pass@1 on the validation problems in percent, by the steps done."""
    return {look["step"]: 100 * look["sampled"]["metrics"]["pass@1"]["value"] for look in read_evals(run)}


def plotting() -> Any:
    """matplotlib's pyplot, for files alone."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def run_reasoner(*words: object, log: Path | None = None, threads: int | None = None) -> None:
    """Run a command of reasoner in a process; what it prints is added to the log, or goes to standard error.
    CalledProcessError where it fails.
    """
    run_python("-m", "reasoner", *words, log=log, threads=threads)


def run_python(*words: object, log: Path | None = None, threads: int | None = None) -> None:
    """The same for the arguments of Python."""
    env = os.environ | ({"OMP_NUM_THREADS": str(threads)} if threads else {})
    command = [sys.executable, *map(str, words)]
    with log.open("a") if log else nullcontext(sys.stderr) as output:
        subprocess.run(command, stdout=output, stderr=output, check=True, env=env)


def answer_of(
    script: str, *words: object, threads: int | None = None, environment: Mapping[str, str] | None = None
) -> Any:
    """Run a script in a process of its own: the last line that it prints, as JSON. RuntimeError where it fails."""
    root = os.pathsep.join(filter(None, [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")]))
    env = os.environ | {"PYTHONPATH": root} | ({"OMP_NUM_THREADS": str(threads)} if threads else {})
    command = [sys.executable, script, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, env={**env, **(environment or {})})
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def keep_settings(file: Path, settings: Mapping[str, object]) -> None:
    """Record the settings of an experiment; ValueError where it was begun with others."""
    if file.is_file() and (before := json.loads(file.read_text())) != settings:
        changed = ", ".join(
            f"{key}: {before.get(key)}, now {settings[key]}" for key in settings if before.get(key) != settings[key]
        )
        raise ValueError(f"{file.parent} was begun with other settings ({changed}); choose another --out")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(settings, indent=1) + "\n")
