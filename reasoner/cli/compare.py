"""`reasoner compare`: the difference of two evaluations of the same problems."""

from __future__ import annotations

import argparse

from reasoner.cli.arguments import Parser, add_evals_folder, add_json, add_option


def add_arguments(command: Parser) -> None:
    command.set_defaults(handler=run_compare)
    add_option(command, "a", "an evaluation: its folder, or its name in the folder --out", metavar="A")
    add_option(command, "b", "the evaluation that A is compared with", metavar="B")
    add_evals_folder(command)
    add_option(command, "--force", "compare even if data, prompt or grader differ", kind=bool)
    add_json(command, "all differences and flipped problems")


def run_compare(args: argparse.Namespace) -> None:
    from reasoner.evals.compare import compare

    compare(args.a, args.b, out=args.out, force=args.force, json_file=args.json)
