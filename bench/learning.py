"""Learning itself beside TRL: `python bench/learning.py --out DIR --seeds 0 1 2` (needs the extra named peers).

The same base, problems, prompts, rewards and completions a step; learning rates of both in LRS; one run at a time, the
two in turns. Every saved model is then evaluated on the same held-out problems. Writes learning.md (minutes and sampled
tokens to 70 % pass@1, and the last figures) and learning.png (pass@1 against minutes and against sampled tokens). What
is there already is kept.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from runs import train_all

from reasoner.runs.metrics import read_metrics

SIDES = ("ours", "trl")
LRS = (2.5e-4, 5e-4, 1e-3)
STEPS, SAVE = 36, 6
TARGET = 70.0  # pass@1 in percent
Point = Mapping[str, float]  # step, minutes, tokens, pass@1


def train_ours(out: Path, name: str, lr: float, seed: int, threads: int) -> None:
    """Train as the preset does, without evaluations in between; a checkpoint every SAVE steps."""
    settings = {
        "seed": seed, "optim.lr": lr, "steps": STEPS, "validation.interval": 0, "run.save_interval": SAVE,
        "run.keep_last": STEPS, "eval.heldout_problems": 15, "eval.samples": 1,
    }  # fmt: skip
    train_all(out, {name: settings}, jobs=1, threads=threads)


def train_trl(out: Path, name: str, lr: float, seed: int, threads: int) -> None:
    if (out / name / f"step-{STEPS:03d}").is_dir():
        return
    (out / name).mkdir(parents=True, exist_ok=True)
    flags = {"--lr": lr, "--seed": seed, "--steps": STEPS, "--save": SAVE, "--threads": threads}
    command = [sys.executable, str(Path(__file__).with_name("learning_trl.py")), str(out / name)]
    with (out / f"{name}.log").open("w") as log:
        subprocess.run(
            [*command, *(text for key, value in flags.items() for text in (key, str(value)))],
            stdout=log, stderr=log, check=True, env=os.environ | {"OMP_NUM_THREADS": str(threads)},
        )  # fmt: skip


def checkpoints(out: Path, name: str) -> list[tuple[Path, float, float, int]]:
    """(folder, minutes, tokens, steps) of each saved model."""
    run = out / name
    if (run / "clock.json").is_file():
        rows = json.loads((run / "clock.json").read_text())
        return [(run / f"step-{row['step']:03d}", row["seconds"] / 60, row["tokens"], row["step"]) for row in rows]
    metrics = read_metrics(run)
    folders = {int(folder.name.partition("-")[2]) + 1: folder for folder in (run / "checkpoints").iterdir()}
    return [
        (folder, metrics[steps - 1]["time/run"] / 60, metrics[steps - 1]["num_tokens"], steps)
        for steps, folder in sorted(folders.items())
    ]


def pass_at_1(out: Path, folder: Path, name: str, threads: int) -> float:
    """pass@1 in percent on 150 held-out problems x 8."""
    results = out / "evals" / name / "results.json"
    if not results.is_file():
        command = ["eval", "--model", str(folder), "--data", "generated:heldout", "--n", "8", "--pass@1"]
        flags = ["--max-tokens", "288", "--temperature", "1", "--top-p", "1", "--name", name]
        subprocess.run(
            [sys.executable, "-m", "reasoner", *command, *flags, "--out", str(out / "evals")],
            stdout=subprocess.DEVNULL, check=True, env=os.environ | {"OMP_NUM_THREADS": str(threads)},
        )  # fmt: skip
    return 100 * json.loads(results.read_text())["results"]["generated_heldout"]["pass@1,none"]


def curve(out: Path, name: str, threads: int) -> list[Point]:
    """The points of a run, from the first saved model to the last."""
    points = []
    for folder, minutes, tokens, steps in checkpoints(out, name):
        value = pass_at_1(out, folder, f"{name}-{steps}", threads)
        points.append({"step": steps, "minutes": minutes, "tokens": tokens, "pass@1": value})
    return points


def reached(points: Sequence[Point], what: str) -> float | None:
    """Where the curve reaches TARGET, between two points by interpolation; None where it does not."""
    for before, after in zip([{"pass@1": 0.0, what: 0.0}, *points], points, strict=False):
        if after["pass@1"] >= TARGET:
            share = (TARGET - before["pass@1"]) / (after["pass@1"] - before["pass@1"])
            return before[what] + share * (after[what] - before[what])
    return None


def markdown(curves: Mapping[str, list[Point]]) -> str:
    """One row a run."""
    columns = ["run", f"minutes to {TARGET:.0f} %", f"tokens to {TARGET:.0f} %", "minutes", "tokens", "pass@1, %"]
    lines = [f"| {' | '.join(columns)} |", f"|---|{'---:|' * (len(columns) - 1)}"]
    for name, points in curves.items():
        minutes, tokens, last = reached(points, "minutes"), reached(points, "tokens"), points[-1]
        cells = ["-" if minutes is None else f"{minutes:.1f}", "-" if tokens is None else f"{tokens:,.0f}"]
        cells += [f"{last['minutes']:.1f}", f"{last['tokens']:,.0f}", f"{last['pass@1']:.1f}"]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def draw(path: Path, curves: Mapping[str, list[Point]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(10, 4), sharey=True)
    colour = {"ours": "#1668c7", "trl": "#c2571a"}
    for name, points in curves.items():
        side = name.partition("-")[0]
        for axis, what, unit in zip(axes, ("minutes", "tokens"), (1, 1e3), strict=True):
            axis.plot([p[what] / unit for p in points], [p["pass@1"] for p in points], color=colour[side], alpha=0.7)
    for axis, label in zip(axes, ("minutes on this machine", "sampled tokens, thousands"), strict=True):
        axis.axhline(TARGET, color="grey", linewidth=0.5)
        axis.set_xlabel(label)
        axis.set_ylim(0, 100)
    axes[0].set_ylabel("pass@1 on held-out problems, %")
    for side, text in (("ours", "reasoner"), ("trl", "TRL GRPOTrainer")):
        axes[0].plot([], [], color=colour[side], label=text)
    axes[0].legend()
    figure.savefig(path, dpi=120, bbox_inches="tight")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    best = dict(zip(SIDES, (tune(args.out, side, args.seeds[0], args.threads) for side in SIDES), strict=True))
    names = {}
    for seed in args.seeds:
        for side in SIDES:
            names[f"{side}-{best[side]:g}-{seed}"] = train(args.out, side, best[side], seed, args.threads)
    curves = {name: curve(args.out, name, args.threads) for name in names}
    text = markdown(curves)
    means = {side: [points[-1]["pass@1"] for name, points in curves.items() if name.startswith(side)] for side in SIDES}
    text += "".join(
        f"\n{side}, mean of the last figures: {statistics.fmean(own):.1f} %\n" for side, own in means.items()
    )
    (args.out / "learning.md").write_text(text)
    draw(args.out / "learning.png", curves)
    print(text, end="")


def train(out: Path, side: str, lr: float, seed: int, threads: int) -> str:
    """Train a run of a side, unless it is there; its name."""
    name = f"{side}-{lr:g}-{seed}"
    (train_ours if side == "ours" else train_trl)(out, name, lr, seed, threads)
    return name


def tune(out: Path, side: str, seed: int, threads: int) -> float:
    """The learning rate with the highest last pass@1 of one seed."""
    last = {lr: curve(out, train(out, side, lr, seed, threads), threads)[-1]["pass@1"] for lr in LRS}
    return max(LRS, key=last.__getitem__)


if __name__ == "__main__":
    main()
