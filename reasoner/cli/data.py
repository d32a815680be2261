"""`reasoner data`: the problem sets, their problems, and an audit of their gold answers."""

from __future__ import annotations

import argparse
from pathlib import Path

from reasoner.cli.arguments import Parser, add_action, add_actions, add_json
from reasoner.console import print_result


def add_arguments(command: Parser) -> None:
    """Add the actions of the command."""
    actions = add_actions(command, ("list", "show", "audit"))
    add_action(actions, "list", "list the problem sets by name", list_sets)
    show = add_action(actions, "show", "show problems of a set", show_problems)
    show.add_argument("spec", metavar="SET", help="a name from `reasoner data list`, or a .jsonl or .parquet file")
    show.add_argument("-n", "--n", type=int, default=5, metavar="N", help="show the first N problems [5]")
    audit = add_action(actions, "audit", "list golds that cannot be read or decided, or contradict others", audit_golds)
    audit.add_argument("specs", nargs="+", metavar="SET", help="names from `reasoner data list`, or files, as for show")
    audit.add_argument("-n", "--n", type=int, default=5, metavar="N", help="print the first N findings of a kind [5]")
    audit.add_argument("--out", type=Path, metavar="FILE", help="also write a report with all findings, in Markdown")
    add_json(audit, "all findings")


def list_sets(args: argparse.Namespace) -> None:
    """Print name and meaning of every problem set."""
    from data.registry import describe

    rows = describe()
    width = max(len(name) for name, _ in rows)
    for name, meaning in rows:
        print_result(f"{name:<{width}}  {meaning}")


def show_problems(args: argparse.Namespace) -> None:
    """Print problems of a set: id, subject and level, question, gold answer."""
    from data import load

    for problem in load(args.spec, limit=args.n):
        place = " ".join(str(part) for part in (problem.subject, problem.level) if part is not None)
        print_result(f"{problem.id}  {place}\n  {problem.question}\n  -> {problem.answer}")


def audit_golds(args: argparse.Namespace) -> None:
    """Print what is wrong or open with the golds of problem sets, by kind, and write it to --out and --json."""
    from data import Problem, load
    from reasoner.analysis.gold_audit import audit, sections, text, values
    from reasoner.analysis.report_format import as_markdown
    from reasoner.runs.io import write_text
    from reasoner.runs.json_files import write_json

    sources: dict[str, list[Problem]] = {}
    faults: dict[str, list[str]] = {}
    for spec in args.specs:
        faults[spec] = []
        sources[spec] = load(spec, on_fault=faults[spec].append)
    findings = audit(sources, faults)
    print_result(text(sources, findings, examples=args.n))
    if args.out is not None:
        write_text(args.out, as_markdown("Gold answers", sections(sources, findings)))
    if args.json is not None:
        write_json(args.json, values(findings))
