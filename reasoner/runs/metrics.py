"""Read and cut a run's metrics.jsonl, times.jsonl and evals.jsonl (reasoner.trainer.metrics_logger writes them).

Everything measured by a clock is in times.jsonl alone, so two runs with the same seed have byte-identical
metrics.jsonl files.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reasoner.runs.io import write_text
from reasoner.runs.json_files import (
    COUNT,
    NUMBER,
    OBJECT,
    check,
    check_each,
    is_number,
    read_lines,
    read_object,
    scan_steps,
    show,
)

FILES = ("metrics.jsonl", "times.jsonl", "evals.jsonl")


def read_metrics(run_dir: Path) -> list[dict[str, float]]:
    """The METRICS and TIMES (reasoner.runs.metric_names) of each step of a run, in order; `step` counts from 0."""
    times = {line["step"]: line for line in _numbers(run_dir / "times.jsonl")}
    return [line | times.get(line["step"], {}) for line in _numbers(run_dir / "metrics.jsonl")]


def read_evals(run_dir: Path) -> list[dict[str, Any]]:
    """The validations of a run: `step` (steps done), `sampled`, `greedy` (reasoner.evals.result.EvalResult.to_dict)."""
    path = run_dir / "evals.jsonl"
    validations = read_lines(path, {"step": COUNT, "sampled": OBJECT, "greedy": OBJECT})
    for number, validation in enumerate(validations, 1):
        where = f"{path}, line {number}"
        _check_evals(validation, where)
        measures = check(validation.get("measures", {}), where, {})
        check(measures, where, dict.fromkeys(measures, NUMBER))
    return validations


def read_heldout(run_dir: Path) -> dict[str, dict[str, Any]]:
    """The evaluations of the held-out problems `before` and `after` a run, each with `sampled` and `greedy` as in
    read_evals; empty where there are none.
    """
    path = run_dir / "report.json"
    report = read_object(path, {}, dict.fromkeys(_SIDES, OBJECT))
    if _SIDES[1] not in report:
        return {}
    for side in _SIDES:
        _check_evals(check(report.get(side), path, {"sampled": OBJECT, "greedy": OBJECT}), path)
    return {side: report[side] for side in _SIDES}


_SIDES = ("before", "after")


def _check_evals(evals: Mapping[str, Any], where: object) -> None:
    check(evals["sampled"], where, {"metrics": OBJECT, "problems": COUNT})
    check(evals["greedy"], where, {"metrics": OBJECT})
    check(evals["greedy"]["metrics"], where, {"pass@1": OBJECT})
    for way in ("sampled", "greedy"):
        check_each(evals[way]["metrics"], where, {"value": NUMBER}, {"low": NUMBER, "high": NUMBER})


def _numbers(path: Path) -> list[dict[str, float]]:
    """The lines of a file of numbers, without a torn last one. ValueError for any other damaged line."""
    lines = read_lines(path, {"step": COUNT})
    for number, line in enumerate(lines, 1):
        for name, value in line.items():
            if not is_number(value):
                raise ValueError(f"{path}, line {number} is damaged: {name} is {show(value)}; it must be a number")
    return lines


def lacks_newline(path: Path) -> bool:
    """Whether the file's last line is complete except for its newline."""
    lines = scan_steps(path)
    return bool(lines) and lines[-1][1] is not None and not path.read_bytes().endswith(b"\n")


def metrics_prefix(run_dir: Path) -> list[tuple[str, dict[str, Any]]]:
    """(text, object) of the lines of metrics.jsonl for steps 0, 1, 2, ... up to the first that is missing, damaged or
    out of order.
    """
    prefix: list[tuple[str, dict[str, Any]]] = []
    for text, line in scan_steps(run_dir / "metrics.jsonl"):
        if line is None or line["step"] != len(prefix):
            break
        prefix.append((text, line))
    return prefix


def truncate_logs(run_dir: Path, start: int) -> None:
    """Cut the files of FILES back to the first `start` steps, and to validations after at most so many; a run that
    begins anew validates before its first step again. Each file is rewritten whole, without damaged lines.
    """
    texts_of = {"metrics": [text for text, _ in metrics_prefix(run_dir)[:start]]}
    for name, last in (("times", start - 1), ("evals", start or -1)):
        lines = scan_steps(run_dir / f"{name}.jsonl")
        texts_of[name] = [text for text, line in lines if line is not None and line["step"] <= last]
    for name, texts in texts_of.items():
        write_text(run_dir / f"{name}.jsonl", "".join(f"{text}\n" for text in texts))
