"""`reasoner report`: a run's report."""

from __future__ import annotations

import argparse

from reasoner.cli.arguments import Parser, add_json, add_run, write_result
from reasoner.console import print_result


def add_arguments(command: Parser) -> None:
    command.set_defaults(handler=run_report)
    add_run(command)
    add_json(command, "the paths")


def run_report(args: argparse.Namespace) -> None:
    """Write report.md and report.png, and print their paths."""
    from reasoner.analysis.run_report import write_report
    from reasoner.runs.run_dir import find_run

    paths = [str(path) for path in write_report(find_run(args.name, args.runs))]
    print_result("\n".join(paths))
    write_result(args, paths)
