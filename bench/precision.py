"""Does learning in bfloat16 learn as learning in float32 does? `python bench/precision.py --out DIR`

Trains the embedded base as the README does, in both precisions from several seeds (what is not there yet; finished runs
are kept). Writes precision.md, a table of all runs and of how far their curves lie apart, and precision.png.

A curve is the share of right completions of each step's questions. Two of them lie as far apart as the root of their
mean squared difference over the steps. bfloat16 lies within the spread of the seeds where its curves are on average no
further from those of float32 than the two furthest of float32 are from each other.
"""

from __future__ import annotations

import argparse
import json
import statistics
from itertools import combinations, product
from pathlib import Path

from runs import ONE_UPDATE, is_over, train_all, validations

from reasoner.runs.metrics import read_metrics

KINDS = ("float32", "bfloat16")


def curve(run: Path) -> list[float]:
    """Right completions of each step, percent."""
    return [100 * line["correct"] for line in read_metrics(run)]


def apart(one: Path, other: Path) -> float:
    """Points."""
    return statistics.fmean((a - b) ** 2 for a, b in zip(curve(one), curve(other), strict=True)) ** 0.5


def heldout(run: Path) -> list[float]:
    """pass@1, greedy, cons@16, percent."""
    after = json.loads((run / "report.json").read_text())["after"]
    named = (("sampled", "pass@1"), ("greedy", "pass@1"), ("sampled", "cons@16"))
    return [100 * after[way]["metrics"][metric]["value"] for way, metric in named]


def table(runs: dict[str, list[Path]]) -> str:
    steps = list(validations(runs[KINDS[0]][0]))
    heads = ["run", *(f"selection pass@1, step {step}" for step in steps), "held-out pass@1", "greedy", "cons@16"]
    lines = [heads, ["---", *("---:" for _ in heads[1:])]]
    for kind in KINDS:
        for run in runs[kind]:
            lines.append([run.name, *(f"{value:.1f}" for value in (*validations(run).values(), *heldout(run)))])
    pairs = {
        "float32 from float32": list(combinations(runs["float32"], 2)),
        "bfloat16 from bfloat16": list(combinations(runs["bfloat16"], 2)),
        "bfloat16 from float32, other seeds": [
            (a, b) for (i, a), (j, b) in product(enumerate(runs["bfloat16"]), enumerate(runs["float32"])) if i != j
        ],
        "bfloat16 from float32, the same seed": list(zip(runs["bfloat16"], runs["float32"], strict=True)),
    }
    lines += [[], ["curves apart, points", "mean", "least", "most"], ["---", "---:", "---:", "---:"]]
    for name, some in pairs.items():
        differences = [apart(*pair) for pair in some]
        lines.append(
            [name, *(f"{value:.1f}" for value in (statistics.fmean(differences), min(differences), max(differences)))]
        )
    return "\n".join(f"| {' | '.join(cells)} |" if cells else "" for cells in lines)


def draw(runs: dict[str, list[Path]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4), sharey=True, constrained_layout=True)
    for kind, color in zip(KINDS, ("0.45", "C0"), strict=True):
        for number, run in enumerate(runs[kind]):
            label = f"{kind}, {len(runs[kind])} seeds" if number == 0 else None
            left.plot(range(1, len(curve(run)) + 1), curve(run), color=color, linewidth=1.3, label=label)
            right.plot(
                list(validations(run)), list(validations(run).values()), "o-", color=color, linewidth=1.3, label=label
            )
    for axis, title in ((left, "the step's own questions"), (right, "validation problems")):
        axis.set_title(f"{title}: right completions, %", loc="left", fontsize=10)
        axis.set_xlabel("step")
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.25)
        axis.legend(frameon=False, loc="lower right")
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/precision"))
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--jobs", type=int, default=2, help="runs at once [2]")
    args = parser.parse_args()
    seeds = [int(seed) for seed in args.seeds.split(",")]
    settings = {f"{kind}-{seed}": {"optim.dtype": kind, "seed": seed, **ONE_UPDATE} for seed in seeds for kind in KINDS}
    train_all(args.out, settings, jobs=args.jobs)
    runs = {kind: [run for seed in seeds if is_over(run := args.out / f"{kind}-{seed}")] for kind in KINDS}
    if any(len(some) < len(seeds) for some in runs.values()):
        parser.exit(1, "not every run has ended: see the logs\n")
    (args.out / "precision.md").write_text(table(runs) + "\n")
    draw(runs, args.out / "precision.png")
    print(table(runs))


if __name__ == "__main__":
    main()
