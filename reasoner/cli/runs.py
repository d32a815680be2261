"""`reasoner runs`: list the runs of a folder, show one. `reasoner import`: rollouts of others as a run."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reasoner.cli.arguments import (
    RUNS,
    Parser,
    add_action,
    add_actions,
    add_json,
    add_option,
    add_run,
    add_runs_folder,
    print_lines,
    write_result,
)
from reasoner.console import print_result


def add_arguments(command: Parser) -> None:
    """Add the actions of the command; without one the runs are listed."""
    command.set_defaults(handler=list_runs)
    _add_list(command)
    actions = add_actions(command, ("list", "show"))
    _add_list(add_action(actions, "list", "list the runs, the newest first", list_runs))
    show = add_action(actions, "show", "show the state of a run and its last figures", show_run)
    add_run(show)
    add_json(show, "the state, the last metrics and the validations")


def _add_list(parser: Parser) -> None:
    add_runs_folder(parser)
    add_json(parser, "the list")


def list_runs(args: argparse.Namespace) -> None:
    from app.overview import runs
    from app.run_library import RunLibrary
    from reasoner.evals.tables import align_rows

    is_new = args.runs == RUNS and not args.runs.exists()  # no run was ever started here
    if not is_new and not args.runs.is_dir():
        raise ValueError(f"there is no folder {args.runs}; --runs names the folder of the runs")
    rows = [] if is_new else runs(RunLibrary(args.runs, args.runs))["runs"]
    header = ["run", "state", "model", "algorithm", "step", "correct", "pass@1", "alarms", "started"]
    table = "\n".join(align_rows([header, *map(_cells, rows)]))
    print_result(table if rows else f"no runs in {args.runs} yet; begin with: reasoner train --model base")
    for row in rows:
        if row["fault"]:
            print_result(f"{row['name']}: {row['fault']}")
        if row["status"] == "trained":
            print_result(f"{row['name']}: all steps done; its final evaluation is missing, and --resume makes it")
    write_result(args, rows)


def _cells(row: Mapping[str, Any]) -> list[str]:
    """The columns of a run in the list; "-" where it has no such figure."""
    from reasoner.evals.tables import percent

    texts = [row["name"], row["status"]]
    if row["fault"]:
        return [*texts, *["-"] * 7]
    model = Path(row["model"]).name if row["model"] else "-"
    last = row["correct"][-1] if row["correct"] else None
    return [
        *texts,
        model,
        row["algorithm"] or "-",
        f"{row['step']}/{row['steps']}" if row["steps"] else str(row["step"]),
        percent(last),
        percent(row["metrics"].get("pass@1")),
        str(row["alarms"]),
        "-" if row["started_at"] is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(row["started_at"])),
    ]


def show_run(args: argparse.Namespace) -> None:
    from app.overview import run_row
    from app.run_library import RunLibrary
    from reasoner.runs.metrics import read_evals, read_metrics
    from reasoner.runs.run_dir import find_run, read_settings, stage_of

    run_dir = find_run(args.name, args.runs).resolve()
    row = run_row(RunLibrary(run_dir.parent, run_dir.parent), run_dir)
    if row["fault"]:
        raise ValueError(row["fault"])
    metrics, evals = read_metrics(run_dir)[-1:], read_evals(run_dir)
    checkpoints = sorted(path.name for path in (run_dir / "checkpoints").glob("*") if path.is_dir())
    lines = {
        "folder": str(run_dir),
        "state": row["status"],
        "stage": stage_of(read_settings(run_dir)),
        "model": row["model"] or "-",
        "algorithm": row["algorithm"] or "-",
        "steps": f"{row['step']} of {row['steps']}" if row["steps"] else str(row["step"]),
        "last step": _last_step(metrics[0]) if metrics else "-",
        "validation": ", ".join(_validation(one) for one in evals[:1] + evals[1:][-1:])
        or "-",  # the first and the last
        "checkpoints": ", ".join(checkpoints) or "-",
        "alarms": str(row["alarms"]),
        "disk": f"{_bytes(run_dir) / 2**20:,.1f} MiB",
    }
    print_lines(lines, 12)
    write_result(args, row | {"folder": str(run_dir), "last_step": metrics[0] if metrics else None, "evals": evals})


def _last_step(line: Mapping[str, float]) -> str:
    """The metrics of a step that the console shows after each."""
    from reasoner.evals.tables import percent
    from reasoner.runs.metric_names import METRICS

    shown = [metric for metric in METRICS.values() if "console" in metric.places and metric.name in line]
    texts = (percent(line[one.name]) if one.unit == "share" else f"{line[one.name]:.3g}" for one in shown)
    return ", ".join(f"{metric.label} {text}" for metric, text in zip(shown, texts, strict=True))


def _validation(one: Mapping[str, Any]) -> str:
    estimate = one["sampled"]["metrics"]["pass@1"]
    low, high = (100 * estimate[side] for side in ("low", "high"))
    return f"pass@1 {100 * estimate['value']:.1f} % [{low:.1f}, {high:.1f}] after {one['step']} steps"


def _bytes(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir())


def add_import_arguments(command: Parser) -> None:
    command.set_defaults(handler=run_import)
    about = "trl, or rows: .parquet or .jsonl files with the columns of docs/DASHBOARD.md"
    add_option(command, "system", about, metavar="SYSTEM")
    add_option(command, "source", "the folder of the files; for rows also a file", kind=Path, metavar="FOLDER")
    add_option(command, "--name", "name of the new run [the folder's name]")
    add_runs_folder(command)
    add_json(command, "the run's folder and the number of rollouts")


def run_import(args: argparse.Namespace) -> None:
    from reasoner.runs.importers import import_run

    run_dir = args.runs / (args.name or args.source.resolve().name)
    number = import_run(args.system, args.source, run_dir)
    print_result(f"{number:,} rollouts: {run_dir}")
    write_result(args, {"run": str(run_dir), "rollouts": number})
