"""Plot the curves of a run as one picture: accuracy, response length and self-checks against steps, as in R1-Zero.

    python -m reasoner.analysis.plots runs/NAME docs/run.png

Bands and bars are 95 % intervals. Those of a step's own problems are estimated from the groups of its rollouts; those
of the validation problems are taken from the validations.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from reasoner.console import print_result
from reasoner.evals.estimators import estimate
from reasoner.runs.metric_names import METRICS, Metric
from reasoner.runs.metrics import read_evals, read_metrics
from reasoner.runs.parquet_files import read_table
from reasoner.runs.rollouts import shard_path

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Metrics that `detailed_metrics` adds.
_ADDED = (
    Metric("tokens/correct", "mean tokens of correct completions", "tokens", "of correct ones"),
    Metric("tokens/wrong", "mean tokens of wrong completions", "tokens", "of wrong ones"),
)
_METRICS = METRICS | {row.name: row for row in _ADDED}
PANELS: dict[str, tuple[str, ...]] = {  # by title: metrics of one unit. A picture has the first six that a run has
    "correct answers": ("correct", "validation/pass@1", "validation/greedy", "validation/cons@k"),
    "response length": ("completions/mean_length", "tokens/correct", "tokens/wrong"),
    "reflection": ("reflection/self_check_rate", "reflection/errors_caught"),
    "format and zero variance": ("well_formed", "frac_reward_zero_std"),
    "KL to the reference": ("kl",),
    "entropy": ("entropy",),
    "loss on other texts": ("validation/loss", "validation/pretraining_loss"),
    "tokens that are the likeliest": ("token_accuracy", "validation/token_accuracy"),
    "pairs in the right order": ("reward_model/accuracy",),
    "difference of the two scores": ("reward_model/margin",),
    "scores of the completions": ("reward_model/score_mean", "reward_model/score_std"),
    "training loss": ("loss",),
    "gradient": ("grad_norm",),
    "learning rate": ("lr",),
}


def draw(run_dir: Path, out: Path) -> Path:
    """Draw the panels of a run so far into the file `out`; returns its path. ValueError for a run without metrics."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    lines = detailed_metrics(run_dir)
    if not lines:
        raise ValueError(f"{run_dir} has no metrics yet")
    known = {name for line in lines for name in line}
    panels = [(title, names) for title, names in PANELS.items() if known & {*names}]
    figure, axes = pyplot.subplots(2, 3, figsize=(13, 6.4), constrained_layout=True)
    for axis, (title, names) in zip(axes.flat, panels, strict=False):
        unit = _METRICS[names[0]].unit
        for name in names:
            _curve(axis, _METRICS[name].label, name, [line for line in lines if name in line])
        axis.set_title(f"{title} ({unit})", loc="left", fontsize=10)
        axis.set_xlabel("step", fontsize=9)
        if all(line.get(name, 0) >= 0 for name in names for line in lines):
            axis.set_ylim(bottom=0, top=1.02 if unit == "share" else None)
        axis.grid(alpha=0.25)
        axis.legend(fontsize=8, frameon=False)
    for axis in axes.flat[len(panels) :]:
        axis.set_axis_off()
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=110)
    pyplot.close(figure)
    return out


def _curve(axis: Axes, label: str, name: str, lines: list[dict[str, float]]) -> None:
    """Plot one metric against the steps, with its interval if it has one; with dots if some steps lack it."""
    steps = [line["step"] for line in lines]
    dense = len(lines) > 1 and steps[-1] - steps[0] == len(lines) - 1
    (curve,) = axis.plot(
        steps, [line[name] for line in lines], "-" if dense else "o-", label=label, linewidth=1.6, markersize=4
    )
    if lines and all(f"{name}/low" in line for line in lines):
        low, high = ([line[f"{name}/{end}"] for line in lines] for end in ("low", "high"))
        if dense:
            axis.fill_between(steps, low, high, color=curve.get_color(), alpha=0.15, linewidth=0)
        else:
            axis.vlines(steps, low, high, color=curve.get_color(), alpha=0.4, linewidth=1)


def detailed_metrics(run_dir: Path) -> list[dict[str, float]]:
    """The metrics of each step, completed from its rollouts and its validation.

    Adds intervals (NAME/low, NAME/high) and the mean lengths of correct and of wrong responses (tokens/correct,
    tokens/wrong). Step n is the model after n training steps: the rollouts it samples and its validation, which
    metrics.jsonl has in the line of the training step before it. The last model has a validation alone.
    """
    lines: defaultdict[int, dict[str, float]] = defaultdict(dict)
    for metrics in read_metrics(run_dir):
        step = int(metrics.pop("step"))
        for name, value in metrics.items():
            lines[step + name.startswith("validation/")][name] = value
        with suppress(ValueError):  # a missing or damaged shard
            lines[step] |= _of_rollouts(shard_path(run_dir, step))
    for validation in read_evals(run_dir):
        lines[int(validation["step"])] |= _of_validation(validation)
    return [{"step": step, **lines[step]} for step in sorted(lines)]


def _of_validation(line: Mapping[str, Any]) -> dict[str, float]:
    """The estimates of a validation by the names of METRICS: cons@k has that name whatever its k is."""
    estimates = {"greedy": line["greedy"]["metrics"]["pass@1"]}
    for name, value in line["sampled"]["metrics"].items():
        estimates["cons@k" if name.startswith("cons@") else name] = value
    metrics: dict[str, float] = dict(line.get("measures", {}))
    for name, value in estimates.items():
        metric = f"validation/{name}"
        metrics |= {metric: value["value"], f"{metric}/low": value["low"], f"{metric}/high": value["high"]}
    return metrics


def _of_rollouts(path: Path) -> dict[str, float]:
    """The interval of `correct` and the mean lengths of correct and wrong completions, of a shard."""
    table = read_table(path, ["group", "verdict", "token_ids"])
    verdicts = pc.equal(table["verdict"], "correct").to_pylist()
    lengths = pc.list_value_length(table["token_ids"]).to_pylist()
    groups: dict[int, list[bool]] = {}
    for group, is_correct in zip(table["group"].to_pylist(), verdicts, strict=True):
        groups.setdefault(group, []).append(is_correct)
    correct = estimate([sum(group) / len(group) for group in groups.values()])
    metrics = {"correct/low": correct.low, "correct/high": correct.high}
    for name, wanted in (("tokens/correct", True), ("tokens/wrong", False)):
        selected = [length for length, is_correct in zip(lengths, verdicts, strict=True) if is_correct is wanted]
        if selected:
            metrics[name] = sum(selected) / len(selected)
    return metrics


if __name__ == "__main__":
    print_result(str(draw(Path(sys.argv[1]), Path(sys.argv[2]))))
