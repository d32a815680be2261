"""`reasoner data`: the problem sets, their problems, an audit of their gold answers, and contamination."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from reasoner.cli.arguments import Parser, add_action, add_actions, add_json, add_option, write_result
from reasoner.console import print_result

if TYPE_CHECKING:
    from data import Problem
    from data.spec import Part


def add_arguments(command: Parser) -> None:
    actions = add_actions(command, ("list", "show", "audit", "contamination"))
    names = add_action(actions, "list", "list the problem sets by name", list_sets)
    add_option(names, "--gym", "list the tasks of reasoning-gym with their levels instead", kind=bool)
    add_json(names, "the list")
    show = add_action(actions, "show", "show problems of a set", show_problems)
    about = "a name from `reasoner data list`, a file, a folder, ORG/NAME, or a mixture"
    add_option(show, "spec", about, metavar="SET")
    _add_limit(show, "show the first N problems", 5)
    add_json(show, "the problems")
    audit = add_action(actions, "audit", "list golds that cannot be read or decided, or contradict others", audit_golds)
    add_option(audit, "specs", "names from `reasoner data list`, or files, as for show", nargs="+", metavar="SET")
    _add_limit(audit, "print the first N findings of a kind", 5)
    add_json(audit, "all findings")
    about = "list the problems of an evaluation set that stand in a training set, exactly or nearly (docs/DATA.md)"
    contamination = add_action(actions, "contamination", about, show_contamination)
    add_option(contamination, "training", "the training set, named as --data", metavar="TRAIN")
    add_option(contamination, "evaluation", "the evaluation set, named as --data", metavar="EVAL")
    _add_limit(contamination, "show the first N pairs", 10)
    add_json(contamination, "all pairs")


def _add_limit(action: Parser, about: str, default: int) -> None:
    action.add_argument("-n", "--n", type=int, default=default, metavar="N", help=f"{about} [{default}]")


def list_sets(args: argparse.Namespace) -> None:
    """Print name and meaning of every problem set, or name and levels of every task of reasoning-gym."""
    from data.environments.spec import gym_tasks
    from data.registry import describe

    rows = [(f"gym:{task}", levels) for task, levels in gym_tasks()] if args.gym else describe()
    width = max(len(name) for name, _ in rows)
    for name, meaning in rows:
        print_result(f"{name:<{width}}  {meaning}")
    write_result(args, [{"name": name, "meaning": meaning} for name, meaning in rows])


def show_problems(args: argparse.Namespace) -> None:
    """Print what was understood of each file and hub data set, then problems with their gold answers."""
    from data import load
    from data.spec import parts

    tables = {part.text: _print_preview(part) for part in parts(args.spec) if part.kind in ("file", "hub")}
    if empty := [part for part, problems in tables.items() if not problems]:
        raise ValueError(f"{empty[0]} holds no problems")
    problems = tables[args.spec][: args.n] if args.spec in tables else load(args.spec, limit=args.n)
    for problem in problems:
        place = " ".join(str(part) for part in (problem.subject, problem.level) if part is not None)
        print_result(f"{problem.id}  {place}\n  {problem.question}\n  -> {problem.answer}")
    values = json.dumps([asdict(problem) for problem in problems], default=str)  # a column may hold dates or bytes
    write_result(args, json.loads(values))


def audit_golds(args: argparse.Namespace) -> None:
    """Print what is wrong or open with the golds of problem sets, by kind, and write all of it to --json."""
    from data import load
    from data.table_rows import RowFault
    from reasoner.analysis.gold_audit import audit, text

    sources: dict[str, list[Problem]] = {}
    faults: dict[str, list[str]] = {}
    for spec in args.specs:
        row_faults: list[RowFault] = []
        sources[spec] = load(spec, on_fault=row_faults.append)
        faults[spec] = list(map(str, row_faults))
    findings = audit(sources, faults)
    print_result(text(sources, findings, examples=args.n))
    write_result(args, [asdict(finding) for finding in findings])


def _print_preview(part: Part) -> list[Problem]:
    """Print what was understood of a file or a hub data set and what a run leaves out or refuses; return the rest."""
    from data import load
    from data.preview import preview_table
    from reasoner.rollouts.dataset import gold_fault

    preview = preview_table(part, gold_fault)
    print_result("\n".join([f"{part.text}:", *(f"  {line}" for line in preview.lines())]))
    if part.options.get("faulty") != "skip" and preview.faults:
        print_result("  a run refuses it for rows that have no question or no answer; ?faulty=skip leaves them out")
    if part.subset is not None:
        usable = {problem.id for problem in preview.problems}  # a set is divided before bad golds are left out
        preview.problems = [one for one in load(part.text, on_fault=lambda _: None) if one.id in usable]
        print_result(f"  {part.text} names {len(preview.problems):,} of these problems")
    print_result("")
    return preview.problems


def show_contamination(args: argparse.Namespace) -> None:
    """Print how many problems of the evaluation set stand in the training set, and the pairs."""
    from data import load
    from data.overlap import describe_overlaps, find_overlaps
    from data.registry import evaluation_spec

    evaluation = load(evaluation_spec(args.evaluation))
    overlaps = find_overlaps(load(args.training), evaluation)
    print_result(f"{args.evaluation} in {args.training}: {describe_overlaps(overlaps, len(evaluation))}")
    for overlap in overlaps[: args.n]:
        kind = "exact" if overlap.is_exact else f"near, {overlap.share:.0%} of the 5-word runs"
        print_result(f"\n{overlap.evaluation.id} and {overlap.training.id}: {kind}")
        print_result(f"  evaluation: {overlap.evaluation.question}\n  training:   {overlap.training.question}")
    if len(overlaps) > args.n:
        print_result(f"\nand {len(overlaps) - args.n:,} more: --n {len(overlaps)}")
    pairs = [{"evaluation": o.evaluation.id, "training": o.training.id, "share": o.share} for o in overlaps]
    write_result(args, pairs)
