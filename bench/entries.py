"""What bench/algorithms.py and bench/settings.py share: entries, each with settings of its own, trained with the same
budget of sampled tokens over several seeds, in a table and a figure of small multiples.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Mapping
from pathlib import Path

from runs import Settings, is_over, plotting, train_all, validations
from runs import arguments as experiment
from tables import mean_and_range, over_seeds, table

from reasoner.runs.metrics import read_metrics

LAST = 4  # steps over which the last length and KL are averaged
FORMS = {"greedy": ".1f", "steps": ".0f", "length": ".0f", "kl": ".3f", "minutes": ".1f"}  # of the columns


def arguments(description: str | None, tokens: int) -> argparse.ArgumentParser:
    """The arguments of a comparison, trained with `tokens` by default."""
    parser = experiment(description, out="runs/bench")
    parser.add_argument("--tokens", type=int, default=tokens, help=f"sampled tokens of each run [{tokens:,}]")
    parser.add_argument("--only", help="entries, with commas [all]")
    return parser


def compare(args: argparse.Namespace, name: str, entries: Mapping[str, Settings]) -> None:
    """Train the entries (a run an entry and seed, ENTRY-SEED), and write NAME.md and NAME.png of all that are finished.
    What is finished stays. The first entry is the one that the others are compared with, seed by seed.

    ValueError for an entry of --only that is not known.
    """
    seeds: list[int] = args.seeds
    chosen = args.only.split(",") if args.only else list(entries)
    if unknown := set(chosen) - set(entries):
        raise ValueError(f"--only {', '.join(sorted(unknown))}: known are {', '.join(entries)}")
    runs = {
        f"{entry}-{seed}": _settings(seed, args.tokens) | dict(entries[entry]) for seed in seeds for entry in chosen
    }
    train_all(args.out, runs, jobs=args.jobs, threads=args.threads)
    first = next(iter(entries))
    heads = ["entry", "seeds", "pass@1", f"against {first}", "greedy", "steps", "length", "KL", "minutes"]
    rows = {entry: row for entry in entries if (row := _row(args.out, entry, first, seeds))}
    text = table(heads, rows.values())
    (args.out / f"{name}.md").write_text(text)
    _draw(args.out, name, list(rows), seeds)
    print(text, end="")


def _settings(seed: int, tokens: int) -> dict[str, object]:
    return {
        "seed": seed, "max_train_tokens": tokens, "steps": 400, "optim.decay_share": 0.0, "validation.interval": 4,
        "validation.problems": 40, "validation.samples": 8, "eval.heldout_problems": 100, "eval.samples": 8,
    }  # fmt: skip


def _row(out: Path, entry: str, first: str, seeds: list[int]) -> list[str] | None:
    """Means over the seeds, with the range where there are several; None where no run is finished."""
    runs = {seed: out / f"{entry}-{seed}" for seed in seeds if is_over(out / f"{entry}-{seed}")}
    if not runs:
        return None
    figures = [_figures(run) for run in runs.values()]
    cells = [mean_and_range([own[name] for own in figures], form) for name, form in FORMS.items()]
    others = {seed: out / f"{first}-{seed}" for seed in runs if is_over(out / f"{first}-{seed}")}
    gains = [_accuracy(runs[seed]) - _accuracy(run) for seed, run in others.items()]
    against = "" if entry == first else over_seeds(gains)
    return [f"`{entry}`", str(len(runs)), mean_and_range([*map(_accuracy, runs.values())]), against, *cells]


def _accuracy(run: Path, way: str = "sampled") -> float:
    """pass@1 on the held-out problems after training, in percent."""
    report = json.loads((run / "report.json").read_text())
    return 100 * float(report["after"][way]["metrics"]["pass@1"]["value"])


def _figures(run: Path) -> dict[str, float | None]:
    metrics = read_metrics(run)
    kls = [line["kl"] for line in metrics[-LAST:] if "kl" in line]  # only with a reference: algo.beta above 0
    return {
        "greedy": _accuracy(run, "greedy"),
        "steps": len(metrics),
        "length": statistics.fmean(line["completions/mean_length"] for line in metrics[-LAST:]),
        "kl": statistics.fmean(kls) if kls else None,
        "minutes": len(metrics) * statistics.median(line["time/step"] for line in metrics) / 60,
    }


def _draw(out: Path, name: str, entries: list[str], seeds: list[int]) -> None:
    """A panel an entry: its seeds in colour, before the means of all the others in grey."""
    pyplot = plotting()
    curves = {
        entry: [_curve(out / f"{entry}-{seed}") for seed in seeds if is_over(out / f"{entry}-{seed}")]
        for entry in entries
    }
    columns, rows = 4, -(-len(entries) // 4)
    figure, panels = pyplot.subplots(rows, columns, figsize=(11, 2.1 * rows), sharex=True, sharey=True, squeeze=False)
    for panel, entry in zip(panels.flat, entries, strict=False):
        for curve in (curve for own in curves.values() for curve in own):
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
    figure.savefig(out / f"{name}.png", dpi=110)


def _curve(run: Path) -> tuple[list[float], list[float]]:
    """Thousands of sampled tokens, pass@1 in percent; nothing where the run is not there."""
    spent = {0: 0.0} | {int(line["step"]) + 1: line["num_tokens"] for line in read_metrics(run)}
    scores = validations(run)
    return [spent[step] / 1e3 for step in scores], list(scores.values())
