"""Every algorithm on the embedded base, with the same budget of sampled tokens: `python bench/algorithms.py --out DIR`.

Trains what is not there yet (a run a row and seed, named NAME-SEED), one after another, and writes algorithms.md (a
table over the seeds) and algorithms.png (pass@1 on the selection problems against tokens). Stop it and call it again:
finished runs are kept. Batch, group, learning rate, KL coefficient and rewards are the base's preset for all; what a
row needs besides stands in NEEDS.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

from reasoner.journal import read_evals, read_metrics
from reasoner.rl.algorithms import ALGORITHMS

NEEDS: dict[str, dict[str, object]] = {}


def train(out: Path, name: str, seed: int, tokens: int) -> None:
    settings = {
        "algo": name,
        "seed": seed,
        "tokens": tokens,
        "steps": 400,
        "optim.decay_share": 0.0,
        "eval.every": 6,
        "run.dir": out,
        "run.name": f"{name}-{seed}",
        "run.keep": 1,
        **NEEDS.get(name, {}),
    }
    flags = [text for key, value in settings.items() for text in (f"--{key}", str(value))]
    command = [sys.executable, "-m", "reasoner", "train", "--model", "base", *flags]
    with (out / f"{name}-{seed}.log").open("w") as log:
        subprocess.run(command, stdout=log, stderr=log, check=True)


def row(out: Path, name: str, seeds: list[int]) -> list[str] | None:
    """Means over the seeds, with the range where there are several."""
    found = [_figures(out / f"{name}-{seed}") for seed in seeds if (out / f"{name}-{seed}" / "report.json").is_file()]
    if not found:
        return None

    def cell(key: str, digits: int = 1) -> str:
        values = [figures[key] for figures in found]
        spread = f" ({min(values):.{digits}f} to {max(values):.{digits}f})" if len(values) > 1 else ""
        return f"{statistics.fmean(values):.{digits}f}{spread}"

    shown = [
        cell("before"),
        cell("after"),
        cell("gain"),
        cell("greedy"),
        cell("tokens"),
        cell("kl", 3),
        cell("minutes"),
    ]
    return [f"`{name}`", str(len(found)), *shown]


def _figures(run: Path) -> dict[str, float]:
    report = json.loads((run / "report.json").read_text())
    metrics = read_metrics(run)
    before, after = (report[when]["sampled"]["metrics"]["pass@1"]["value"] for when in ("before", "after"))
    return {
        "before": 100 * before,
        "after": 100 * after,
        "gain": 100 * (after - before),
        "greedy": 100 * report["after"]["greedy"]["metrics"]["pass@1"]["value"],
        "tokens": metrics[-1]["completions/mean_length"],
        "kl": metrics[-1]["kl"],
        "minutes": sum(line["time/step"] for line in metrics) / 60,
    }


def draw(out: Path, names: list[str], seeds: list[int]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 5))
    for number, name in enumerate(names):
        for seed in seeds:
            run = out / f"{name}-{seed}"
            spent = {0: 0.0} | {int(line["step"]) + 1: line["num_tokens"] for line in read_metrics(run)}
            looks = [(spent[e["step"]], e["sampled"]["metrics"]["pass@1"]["value"]) for e in read_evals(run)]
            axes.plot(
                [tokens / 1e6 for tokens, _ in looks],
                [100 * value for _, value in looks],
                color=f"C{number % 10}",
                linestyle="-" if number < 10 else "--",
                marker=".",
                label=name if seed == seeds[0] else None,
            )
    axes.set_xlabel("sampled tokens, millions")
    axes.set_ylabel("pass@1 on the selection problems, %")
    axes.legend(fontsize="small")
    figure.tight_layout()
    figure.savefig(out / "algorithms.png", dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("runs/bench"))
    parser.add_argument("--tokens", type=int, default=500_000, help="of each run [500,000]")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--only", default=",".join(ALGORITHMS), help="rows, with commas [all]")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    seeds, names = [int(seed) for seed in args.seeds.split(",")], args.only.split(",")
    for seed in seeds:
        for name in names:
            if not (args.out / f"{name}-{seed}" / "report.json").is_file():
                train(args.out, name, seed, args.tokens)
                print(f"{name}-{seed}: {row(args.out, name, [seed])}", flush=True)
    heads = ["algorithm", "runs", "before", "after", "gain", "greedy", "tokens", "KL", "minutes"]
    rows = [found for name in names if (found := row(args.out, name, seeds))]
    lines = ["| " + " | ".join(cells) + " |" for cells in [heads, ["---"] + ["---:"] * (len(heads) - 1), *rows]]
    (args.out / "algorithms.md").write_text("\n".join(lines) + "\n")
    draw(args.out, [name for name in names if row(args.out, name, seeds)], seeds)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
