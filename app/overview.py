"""The list of runs, and the curves and alarms of one run."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any

from app.arguments import Count
from app.notes import notes_of
from app.pipelines import pipelines
from app.run_library import RunLibrary
from reasoner.runs.health import active_alarms, read_alarms
from reasoner.runs.json_files import is_file, read_object
from reasoner.runs.metric_names import METRICS, TIMES
from reasoner.runs.metrics import read_evals, read_heldout, read_metrics
from reasoner.runs.reference import compare_run
from reasoner.runs.run_dir import read_settings, stage_of
from reasoner.runs.run_state import run_state
from reasoner.runs.sync_certificate import read_certificate

_MOST_STEPS = 4_000  # points per curve; of a longer run only every second step, or every third, ... is sent
_SPARK = 60  # points of a sparkline


def runs(library: RunLibrary) -> dict[str, Any]:
    """List the runs and the pipelines, the newest first. What cannot be read has the reason."""
    return {
        "folder": str(library.runs_dir),
        "runs": [run_row(library, path) for path in library.runs()],
        "pipelines": pipelines(library),
    }


def run_row(library: RunLibrary, run_dir: Path) -> dict[str, Any]:
    """A run in the list of runs; one that cannot be read has the reason."""
    row: dict[str, Any] = {"name": run_dir.name, "fault": None}
    try:
        library.check_links(run_dir)
        return row | _state(run_dir)
    except (ValueError, OSError) as error:
        return row | {"status": "damaged", "fault": str(error)}


def _state(run_dir: Path) -> dict[str, Any]:
    """A run's columns in the list. ValueError or OSError for a run that cannot be read."""
    _check_run(run_dir)
    stored = read_settings(run_dir)
    cfg, stage = stored["config"], stage_of(stored)
    figures = _figures(run_dir, _states(run_dir, (*_LOGS, "report.json")))
    num_steps = int(figures.last["step"]) + 1 if figures.last else 0
    status = run_state(run_dir, cfg, figures.last)
    num_left = cfg.get("steps", num_steps) - num_steps
    if (budget := cfg.get("max_train_tokens")) and (num_tokens := figures.last.get("num_tokens")):
        num_left = max(0.0, min(num_left, num_steps * (budget / num_tokens - 1)))
    versions = run_dir / "versions.json"  # written when the run starts
    return {
        "status": status,
        "model": cfg.get("model"),
        "algorithm": cfg.get("algo.name") or cfg.get("imported") if stage == "rl" else stage,
        "step": num_steps,
        "steps": cfg.get("steps"),
        "started_at": versions.stat().st_mtime if versions.is_file() else None,
        "seconds_left": num_left * figures.seconds if status == "live" and figures.seconds is not None else None,
        "metrics": figures.scores,
        "correct": figures.correct,
        "alarms": figures.num_alarms,
    }


_FILES = ("lock", "tokenizer.json", "reference.json", "report.json", "report.txt")
_FOLDERS = ("rollouts", "checkpoints", "heldout")


def _check_run(folder: Path) -> None:
    """Raise ValueError for the first file or folder of the run that cannot be read or is of the wrong kind.

    Shards and models are not opened: the pages name the shards that cannot be read.
    """
    read_settings(folder)
    read_object(folder / "versions.json")
    read_certificate(folder)
    notes_of(folder)
    for name in _FILES:
        is_file(folder / name)
    for name in _FOLDERS:
        path = folder / name
        if (path.exists() or path.is_symlink()) and not path.is_dir():
            raise ValueError(f"{path} is not a directory")


_LOGS = ("metrics.jsonl", "times.jsonl", "evals.jsonl", "alarms.jsonl")
_States = tuple[tuple[int, int], ...]  # of files: bytes and modification time


@dataclass(frozen=True, slots=True)
class _Figures:
    """What the list of runs shows of a run's logs."""

    last: dict[str, float]  # line of metrics.jsonl; empty without one
    seconds: float | None  # of a step, the median of the last twenty
    scores: dict[str, float]  # the metrics on the held-out problems, or before they are there of the last validation
    correct: list[float]
    num_alarms: int


@dataclass(frozen=True, slots=True)
class _Curves:
    """The lines of metrics.jsonl and times.jsonl, each with `total_seconds` up to its step."""

    lines: list[dict[str, float]]
    active_alarms: frozenset[str]  # names of the checks that fail after the last line


def _states(run_dir: Path, names: Sequence[str]) -> _States:
    """Bytes and modification time of each file of a run; zeros where there is none."""
    return tuple(_state_of(run_dir / name) for name in names)


