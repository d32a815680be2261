"""The list of runs, and the curves and alarms of one run."""

from __future__ import annotations

import statistics
import time
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from app.pipelines import pipelines
from app.rollouts import verdict_counts
from app.run_files import check_run, read_alarms, read_metrics, read_settings, read_validations
from app.run_library import RunLibrary, is_live
from reasoner.runs.health import active_alarms
from reasoner.runs.index_queries import step_rows
from reasoner.runs.metric_names import METRICS, TIMES

_MOST_STEPS = 4_000  # points per curve; of a longer run only every second step, or every third, ... is sent
_SPARK = 60  # points of a sparkline
_START_SECONDS = 120.0  # seconds without a change after which an unlocked run without steps counts as stopped


def runs(library: RunLibrary) -> dict[str, Any]:
    """List the runs and the pipelines, the newest first. What cannot be read has the reason."""
    return {
        "folder": str(library.runs_dir),
        "runs": [_row(library, path) for path in library.runs()],
        "pipelines": pipelines(library),
    }


def _row(library: RunLibrary, run_dir: Path) -> dict[str, Any]:
    row: dict[str, Any] = {"name": run_dir.name, "fault": None}
    try:
        library.check_links(run_dir)
        return row | _state(run_dir)
    except (ValueError, OSError) as error:
        return row | {"status": "damaged", "fault": str(error)}


def _state(run_dir: Path) -> dict[str, Any]:
    """A run's columns in the list. ValueError or OSError for a run that cannot be read."""
    check_run(run_dir)
    cfg = read_settings(run_dir)["config"]
    figures = _figures(run_dir, tuple(map(_changed, (run_dir / name for name in _LOGS))))
    num_steps = figures.num_steps
    status = _status(run_dir, num_steps, cfg)
    num_left = cfg.get("steps", num_steps) - num_steps
    versions = run_dir / "versions.json"  # written when the run starts
    return {
        "status": status,
        "model": cfg.get("model"),
        "algorithm": "sft" if cfg.get("sft.data") else cfg.get("algo.name") or cfg.get("imported"),
        "step": num_steps,
        "steps": cfg.get("steps"),
        "started_at": versions.stat().st_mtime if versions.is_file() else None,
        "seconds_left": num_left * figures.seconds if status == "live" and figures.seconds is not None else None,
        "metrics": figures.validation,
        "correct": figures.correct,
        "alarms": figures.num_alarms,
    }


_LOGS = ("metrics.jsonl", "times.jsonl", "evals.jsonl", "alarms.jsonl")


@dataclass(frozen=True, slots=True)
class _Figures:
    """What the list of runs shows of a run's logs."""

    num_steps: int
    seconds: float | None  # of a step, the median of the last twenty
    validation: dict[str, float]  # the metrics of the last one
    correct: list[float]
    num_alarms: int


def _changed(path: Path) -> tuple[int, int]:
    """Bytes and modification time of a file; zeros where there is none."""
    try:
        stat = path.stat()
    except OSError:
        return 0, 0
    return stat.st_size, stat.st_mtime_ns


@lru_cache(maxsize=4096)
def _figures(run_dir: Path, _states: tuple[tuple[int, int], ...]) -> _Figures:
    """Read a run's logs, once for each of their states: those of a long run take a second."""
    metrics, validations, alarms = read_metrics(run_dir), read_validations(run_dir), read_alarms(run_dir)
    correct = [line["correct"] for line in metrics if "correct" in line]
    latest = validations[-1]["sampled"]["metrics"] if validations else {}
    seconds = [line["time/step"] for line in metrics[-20:] if "time/step" in line]
    return _Figures(
        num_steps=int(metrics[-1]["step"]) + 1 if metrics else 0,
        seconds=statistics.median(seconds) if seconds else None,
        validation={name: estimate["value"] for name, estimate in latest.items()},
        correct=correct[:: max(1, len(correct) // _SPARK)],
        num_alarms=len(alarms),
    )


def _status(run_dir: Path, num_steps: int, cfg: dict[str, Any]) -> str:
    """The state of a run: live, finished, starting, stopped (killed or failed), or imported."""
    if "imported" in cfg:
        return "imported"
    if is_live(run_dir):
        return "live"
    if num_steps >= cfg.get("steps", 1) > 0 or (run_dir / "report.json").is_file():
        return "finished"
    newest = max(path.lstat().st_mtime for path in run_dir.iterdir())
    return "starting" if num_steps == 0 and time.time() - newest < _START_SECONDS else "stopped"


def overview(library: RunLibrary, run: str, since: int = 0) -> dict[str, Any]:
    """Settings, curves and alarms of a run. `since`: the first step of the curves, so that an open page fetches only
    new steps.
    """
    run_dir = library.run(run)
    metrics, validations = read_metrics(run_dir), read_validations(run_dir)
    steps: list[dict[str, Any]] = []
    if (run_dir / "rollouts").is_dir():
        with library.index(run) as index:
            steps = step_rows(index, first_step=since)
    return {
        "row": _row(library, run_dir),
        "settings": read_settings(run_dir),
        "metric_names": [asdict(row) for row in (METRICS | TIMES).values()],
        "metrics": _thin_out([line for line in metrics if line["step"] >= since]),
        "validations": [_validation(validation) for validation in validations if validation["step"] >= since],
        "steps": _thin_out(steps),
        "verdicts": verdict_counts(steps),
        "alarms": _alarms(run_dir, metrics),
    }


def _thin_out(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """At most _MOST_STEPS lines at equal distances, always with the last one."""
    return lines[:: -max(1, -(-len(lines) // _MOST_STEPS))][::-1]


def _validation(validation: dict[str, Any]) -> dict[str, Any]:
    """The fields of a validation that the pages show."""
    sampled = validation["sampled"]
    greedy = validation["greedy"]["metrics"]["pass@1"]
    return {
        "step": validation["step"],
        "metrics": sampled["metrics"],
        "greedy": greedy,
        "problems": sampled["problems"],
    }


def _alarms(run_dir: Path, metrics: list[dict[str, float]]) -> list[dict[str, Any]]:
    """The recorded alarms, the newest first, each with `is_active`: whether its check still fails."""
    active_names = {alarm.name for alarm in active_alarms(metrics)}
    return [asdict(alarm) | {"is_active": alarm.name in active_names} for alarm in reversed(read_alarms(run_dir))]
