"""`reasoner compare`: the difference of two evaluations of the same problems."""

from __future__ import annotations

import argparse

from reasoner.cli.arguments import Parser, add_evals_folder, add_json


def add_arguments(command: Parser) -> None:
    """Add the arguments of the command."""
    command.set_defaults(handler=run_compare)
    command.add_argument("a", metavar="A", help="an evaluation: its folder, or its name in the folder --out")
    command.add_argument("b", metavar="B", help="the evaluation that A is compared with")
    add_evals_folder(command)
    command.add_argument("--force", action="store_true", help="compare even if data, prompt or grader differ [off]")
    add_json(command, "all differences and flipped problems")


def run_compare(args: argparse.Namespace) -> None:
    """Print the comparison."""
    from reasoner.evals.compare import compare

    compare(args.a, args.b, out=args.out, force=args.force, json_file=args.json)
