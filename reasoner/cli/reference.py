"""`reasoner reference make`: the bands within which the metrics of a recipe run, from several seeds."""

from __future__ import annotations

import argparse
from pathlib import Path

from reasoner.cli.arguments import Parser, add_action, add_actions, add_option, add_runs_folder
from reasoner.console import print_result


def add_arguments(command: Parser) -> None:
    actions = add_actions(command, ("make",))
    action = add_action(actions, "make", "write the bands of runs that differ in their seeds alone", make)
    add_option(action, "names", "a run: its folder, or its name in the folder --runs", nargs="+", metavar="RUN")
    add_runs_folder(action)
    add_option(action, "--out", "file to write: for --run.reference", kind=Path, required=True)


def make(args: argparse.Namespace) -> None:
    from reasoner.runs.reference import make_reference, write_reference
    from reasoner.runs.run_dir import find_run

    reference = make_reference([find_run(name, args.runs) for name in args.names])
    write_reference(args.out, reference)
    print_result(f"{args.out}: {reference.label}, {reference.num_steps} steps")
