"""Learning itself beside TRL: `python bench/learning.py --out DIR` (needs the extra named peers).

Both learn from the embedded base with the same problems, prompts, rewards, 32 x 8 completions a step, 24 steps, no KL
penalty, learning-rate schedule and AdamW settings, and as many updates a step (--minibatches). First each side is tuned
with a seed of its own: TRL's size of a micro-batch by the time of three steps, then the learning rate of either by the
mean pass@1 of all models that runs of 16 steps save, on validation problems, from LRS on and further where the best is
at an end; of those within two points of the best the lowest is taken. Then both train with the tuned settings and other
seeds, in turns, one run at a time with all threads. Every saved model is evaluated on the same held-out problems. What
is not timed (the learning rates, the evaluations) runs two at once, each with half of the threads.

Writes learning.md (minutes and sampled tokens to 70 % pass@1, the ratios of both by seed, and the last figures) and
learning.png (pass@1 against minutes and against sampled tokens). Minutes are those of the steps: both leave out their
start, and ours its engine's; `whole` has everything but evaluations. What differs: ours samples with vLLM or its own
engine and leaves groups without a difference in reward out of the update, TRL samples with transformers and computes
them all. Run it on an idle machine. What is there already is kept, and refused where it was trained with other
settings; a run of TRL that was stopped begins anew.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from runs import arguments, is_over, keep_settings, options, plotting, run_python, run_reasoner, train_all
from tables import table

from reasoner.runs.metrics import read_metrics

SIDES = ("ours", "trl")
LRS = (2.5e-4, 5e-4, 1e-3)
PARTS = (4, 8, 16)  # micro-batches of TRL's step of 256 completions
STEPS, SAVE = 24, 4
TUNING_SEED, TUNING_STEPS = 0, 16
TARGET = 70.0  # pass@1 in percent
TIE = 2.0  # points of the mean pass@1 in which learning rates count as equal; the lowest of them is taken
Point = Mapping[str, float]  # step, minutes, tokens, pass@1
Curve = Sequence[Point]


@dataclass(frozen=True, slots=True)
class Bench:
    """The folder of all runs and evaluations, the threads of each process, and the updates of each step."""

    out: Path
    threads: int
    minibatches: int

    @property
    def halved(self) -> Bench:
        """The same with half of the threads, for two processes at once."""
        return replace(self, threads=max(1, self.threads // 2))

    # -------------------------------------------------------------------------------------------- training

    def train(self, side: str, lr: float, seed: int, parts: int, steps: int = STEPS) -> str:
        """Train a run of a side, unless it is there; its name. RuntimeError where it did not end."""
        name = f"{side}-{lr:g}-{seed}"
        start = time.monotonic()
        if side == "ours":
            was_there = self._train_ours(name, lr, seed, steps)
        else:
            was_there = self._train_trl(name, lr, seed, parts, steps)
        if not was_there:
            (self.out / f"{name}-seconds.json").write_text(json.dumps(time.monotonic() - start))
        return name

    def _train_ours(self, name: str, lr: float, seed: int, steps: int) -> bool:
        """As the preset does, without evaluations in between; a checkpoint every SAVE steps."""
        was_there = is_over(self.out / name)
        settings = {
            "seed": seed, "optim.lr": lr, "steps": steps, "algo.beta": 0.0,
            "algo.minibatches": self.minibatches,
            "validation.interval": 0, "run.save_interval": SAVE, "run.keep_last": steps,
            "eval.heldout_problems": 15, "eval.samples": 1,
        }  # fmt: skip
        train_all(self.out, {name: settings}, jobs=1, threads=self.threads)
        if not is_over(self.out / name):
            raise RuntimeError(f"{self.out / name} did not end; see {name}.log")
        return was_there

    def _train_trl(self, name: str, lr: float, seed: int, parts: int, steps: int, save: int = SAVE) -> bool:
        folder = self.out / name
        clock = folder / "clock.json"
        flags = {"lr": lr, "seed": seed, "steps": steps, "save": save, "parts": parts, "threads": self.threads}
        flags |= {"minibatches": self.minibatches}
        keep_settings(self.out / f"{name}.json", flags)
        if clock.is_file() and json.loads(clock.read_text())[-1]["step"] == steps:
            return True
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        script = Path(__file__).with_name("learning_trl.py")
        run_python(script, folder, *options(flags), log=self.out / f"{name}.log", threads=self.threads)
        print(f"{name}: done", file=sys.stderr, flush=True)
        return False

    # -------------------------------------------------------------------------------------------- measuring

    def pass_at_1(self, model: str, name: str, data: str, problems: int, num: int) -> float:
        """pass@1 in percent on the first problems of a set."""
        results = self.out / "evals" / name / "results.json"
        if not results.is_file():
            words = (
                "eval", "--model", model, "--data", data, "--problems", problems, "--num-samples", num, "--pass@1",
                "--max-tokens", 288, "--temperature", 1, "--top-p", 1, "--name", name, "--out", self.out / "evals",
            )  # fmt: skip
            run_reasoner(*words, log=self.out / "evals.log", threads=self.threads)
        (figures,) = json.loads(results.read_text()).values()
        return 100 * float(figures["sampled"]["metrics"]["pass@1"]["value"])

    def curve(self, name: str) -> Curve:
        """The points of a run on 150 held-out problems x 8, from the base to the last model."""
        points = [{"step": 0.0, "minutes": 0.0, "tokens": 0.0, "pass@1": self.heldout("base", "base")}]
        for folder, minutes, tokens, steps in checkpoints(self.out / name):
            value = self.heldout(str(folder), f"{name}-{steps}")
            points.append({"step": steps, "minutes": minutes, "tokens": tokens, "pass@1": value})
        return points

    def heldout(self, model: str, name: str) -> float:
        return self.pass_at_1(model, name, "generated:heldout", 150, 8)

    # -------------------------------------------------------------------------------------------- tuning

    def tune_parts(self) -> int:
        """The number of TRL's micro-batches with which three steps take the least time."""

        def seconds(parts: int) -> float:
            name = f"trl-parts-{parts}"
            self._train_trl(name, LRS[1], TUNING_SEED, parts, steps=3, save=3)
            return float(json.loads((self.out / name / "clock.json").read_text())[-1]["seconds"])

        return min(PARTS, key=seconds)

    def tune_lrs(self, parts: int) -> dict[str, float]:
        """The learning rate of each side: of those that score within TIE of the best, the lowest."""
        with ThreadPoolExecutor(len(SIDES)) as pool:
            scores = dict(zip(SIDES, pool.map(lambda side: self.halved._scores(side, parts), SIDES), strict=True))
        (self.out / "tuning.json").write_text(json.dumps(scores, indent=1))
        return {side: min(lr for lr in own if own[lr] >= max(own.values()) - TIE) for side, own in scores.items()}

    def _scores(self, side: str, parts: int) -> dict[float, float]:
        """The mean pass@1 of all saved models on 100 validation problems, by learning rate: of LRS, and of further ones
        while the best is the lowest or the highest.
        """
        scores: dict[float, float] = {}
        wanted = list(LRS)
        while wanted:
            lr = wanted.pop(0)
            scores[lr] = self._validation(self.train(side, lr, TUNING_SEED, parts, TUNING_STEPS))
            if not wanted and (beyond := _beyond(scores)) is not None:
                wanted = [beyond]
        return scores

    def _validation(self, name: str) -> float:
        values = [
            self.pass_at_1(str(folder), f"{name}-{steps}-validation", "generated:validation", 100, 4)
            for folder, _, _, steps in checkpoints(self.out / name)
        ]
        return statistics.fmean(values)


