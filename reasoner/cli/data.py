"""`reasoner data list` and `reasoner data show`: the problem sets."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from reasoner.cli.arguments import Parser, add_action, add_actions
from reasoner.console import print_result

if TYPE_CHECKING:
    from data import Problem


def add_arguments(command: Parser) -> None:
    """Add the actions of the command."""
    actions = add_actions(command, ("list", "show"))
    add_action(actions, "list", "list the problem sets by name", list_sets)
    show = add_action(actions, "show", "show problems of a set", show_problems)
    show.add_argument(
        "spec", metavar="SET", help="a name from `reasoner data list`, a file, a folder, ORG/NAME, or a mixture"
    )
    show.add_argument("-n", "--n", type=int, default=5, metavar="N", help="show the first N problems [5]")


def list_sets(args: argparse.Namespace) -> None:
    """Print name and meaning of every problem set."""
    from data.registry import describe

    rows = describe()
    width = max(len(name) for name, _ in rows)
    for name, meaning in rows:
        print_result(f"{name:<{width}}  {meaning}")


def show_problems(args: argparse.Namespace) -> None:
    """Print what was understood of each file and hub data set, then problems: id, subject and level, question, gold
    answer.
    """
    from data import load
    from data.registry import table_parts

    tables = {part: _print_preview(part) for part in table_parts(args.spec)}
    problems = tables[args.spec][: args.n] if args.spec in tables else load(args.spec, limit=args.n)
    for problem in problems:
        place = " ".join(str(part) for part in (problem.subject, problem.level) if part is not None)
        print_result(f"{problem.id}  {place}\n  {problem.question}\n  -> {problem.answer}")


def _print_preview(spec: str) -> list[Problem]:
    """Print what was understood of a file or a hub data set and what a run leaves out or refuses; return the rest."""
    from data.preview import preview_table
    from data.spec import parse_table
    from reasoner.rollouts.dataset import gold_fault

    preview = preview_table(table := parse_table(spec), gold_fault)
    print_result("\n".join([f"{spec}:", *(f"  {line}" for line in preview.lines())]))
    if table.faulty == "refuse" and preview.faults:
        print_result("  a run refuses it for rows that have no question or no answer; ?faulty=skip leaves them out")
    print_result("")
    return preview.problems
