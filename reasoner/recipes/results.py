"""The results of a stage's run, and the table of a pipeline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from reasoner.evals.estimators import mean_interval
from reasoner.evals.eval_log import read_flat
from reasoner.evals.tables import align_rows
from reasoner.recipes.stages import Stage
from reasoner.runs.json_files import read_object
from reasoner.runs.metrics import read_metrics

Results = Mapping[str, Any]


def read_results(run_dir: Path) -> dict[str, Any]:
    """What a run has of these: `minutes` of sampling or training, `sampled_tokens`, `examples` or `pairs` to train on,
    `accuracy` of a reward model, and on the held-out problems `pass@1`, `greedy` and `tokens` of a response, also as
    `before` the run.
    """
    results: dict[str, Any] = {}
    if last := (read_metrics(run_dir) or [{}])[-1]:
        results["minutes"] = last.get("time/run", 0.0) / 60
        if any((run_dir / "rollouts").glob("*.parquet")):
            results["sampled_tokens"] = int(last["num_tokens"])
    contents = read_object(run_dir / "data.json")
    for name, key in (("examples", "training_examples"), ("pairs", "training_pairs")):
        if key in contents:
            results[name] = contents[key]
    report = read_object(run_dir / "report.json")
    if "accuracy" in report:
        results["accuracy"] = _interval(report["accuracy"])
    if "after" in report:
        results |= _heldout(run_dir, report, "after") | {"before": _heldout(run_dir, report, "before")}
    return results


def _heldout(run_dir: Path, report: Mapping[str, Any], side: str) -> dict[str, Any]:
    """Results on the held-out problems, before or after the run."""
    lengths: dict[str, list[float]] = {}
    for row in read_flat(run_dir / "heldout" / side, ("way", "problem_id", "tokens")).to_pylist():
        if row["way"] == "sampled" and row["tokens"] is not None:
            lengths.setdefault(row["problem_id"], []).append(row["tokens"])
    tokens = mean_interval([fmean(own) for own in lengths.values()])
    ways = {"pass@1": "sampled", "greedy": "greedy"}
    results = {name: _interval(report[side][way]["metrics"]["pass@1"]) for name, way in ways.items()}
    return results | {"tokens": dict(zip(("value", "low", "high"), tokens, strict=True))}


def _interval(estimate: Mapping[str, float]) -> dict[str, float]:
    return {name: estimate[name] for name in ("value", "low", "high")}


def sampled_tokens(stages: Sequence[Stage]) -> int:
    """The tokens that the stages have sampled, controls left out."""
    return sum(_total(stage, "sampled_tokens") for stage in stages if not stage.is_control)


def _total(stage: Stage, name: str) -> Any:
    return (stage.results or {}).get(name, 0)


# --------------------------------------------------------------------------------------------------- the table

_HEADS = ["", "sampled tokens", "minutes", "pass@1, %", "greedy, %", "response tokens", "learnt from"]


def table(stages: Sequence[Stage]) -> str:
    """The table of a pipeline: a row for each run and each model that the recipe starts from, with the results on the
    held-out problems and their 95 % intervals; tokens and minutes of all stages but controls in the last row.
    """
    rows, outputs = [_HEADS], {stage.output for stage in stages}
    starts: set[str] = set()
    for stage in (one for one in stages if one.run):
        model, results = stage.arguments["model"], stage.results or {}
        if model not in outputs | starts and "before" in results:
            starts.add(model)
            rows.append([Path(model).name, "", "", *_cells(results["before"]), ""])
        rows.append([stage.name, *_costs([stage]), *_cells(results), ", ".join(_sources(results))])
    own = [stage for stage in stages if not stage.is_control]
    rows.append(["all stages but controls", *_costs(own), "", "", "", ""])
    return "\n".join(align_rows(rows))


def _costs(stages: Sequence[Stage]) -> list[str]:
    minutes = sum(_total(stage, "minutes") for stage in stages)
    return [f"{sum(_total(stage, 'sampled_tokens') for stage in stages):,.0f}", f"{minutes:.1f}"]


def _cells(results: Results) -> list[str]:
    """pass@1, greedy and tokens, empty where there are none."""
    factors = {"pass@1": 100, "greedy": 100, "tokens": 1}
    return [interval_text(results[name], factor) if name in results else "" for name, factor in factors.items()]


def _sources(results: Results) -> Iterator[str]:
    """What a run has learnt from, and the accuracy of a reward model."""
    for name in ("examples", "pairs"):
        if name in results:
            yield f"{results[name]:,.0f} {name}"
    if "accuracy" in results:
        yield f"accuracy {interval_text(results['accuracy'], 100)} %"


def interval_text(estimate: Mapping[str, float], factor: float) -> str:
    """An estimate and its interval, times a factor: 62.5 [50.0, 75.0]."""
    value, low, high = (factor * estimate[name] for name in ("value", "low", "high"))
    return f"{value:.1f} [{low:.1f}, {high:.1f}]"
