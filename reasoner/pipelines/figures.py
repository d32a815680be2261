"""The figures of a stage's run, and the table of a pipeline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import Any

from reasoner.evals.estimators import mean_interval
from reasoner.evals.eval_log import read_flat
from reasoner.evals.tables import align_rows
from reasoner.pipelines.state import PipelineState, StageRecord
from reasoner.runs.json_files import read_object
from reasoner.runs.metrics import read_metrics

Figures = Mapping[str, Any]


def read_figures(run_dir: Path) -> dict[str, Any]:
    """What a run has of these: `sampled_tokens`, `examples` or `pairs` to train on, `accuracy` of a reward model, and
    on the held-out problems `pass@1`, `greedy` and `tokens` of a response, also as `before` the run.
    """
    figures: dict[str, Any] = {}
    if any((run_dir / "rollouts").glob("*.parquet")):
        figures["sampled_tokens"] = int(read_metrics(run_dir)[-1]["num_tokens"])
    contents = read_object(run_dir / "data.json")
    for name, key in (("examples", "training_examples"), ("pairs", "training_pairs")):
        if key in contents:
            figures[name] = contents[key]
    report = read_object(run_dir / "report.json")
    if "accuracy" in report:
        figures["accuracy"] = _interval(report["accuracy"])
    if "after" in report:
        figures |= _heldout(run_dir, report, "after")
        figures["before"] = _heldout(run_dir, report, "before")
    return figures


def _heldout(run_dir: Path, report: Mapping[str, Any], side: str) -> dict[str, Any]:
    """Results on the held-out problems, before or after the run."""
    lengths: dict[str, list[float]] = {}
    for row in read_flat(run_dir / "heldout" / side):
        if row["way"] == "sampled" and row["tokens"] is not None:
            lengths.setdefault(row["problem_id"], []).append(row["tokens"])
    value, low, high = mean_interval([fmean(own) for own in lengths.values()])
    ways = {"pass@1": "sampled", "greedy": "greedy"}
    results = {name: _interval(report[side][way]["metrics"]["pass@1"]) for name, way in ways.items()}
    return results | {"tokens": {"value": value, "low": low, "high": high}}


def _interval(estimate: Mapping[str, float]) -> dict[str, float]:
    return {name: estimate[name] for name in ("value", "low", "high")}


# --------------------------------------------------------------------------------------------------- the table

_HEADS = ["", "sampled tokens", "minutes", "pass@1, %", "greedy, %", "response tokens", "learnt from"]


def table(state: PipelineState) -> str:
    """The table of a pipeline: a row for each part of its recipe and each model that it starts from, with the results
    on the held-out problems and their 95 % intervals; tokens and minutes of all stages but controls in the last row.
    """
    rows, runs = [_HEADS], {one.run for one in state.stages}
    starts: set[str] = set()
    for part, group in groupby(state.stages, key=lambda one: one.part):
        stages = list(group)
        for one in stages:
            is_start = one.model not in starts and Path(one.model).name not in runs
            if is_start and "before" in one.figures:
                starts.add(one.model)
                rows.append([Path(one.model).name, "", "", *_results(one.figures["before"]), ""])
        rows.append(_part_row(part, stages))
    own = [one for one in state.stages if not one.is_control]
    rows.append(["all stages but controls", *_costs(own), "", "", "", ""])
    return "\n".join(align_rows(rows))


def _part_row(part: str, stages: Sequence[StageRecord]) -> list[str]:
    """The row of a part: what its stages cost together, and the results of its last one."""
    last = stages[-1].figures
    return [part, *_costs(stages), *_results(last), ", ".join(_sources(last))]


def _costs(stages: Sequence[StageRecord]) -> list[str]:
    tokens = sum(one.figures.get("sampled_tokens", 0) for one in stages)
    return [f"{tokens:,.0f}", f"{sum(one.minutes for one in stages):.1f}"]


def _results(figures: Figures) -> list[str]:
    """pass@1, greedy and tokens, empty where there are none."""
    factors = {"pass@1": 100, "greedy": 100, "tokens": 1}
    return [_range(figures[name], factor) if name in figures else "" for name, factor in factors.items()]


def _sources(figures: Figures) -> Iterator[str]:
    """What a run has learnt from, and the accuracy of a reward model."""
    for name in ("examples", "pairs"):
        if name in figures:
            yield f"{figures[name]:,.0f} {name}"
    if "accuracy" in figures:
        yield f"accuracy {_range(figures['accuracy'], 100)} %"


def _range(estimate: Mapping[str, float], factor: float) -> str:
    value, low, high = (factor * estimate[name] for name in ("value", "low", "high"))
    return f"{value:.1f} [{low:.1f}, {high:.1f}]"
