"""`reasoner data list` and `reasoner data show`: the problem sets."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from reasoner.cli.arguments import Parser, add_action, add_actions, add_json, write_result
from reasoner.console import print_result


def add_arguments(command: Parser) -> None:
    """Add the actions of the command."""
    actions = add_actions(command, ("list", "show"))
    add_json(add_action(actions, "list", "list the problem sets by name", list_sets), "the list")
    show = add_action(actions, "show", "show problems of a set", show_problems)
    show.add_argument("spec", metavar="SET", help="a name from `reasoner data list`, or a .jsonl or .parquet file")
    show.add_argument("-n", "--n", type=int, default=5, metavar="N", help="show the first N problems [5]")
    add_json(show, "the problems")


def list_sets(args: argparse.Namespace) -> None:
    """Print name and meaning of every problem set."""
    from data.registry import describe

    rows = describe()
    width = max(len(name) for name, _ in rows)
    for name, meaning in rows:
        print_result(f"{name:<{width}}  {meaning}")
    write_result(args, [{"name": name, "meaning": meaning} for name, meaning in rows])


def show_problems(args: argparse.Namespace) -> None:
    """Print problems of a set: id, subject and level, question, gold answer."""
    from data import load

    problems = load(args.spec, limit=args.n)
    for problem in problems:
        place = " ".join(str(part) for part in (problem.subject, problem.level) if part is not None)
        print_result(f"{problem.id}  {place}\n  {problem.question}\n  -> {problem.answer}")
    write_result(args, [asdict(problem) for problem in problems])
