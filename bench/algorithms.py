"""Every algorithm on the embedded base, with the same budget of sampled tokens: `python bench/algorithms.py --out DIR`.

Trains what is not there yet (a run an entry and seed, named ENTRY-SEED), `--jobs` at once with a share of the cores
each, and writes algorithms.md (a table over the seeds) and algorithms.png (pass@1 on the validation problems against
tokens). Stop it and call it again: finished runs are kept, unfinished ones begin anew. Batch, group, learning rate, KL
coefficient and rewards are the base's preset for all.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path

from runs import is_over, looks, train_all

from reasoner.rl.algorithms import ALGORITHMS
from reasoner.runs.metrics import read_metrics

# Every row, and what shows a part of one.
ENTRIES: dict[str, dict[str, object]] = {
    "reinforce_no_baseline": {"algo": "reinforce", "algo.baseline": "none"},
    **{name: {"algo": name} for name in ALGORITHMS},
    "ppo_shared_trunk": {"algo": "ppo", "algo.critic_backbone": "shared"},
}


def settings(entry: str, seed: int, tokens: int) -> dict[str, object]:
    return {
        "seed": seed,
        "max_train_tokens": tokens,
        "steps": 400,
        "optim.decay_share": 0.0,
        "validation.interval": 4,
        "validation.problems": 40,
        "validation.samples": 8,
        "eval.heldout_problems": 100,
        "eval.samples": 8,
        **ENTRIES[entry],
    }


def row(out: Path, entry: str, seeds: list[int]) -> list[str] | None:
    """Means over the seeds, with the range where there are several; None where no run is finished."""
    found = [_figures(out / f"{entry}-{seed}") for seed in seeds if is_over(out / f"{entry}-{seed}")]
    if not found:
        return None

    def cell(key: str, digits: int = 1) -> str:
        values = [figures[key] for figures in found]
        spread = f" ({min(values):.{digits}f} to {max(values):.{digits}f})" if len(values) > 1 else ""
        return f"{statistics.fmean(values):.{digits}f}{spread}"

    shown = [cell("after"), cell("gain"), cell("greedy"), cell("steps", 0), cell("length", 0), cell("kl", 3)]
    return [f"`{entry}`", str(len(found)), *shown, cell("minutes")]


def _figures(run: Path) -> dict[str, float]:
    report = json.loads((run / "report.json").read_text())
    metrics = read_metrics(run)
    before, after = (report[when]["sampled"]["metrics"]["pass@1"]["value"] for when in ("before", "after"))
    return {
        "after": 100 * after,
        "gain": 100 * (after - before),
        "greedy": 100 * report["after"]["greedy"]["metrics"]["pass@1"]["value"],
        "steps": len(metrics),
        "length": metrics[-1]["completions/mean_length"],
        "kl": metrics[-1]["kl"],
        "minutes": len(metrics) * statistics.median(line["time/step"] for line in metrics) / 60,
    }


def draw(out: Path, entries: list[str], seeds: list[int]) -> None:
    """A panel an entry: its seeds in colour, before the means of all the others in grey."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    curves = {entry: [_curve(out / f"{entry}-{seed}") for seed in seeds] for entry in entries}
    columns = 4
    figure, panels = pyplot.subplots(
        -(-len(entries) // columns), columns, figsize=(11, 2.1 * -(-len(entries) // columns)), sharex=True, sharey=True
    )
    for panel, entry in zip(panels.flat, entries, strict=False):
        for other in entries:
            for curve in curves[other]:
                panel.plot(*curve, color="0.85", linewidth=0.7)
        for curve in curves[entry]:
            panel.plot(*curve, color="C0", marker=".", markersize=4)
        panel.set_title(entry, fontsize="medium")
        panel.grid(alpha=0.3)
    for panel in panels.flat[len(entries) :]:
        panel.set_axis_off()
    figure.supxlabel("sampled tokens, thousands")
    figure.supylabel("pass@1 on the validation problems, %")
    figure.tight_layout()
    figure.savefig(out / "algorithms.png", dpi=110)


def _curve(run: Path) -> tuple[list[float], list[float]]:
    """Thousands of sampled tokens, pass@1 in percent; nothing where the run is not there."""
    spent = {0: 0.0} | {int(line["step"]) + 1: line["num_tokens"] for line in read_metrics(run)}
    found = looks(run)
    return [spent[step] / 1e3 for step in found], list(found.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("runs/bench"))
    parser.add_argument("--tokens", type=int, default=200_000, help="of each run [200,000]")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--only", default=",".join(ENTRIES), help="entries, with commas [all]")
    parser.add_argument("--jobs", type=int, default=2, help="runs at once [2]")
    args = parser.parse_args()
    seeds, entries = [int(seed) for seed in args.seeds.split(",")], args.only.split(",")
    runs = {f"{entry}-{seed}": settings(entry, seed, args.tokens) for seed in seeds for entry in entries}
    train_all(args.out, runs, jobs=args.jobs)
    heads = ["entry", "seeds", "pass@1", "gain", "greedy", "steps", "length", "KL", "minutes"]
    rows = {entry: found for entry in entries if (found := row(args.out, entry, seeds))}
    lines = [
        "| " + " | ".join(cells) + " |" for cells in [heads, ["---"] + ["---:"] * (len(heads) - 1), *rows.values()]
    ]
    (args.out / "algorithms.md").write_text("\n".join(lines) + "\n")
    draw(args.out, list(rows), seeds)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
