"""Do two processes learn as one does? `python bench/two_processes.py --out DIR`.

Trains the embedded base for each seed with one process and with two, one run after another, and prints the held-out
results in Markdown: by seed, and whether the difference of the means is within the spread of the seeds. Completions of
step 0 must be the same. Stop it and call it again: finished runs are kept.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
from collections.abc import Sequence
from pathlib import Path

from runs import ONE_UPDATE, train_all

from reasoner.runs import rollouts as store
from reasoner.runs.json_files import read_object
from reasoner.runs.metrics import read_metrics

SIZES = (1, 2)  # numbers of processes


def name_of(size: int, seed: int) -> str:
    return f"processes-{size}-seed-{seed}"


def heldout(run: Path) -> float:
    """pass@1 on the held-out problems after training, in percent."""
    report = read_object(run / "report.json")
    return 100 * float(report["after"]["sampled"]["metrics"]["pass@1"]["value"])


def difference(one: Sequence[float], two: Sequence[float]) -> tuple[float, float]:
    """(difference of the means, its standard error), from the spread of the seeds of both."""
    error = math.sqrt(statistics.variance(one) / len(one) + statistics.variance(two) / len(two))
    return statistics.fmean(two) - statistics.fmean(one), error


def same_first_rollouts(run: Path, other: Path) -> str:
    """How many completions of step 0 are the same, as text."""
    tokens = [[row["token_ids"] for row in store.read(folder, 0)] for folder in (run, other)]
    return f"{sum(a == b for a, b in zip(*tokens, strict=True))} of {len(tokens[0])}"


def report(out: Path, seeds: Sequence[int]) -> str:
    """The table of all runs, and the comparison."""
    lines = ["| seed | held-out pass@1, one process | two | minutes, one | two | same completions in step 0 |"]
    lines.append("|---|---:|---:|---:|---:|---|")
    results: dict[int, list[float]] = {size: [] for size in SIZES}
    for seed in seeds:
        folders = [out / name_of(size, seed) for size in SIZES]
        for size, folder in zip(SIZES, folders, strict=True):
            results[size].append(heldout(folder))
        minutes = [f"{read_metrics(folder)[-1]['time/run'] / 60:.1f}" for folder in folders]
        same = same_first_rollouts(*folders)
        scores = [f"{results[size][-1]:.1f} %" for size in SIZES]
        lines.append(f"| {seed} | " + " | ".join([*scores, *minutes, same]) + " |")
    text = "\n".join(lines)
    if len(seeds) > 1:
        change, error = difference(*(results[size] for size in SIZES))
        verdict = "within" if abs(change) <= 2 * error else "outside"
        text += (
            f"\n\ntwo processes minus one: {change:+.2f} points, standard error {error:.2f} over the seeds: {verdict} "
        )
        text += "two standard errors"
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/two-processes"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, help="of each run [the preset's]")
    parser.add_argument("--heldout", type=int, help="held-out problems after each run [the preset's]")
    args = parser.parse_args()
    chosen = {"steps": args.steps, "eval.heldout_problems": args.heldout}
    chosen = {key: value for key, value in chosen.items() if value is not None}
    for seed in args.seeds:
        for size in SIZES:
            run = {name_of(size, seed): {"seed": seed, "processes": size, **ONE_UPDATE, **chosen}}
            train_all(args.out, run, jobs=1, threads=max(1, (os.cpu_count() or 1) // size))
    print(report(args.out, args.seeds))


if __name__ == "__main__":
    main()