def _state_of(path: Path) -> tuple[int, int]:
    try:
        stat = path.stat()
    except OSError:
        return 0, 0
    return stat.st_size, stat.st_mtime_ns


def _curves(run_dir: Path) -> _Curves:
    """Read a run's metrics, once for each state of their files: those of a long run take a second."""
    return _curves_in(run_dir, _states(run_dir, _LOGS[:2]))


@lru_cache(maxsize=8)
def _curves_in(run_dir: Path, _states: _States) -> _Curves:
    metrics = read_metrics(run_dir)
    seconds = accumulate(line.get("time/step", 0.0) for line in metrics)
    lines = [line | {"total_seconds": total} for line, total in zip(metrics, seconds, strict=True)]
    return _Curves(lines, frozenset(alarm.name for alarm in active_alarms(metrics)))


@lru_cache(maxsize=4096)
def _figures(run_dir: Path, _states: _States) -> _Figures:
    """Read what the list of runs shows, once for each state of a run's logs."""
    metrics, validations, alarms = _curves(run_dir).lines, read_evals(run_dir), read_alarms(run_dir, torn="last")
    correct = [line["correct"] for line in metrics if "correct" in line]
    latest = read_heldout(run_dir).get("after") or (validations[-1] if validations else {"sampled": {"metrics": {}}})
    seconds = [line["time/step"] for line in metrics[-20:] if "time/step" in line]
    return _Figures(
        last=metrics[-1] if metrics else {},
        seconds=statistics.median(seconds) if seconds else None,
        scores={name: estimate["value"] for name, estimate in latest["sampled"]["metrics"].items()},
        correct=correct[:: -max(1, len(correct) // _SPARK)][::-1],  # with the last one
        num_alarms=len(alarms),
    )


def overview(library: RunLibrary, run: str, since: Count = 0) -> dict[str, Any]:
    """Settings, curves and alarms of a run. `since`: the first step of the curves, so that an open page fetches only
    new steps.
    """
    run_dir = library.run(run)
    certificate = read_certificate(run_dir)
    steps: list[dict[str, Any]] = []
    if (run_dir / "rollouts").is_dir():
        table = library.rollouts(run)
        steps = [row for row in table.steps if row["step"] >= since]
    return {
        "row": run_row(library, run_dir),
        "settings": read_settings(run_dir),
        "reference": _reference(run_dir),
        "weight_sync": None if certificate is None else str(certificate),
        "metric_names": [asdict(row) for row in (METRICS | TIMES).values()],
        **curves(run_dir, since),
        "heldout": {side: _evals(one) for side, one in read_heldout(run_dir).items()},
        "steps": _thin_out(steps),
        "alarms": _alarms(run_dir, _curves(run_dir)),
    }


def curves(run_dir: Path, since: int = 0) -> dict[str, Any]:
    """The metrics and the validations of a run, from this step on."""
    return {
        "metrics": _thin_out([line for line in _curves(run_dir).lines if line["step"] >= since]),
        "validations": [{"step": one["step"]} | _evals(one) for one in read_evals(run_dir) if one["step"] >= since],
    }


def _reference(run_dir: Path) -> dict[str, Any] | None:
    """The bands that the run is compared with, and whether it is within them so far; None where it has none."""
    try:
        comparison = compare_run(run_dir, _curves(run_dir).lines)
    except ValueError as error:  # its copy of a reference is damaged
        return {"text": str(error), "is_inside": False, "bands": {}}
    if comparison is None:
        return None
    bands = {name: asdict(band) for name, band in comparison.reference.bands.items()}
    return {"text": str(comparison), "is_inside": comparison.is_inside, "bands": bands}


def _thin_out(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """At most _MOST_STEPS lines at equal distances that end with the last one, and the first one before them."""
    thinned = lines[:: -max(1, -(-len(lines) // _MOST_STEPS))][::-1]
    return thinned if thinned[:1] == lines[:1] else [lines[0], *thinned]


def _evals(evals: dict[str, Any]) -> dict[str, Any]:
    """The fields of a validation, or of the held-out problems, that the pages show."""
    return {
        "metrics": evals["sampled"]["metrics"],
        "greedy": evals["greedy"]["metrics"]["pass@1"],
        "measures": {name: {"value": value} for name, value in evals.get("measures", {}).items()},
        "problems": evals["sampled"]["problems"],
    }


def _alarms(run_dir: Path, curves: _Curves) -> list[dict[str, Any]]:
    """The recorded alarms, the newest first, each with `is_active`: whether its check still fails."""
    return [
        asdict(alarm) | {"is_active": alarm.name in curves.active_alarms}
        for alarm in reversed(read_alarms(run_dir, torn="last"))
    ]
