"""Readers of a run folder's files for the dashboard. They check every field that the pages use, and raise ValueError
with the reason when a file is damaged.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reasoner.runs import alarms, run_dir
from reasoner.runs.json_files import (
    COUNT,
    FLAG,
    NUMBER,
    OBJECT,
    TEXT,
    check,
    check_each,
    is_file,
    is_number,
    read_lines,
    read_object,
    show,
)

_SETTINGS = {
    "steps": COUNT,
    "model": TEXT,
    "algo.name": TEXT,
    "imported": TEXT,
    "prompt.style": TEXT,
    "sampling.temperature": NUMBER,
    "sampling.max_tokens": NUMBER,
}

_NOTE = {"rollout": TEXT, "star": FLAG, "note": TEXT, "time": NUMBER}
_FILES = ("lock", "tokenizer.json", "report.json", "report.txt", "index.sqlite", "index.sqlite.lock")
_FOLDERS = ("rollouts", "checkpoints", "heldout")


def check_run(folder: Path) -> None:
    """Raise ValueError for the first file or folder of the run that cannot be read or is of the wrong kind.

    Shards and models are not opened: the index names the shards that cannot be read.
    """
    read_settings(folder)
    read_versions(folder)
    read_notes(folder)
    for name in _FILES:
        is_file(folder / name)
    for name in _FOLDERS:
        path = folder / name
        if (path.exists() or path.is_symlink()) and not path.is_dir():
            raise ValueError(f"{path} is not a directory")


def read_settings(folder: Path) -> dict[str, Any]:
    """config.json as reasoner.runs.run_dir.read_settings reads it, with the settings that the pages show checked."""
    settings = run_dir.read_settings(folder)
    check(settings["config"], folder / "config.json", {}, _SETTINGS)
    return settings


def read_versions(folder: Path) -> dict[str, Any]:
    """versions.json: the version of each package; {} when there is no file."""
    return read_object(folder / "versions.json")


def read_metrics(folder: Path) -> list[dict[str, float]]:
    """The metrics and times of each step, in order, as reasoner.runs.metrics.read_metrics but with checked numbers."""
    times = {line["step"]: line for line in _numbers(folder / "times.jsonl")}
    return [line | times.get(line["step"], {}) for line in _numbers(folder / "metrics.jsonl")]


def _numbers(path: Path) -> list[dict[str, float]]:
    lines = read_lines(path, {"step": COUNT})
    for number, line in enumerate(lines, 1):
        for name, value in line.items():
            if not is_number(value):
                raise ValueError(f"{path}, line {number} is damaged: {name} is {show(value)}; it must be a number")
    return lines


def read_validations(folder: Path) -> list[dict[str, Any]]:
    """The validations on the validation problems, as reasoner.runs.metrics.read_evals but with checked fields."""
    path = folder / "evals.jsonl"
    validations = read_lines(path, {"step": COUNT, "sampled": OBJECT, "greedy": OBJECT})
    for number, validation in enumerate(validations, 1):
        where = f"{path}, line {number}"
        check(validation["sampled"], where, {"metrics": OBJECT, "problems": COUNT})
        check(validation["greedy"], where, {"metrics": OBJECT})
        check(validation["greedy"]["metrics"], where, {"pass@1": OBJECT})
        measures = check(validation.get("measures", {}), where, {})
        check(measures, where, dict.fromkeys(measures, NUMBER))
        for way in ("sampled", "greedy"):
            check_each(validation[way]["metrics"], where, {"value": NUMBER}, {"low": NUMBER, "high": NUMBER})
    return validations


def read_alarms(folder: Path) -> list[alarms.Alarm]:
    """The alarms of a run, the oldest first. A torn last line is left out: the run may be writing it."""
    return alarms.read_alarms(folder, torn="last")


def read_notes(folder: Path) -> list[dict[str, Any]]:
    """The changes of stars and notes, the oldest first. Lines that were torn in writing are left out."""
    return read_lines(folder / "notes.jsonl", _NOTE, torn="any")
