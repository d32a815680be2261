"""The files of a run's folder as the dashboard reads them: whole and of their shape, or a ValueError says why not."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

from reasoner.runs.health import Alarm
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
    parse,
    read_lines,
    read_object,
    shown,
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
_ALARM = {field.name: {"str": TEXT, "int": COUNT, "float": NUMBER}[str(field.type)] for field in fields(Alarm)}
_NOTE = {"rollout": TEXT, "star": FLAG, "note": TEXT, "time": NUMBER}
_FILES = ("lock", "tokenizer.json", "report.json", "report.txt", "index.sqlite", "index.sqlite.lock")
_FOLDERS = ("rollouts", "checkpoints", "heldout")


def check_run(run_dir: Path) -> None:
    """ValueError for the first file of the run that cannot be read, and for what is no file, or no folder, in the place
    of one. Shards and models are not opened: the index names those of a run that cannot be read.
    """
    read_settings(run_dir)
    read_versions(run_dir)
    read_notes(run_dir)
    for name in _FILES:
        is_file(run_dir / name)
    for name in _FOLDERS:
        path = run_dir / name
        if (path.exists() or path.is_symlink()) and not path.is_dir():
            raise ValueError(f"{path} is no directory")


def read_settings(run_dir: Path) -> dict[str, Any]:
    """config.json: `config`, and `origin` of each value."""
    path = run_dir / "config.json"
    if not is_file(path):
        raise ValueError(f"{run_dir} has no config.json")
    stored = read_object(path, {"config": OBJECT}, {"origin": OBJECT})
    check(stored["config"], path, {}, _SETTINGS)
    return stored


def read_versions(run_dir: Path) -> dict[str, Any]:
    return read_object(run_dir / "versions.json")


def read_metrics(run_dir: Path) -> list[dict[str, float]]:
    """The steps of a run in order, with what the clock said of each (as reasoner.runs.metrics.read_metrics)."""
    times = {line["step"]: line for line in _numbers(run_dir / "times.jsonl")}
    return [line | times.get(line["step"], {}) for line in _numbers(run_dir / "metrics.jsonl")]


def _numbers(path: Path) -> list[dict[str, float]]:
    lines = read_lines(path, {"step": COUNT})
    for number, line in enumerate(lines, 1):
        for name, value in line.items():
            if not is_number(value):
                raise ValueError(f"{path}, line {number} is damaged: {name} is {shown(value)}; it must be a number")
    return lines


def read_looks(run_dir: Path) -> list[dict[str, Any]]:
    """The validations on the selection problems (reasoner.runs.metrics.read_evals)."""
    path = run_dir / "evals.jsonl"
    looks = read_lines(path, {"step": COUNT, "sampled": OBJECT, "greedy": OBJECT})
    for number, look in enumerate(looks, 1):
        where = f"{path}, line {number}"
        check(look["sampled"], where, {"metrics": OBJECT, "problems": COUNT})
        check(look["greedy"], where, {"metrics": OBJECT})
        check(look["greedy"]["metrics"], where, {"pass@1": OBJECT})
        for way in ("sampled", "greedy"):
            check_each(look[way]["metrics"], where, {"value": NUMBER}, {"low": NUMBER, "high": NUMBER})
    return looks


def read_alarms(run_dir: Path) -> list[Alarm]:
    """Those that a run has told, the oldest first."""
    return [Alarm(**{name: line[name] for name in _ALARM}) for line in read_lines(run_dir / "alarms.jsonl", _ALARM)]


def read_notes(run_dir: Path) -> list[dict[str, Any]]:
    """The changes of stars and notes, the oldest first. A line that was torn in writing is left out."""
    path = run_dir / "notes.jsonl"
    changes = []
    for number, line in enumerate(path.read_bytes().split(b"\n") if is_file(path) else (), 1):
        try:
            change = parse(line, f"{path}, line {number}")
        except ValueError:
            if line[:1] in (b"{", b""):
                continue
            raise
        changes.append(check(change, f"{path}, line {number}", _NOTE))
    return changes