def _beyond(scores: Mapping[float, float]) -> float | None:
    """The next learning rate to try, where the best so far is at an end."""
    best = max(scores, key=scores.__getitem__)
    if best == min(scores):
        return best / 2
    return best * 2 if best == max(scores) else None


def checkpoints(run: Path) -> Iterator[tuple[Path, float, float, int]]:
    """(folder, minutes, tokens, steps done) of each saved model after the first step."""
    if (run / "clock.json").is_file():
        for row in json.loads((run / "clock.json").read_text()):
            yield run / f"step-{row['step']:03d}", row["seconds"] / 60, row["tokens"], row["step"]
        return
    metrics = read_metrics(run)
    for folder in sorted((run / "checkpoints").glob("step-??????")):
        if steps := int(folder.name.removeprefix("step-")):
            yield folder, metrics[steps - 1]["time/run"] / 60, metrics[steps - 1]["num_tokens"], steps


def reached(points: Curve, what: str) -> float | None:
    """Where the curve reaches TARGET, between two points by interpolation; None where it does not."""
    for before, after in pairwise(points):
        if after["pass@1"] >= TARGET:
            share = (TARGET - before["pass@1"]) / (after["pass@1"] - before["pass@1"])
            return before[what] + share * (after[what] - before[what])
    return None


