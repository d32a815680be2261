"""What bench/algorithms.py, bench/settings.py and bench/base_behaviours.py share: entries, each with settings of its
own, trained with the same budget of sampled tokens over several seeds, in a table and a figure of small multiples.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from runs import Settings, is_over, over_seeds, train_all, validations
from tables import table

from reasoner.runs.metrics import read_metrics

Metrics = Sequence[Mapping[str, Any]]  # the lines of a run's metrics.jsonl
# A further column: its head, its value for the metrics of a run (None: the run has none), and its digits.
Column = tuple[str, Callable[[Metrics], float | None], int]
LAST = 4  # steps over which the last length and KL are averaged


def arguments(description: str, tokens: int) -> argparse.ArgumentParser:
    """The arguments of a comparison, trained with `tokens` by default."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--out", type=Path, default=Path("runs/bench"))
    parser.add_argument("--tokens", type=int, default=tokens, help=f"sampled tokens of each run [{tokens:,}]")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--only", help="entries, with commas [all]")
    parser.add_argument("--jobs", type=int, default=2, help="runs at once [2]")
    parser.add_argument("--threads", type=int, help="threads of each run [the cores divided by the jobs]")
    return parser


def compare(args: argparse.Namespace, name: str, entries: Mapping[str, Settings], extra: Sequence[Column] = ()) -> None:
    """Train the entries (a run an entry and seed, ENTRY-SEED), and write NAME.md and NAME.png of all that are finished.
    What is finished stays. The first entry is the one that the others are compared with, seed by seed.

    ValueError for an entry of --only that is not known.
    """
    seeds = [int(seed) for seed in args.seeds.split(",")]
    chosen = args.only.split(",") if args.only else list(entries)
    if unknown := set(chosen) - set(entries):
        raise ValueError(f"--only {', '.join(sorted(unknown))}: known are {', '.join(entries)}")
    runs = {
        f"{entry}-{seed}": _settings(seed, args.tokens) | dict(entries[entry]) for seed in seeds for entry in chosen
    }
    train_all(args.out, runs, jobs=args.jobs, threads=args.threads)
    first = next(iter(entries))
    heads = ["entry", "seeds", "pass@1", f"against {first}", "greedy", "steps", "length", "KL"]
    heads += [head for head, *_ in extra]
    rows = {entry: row for entry in entries if (row := _row(args.out, entry, first, seeds, extra))}
    text = "\n".join(table([*heads, "minutes"], list(rows.values())))
    (args.out / f"{name}.md").write_text(text)
    _draw(args.out, name, list(rows), seeds)
    print(text, end="")


def _settings(seed: int, tokens: int) -> dict[str, object]:
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
    }


def _row(out: Path, entry: str, first: str, seeds: list[int], extra: Sequence[Column]) -> list[str] | None:
    """Means over the seeds, with the range where there are several; None where no run is finished."""
    runs = {seed: out / f"{entry}-{seed}" for seed in seeds if is_over(out / f"{entry}-{seed}")}
    if not runs:
        return None
    per_run = {seed: _figures(run, extra) for seed, run in runs.items()}
    digits = {"greedy": 1, "steps": 0, "length": 0, "kl": 3} | {head: places for head, _, places in extra}
    cells = [_cell([own[key] for own in per_run.values()], places) for key, places in (digits | {"minutes": 1}).items()]
    others = {seed: out / f"{first}-{seed}" for seed in runs if is_over(out / f"{first}-{seed}")}
    gains = [_accuracy(runs[seed]) - _accuracy(run) for seed, run in others.items()]
    against = "" if entry == first else over_seeds(gains)
    return [f"`{entry}`", str(len(runs)), _cell([*map(_accuracy, runs.values())], 1), against, *cells]


def _cell(values: Sequence[float | None], digits: int) -> str:
    """The mean and the range of the runs that have a value, and how many have none."""
    known = [value for value in values if value is not None]
    if not known:
        return "-"
    form = f"{{:.{digits}f}}".format
    spread = f" ({form(min(known))} to {form(max(known))})" if len(known) > 1 else ""
    missing = f", {len(values) - len(known)} never" if len(known) < len(values) else ""
    return form(statistics.fmean(known)) + spread + missing


def _accuracy(run: Path) -> float:
    """pass@1 on the held-out problems after training, in percent."""
    report = json.loads((run / "report.json").read_text())
    return 100 * float(report["after"]["sampled"]["metrics"]["pass@1"]["value"])


def _figures(run: Path, extra: Sequence[Column]) -> dict[str, float | None]:
    report = json.loads((run / "report.json").read_text())
    metrics = read_metrics(run)
    kls = [line["kl"] for line in metrics[-LAST:] if "kl" in line]  # only with a reference: algo.beta above 0
    return {
        "greedy": 100 * report["after"]["greedy"]["metrics"]["pass@1"]["value"],
        "steps": len(metrics),
        "length": statistics.fmean(line["completions/mean_length"] for line in metrics[-LAST:]),
        "kl": statistics.fmean(kls) if kls else None,
        **{head: value(metrics) for head, value, _ in extra},
        "minutes": len(metrics) * statistics.median(line["time/step"] for line in metrics) / 60,
    }


def _draw(out: Path, name: str, entries: list[str], seeds: list[int]) -> None:
    """A panel an entry: its seeds in colour, before the means of all the others in grey."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    curves = {
        entry: [_curve(out / f"{entry}-{seed}") for seed in seeds if is_over(out / f"{entry}-{seed}")]
        for entry in entries
    }
    columns = 4
    figure, panels = pyplot.subplots(
        -(-len(entries) // columns),
        columns,
        figsize=(11, 2.1 * -(-len(entries) // columns)),
        sharex=True,
        sharey=True,
        squeeze=False,
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
    figure.savefig(out / f"{name}.png", dpi=110)


def _curve(run: Path) -> tuple[list[float], list[float]]:
    """Thousands of sampled tokens, pass@1 in percent; nothing where the run is not there."""
    spent = {0: 0.0} | {int(line["step"]) + 1: line["num_tokens"] for line in read_metrics(run)}
    scores = validations(run)
    return [spent[step] / 1e3 for step in scores], list(scores.values())
