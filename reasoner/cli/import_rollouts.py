"""`reasoner import`: rollouts of another system as a run."""

from __future__ import annotations

import argparse
from pathlib import Path

from reasoner.cli.arguments import Parser, add_json, add_option, add_runs_folder, write_result
from reasoner.console import print_result


def add_arguments(command: Parser) -> None:
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