def markdown(curves: Mapping[tuple[str, int], Curve], whole: Mapping[tuple[str, int], float], about: str) -> str:
    """A row for each run, and the ratios of ours to TRL's by seed."""
    columns = ["run", f"minutes to {TARGET:.0f} %", f"tokens to {TARGET:.0f} %", "minutes", "whole", "tokens", "pass@1"]
    rows = []
    for (side, seed), points in curves.items():
        minutes, tokens, last = reached(points, "minutes"), reached(points, "tokens"), points[-1]
        cells = ["-" if minutes is None else f"{minutes:.1f}", "-" if tokens is None else f"{tokens:,.0f}"]
        cells += [f"{last['minutes']:.1f}", f"{whole[side, seed] / 60:.1f}", f"{last['tokens']:,.0f}"]
        rows.append([f"{side}, seed {seed}", *cells, f"{last['pass@1']:.1f}"])
    lines = [table(columns, rows), about]
    for what in ("minutes", "tokens"):
        ratios = []
        for seed in sorted({seed for _, seed in curves}):
            ours, theirs = (reached(curves[side, seed], what) for side in SIDES)
            ratios.append("-" if ours is None or theirs is None else f"{ours / theirs:.2f}")
        lines.append(f"{what} to {TARGET:.0f} %, ours / TRL, by seed: {', '.join(ratios)}  ")
    return "\n".join(lines) + "\n"


def draw(path: Path, curves: Mapping[tuple[str, int], Curve]) -> None:
    pyplot = plotting()
    figure, axes = pyplot.subplots(1, 2, figsize=(10, 4), sharey=True)
    colour = {"ours": "#1668c7", "trl": "#c2571a"}
    for (side, _), points in curves.items():
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
    parser = arguments(__doc__, jobs=1)
    parser.set_defaults(seeds=[1, 2, 3], threads=os.cpu_count() or 1)  # other seeds than that of the tuning
    parser.add_argument("--minibatches", type=int, default=4, help="updates of a step: 1, 2 or 4 [4, as the preset]")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    bench = Bench(args.out, args.threads, args.minibatches)
    parts = bench.tune_parts()
    lrs = bench.tune_lrs(parts)
    names = {(side, seed): bench.train(side, lrs[side], seed, parts) for seed in args.seeds for side in SIDES}
    bench.halved.heldout("base", "base")  # once, before all curves begin with it
    with ThreadPoolExecutor(2) as pool:
        curves = dict(zip(names, pool.map(bench.halved.curve, names.values()), strict=True))
    whole = {key: json.loads((args.out / f"{name}-seconds.json").read_text()) for key, name in names.items()}
    rates = f"learning rates {lrs['ours']:g} and {lrs['trl']:g}"
    about = f"{rates}; {args.minibatches} updates a step; TRL's step in {parts} micro-batches; {args.threads} threads  "
    text = markdown(curves, whole, about)
    (args.out / "learning.md").write_text(text)
    draw(args.out / "learning.png", curves)
    print(text, end="")


if __name__ == "__main__":
    main()
