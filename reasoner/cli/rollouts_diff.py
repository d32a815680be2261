"""`reasoner rollouts diff A B`: the same problems in two runs, or in two steps."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import AbstractContextManager
from statistics import fmean
from typing import TYPE_CHECKING, Any

from reasoner.cli.arguments import Parser, add_json, add_option, add_runs_folder, print_lines, write_result
from reasoner.console import escape_controls, print_result

if TYPE_CHECKING:
    from reasoner.runs.index import RolloutIndex

OpenIndex = Callable[[argparse.Namespace], AbstractContextManager["RolloutIndex"]]
_MARKS = {"same": ("", ""), "a": ("[-", "-]"), "b": ("{+", "+}")}  # as wdiff and git diff --word-diff


def add_diff_arguments(action: Parser) -> None:
    for name, text in (("a", "a run, all steps of it, or RUN:STEP"), ("b", "what A is compared with, in the same way")):
        add_option(action, name, text, metavar=name.upper())
    add_runs_folder(action)
    add_option(action, "--problem", "print the first completions of this problem, word by word", metavar="ID")
    add_option(action, "--limit", "print at most N problems, at least 1", 20)
    add_json(action, "all shared problems, or the two completions")


def diff_rollouts(open_index: OpenIndex, args: argparse.Namespace) -> None:
    """Print the problems that both sides have, with their pass rates; or the completions of one problem."""
    sides = [_side(open_index, args, place) for place in (args.a, args.b)]
    if args.problem is not None:
        _print_completions(args, sides)
        return
    rows = [
        {"problem": problem, "a": side, "b": sides[1][problem]}
        for problem, side in sides[0].items()
        if problem in sides[1]
    ]
    if not rows:
        raise ValueError(f"{args.a} and {args.b} have no problem in common")
    _print_rates(rows, args.limit)
    write_result(args, rows)


def _side(open_index: OpenIndex, args: argparse.Namespace, place: str) -> dict[str, dict[str, Any]]:
    """By problem: pass rate, mean reward and tokens, and the first rollout of a side."""
    from reasoner.runs.filters import MOST_STEP
    from reasoner.runs.index_queries import problem_means

    name, _, step = place.rpartition(":")
    is_step = step.isascii() and step.isdecimal() and int(step) <= MOST_STEP
    run, only = (name, int(step)) if name and is_step else (place, None)
    with open_index(argparse.Namespace(name=run, runs=args.runs, limit=args.limit)) as index:
        rows = problem_means(index, step=only)
        if args.problem is not None:
            rows = [
                row | {"rollout": index.name(row["first"]), "shard_row": index.rollout(row["first"])}
                for row in rows
                if row["problem"] == args.problem
            ]
    if not rows:
        what = "rollouts" if args.problem is None else f"rollouts of problem {args.problem!r}"
        raise ValueError(f"{place} has no {what}")
    return {row.pop("problem"): row for row in rows}


def _print_rates(rows: list[dict[str, Any]], limit: int) -> None:
    """Print the problems in the order of the difference between their pass rates, and the mean difference."""
    from reasoner.evals.paired import difference
    from reasoner.evals.tables import align_rows, percent

    rates = [[row[side]["correct"] for row in rows] for side in ("a", "b")]
    order = sorted(rows, key=lambda row: (-abs(row["b"]["correct"] - row["a"]["correct"]), row["problem"]))
    header = ["problem", "correct A", "correct B", "reward A", "reward B", "tokens A", "tokens B"]
    cells = [
        [
            escape_controls(row["problem"]),
            *(percent(row[side]["correct"]) for side in ("a", "b")),
            *(f"{row[side]['reward']:.2f}" for side in ("a", "b")),
            *(f"{row[side]['tokens']:.0f}" if row[side]["tokens"] is not None else "-" for side in ("a", "b")),
        ]
        for row in order[:limit]
    ]
    print_result("\n".join(align_rows([header, *cells])))
    more = f", {limit:,} shown (--limit N shows more)" if len(rows) > limit else ""
    print_result(f"\n{len(rows):,} problems in common{more}")
    change = f"; B - A: {difference(rates[1], rates[0])} points" if len(rows) > 1 else ""
    print_result(f"correct: A {percent(fmean(rates[0]))}, B {percent(fmean(rates[1]))}{change}")


def _print_completions(args: argparse.Namespace, sides: list[dict[str, dict[str, Any]]]) -> None:
    """Print the first completion of the problem on each side, and the two as one text with marks."""
    from app.differences import word_difference

    rows = [side[args.problem] for side in sides]
    shards = [row["shard_row"] for row in rows]
    lines = {"problem": args.problem, "question": shards[0]["question"], "gold": shards[0]["gold"]}
    for place, row, shard in zip((args.a, args.b), rows, shards, strict=True):
        lines[place] = f"{row['rollout']}, {shard['verdict']}, reward {shard['reward']:g}"
    print_lines(lines)
    pieces = word_difference(*(shard["completion"] for shard in shards))
    text = "".join(f"{_MARKS[kind][0]}{piece}{_MARKS[kind][1]}" for kind, piece in pieces)
    print_result(f"\n{escape_controls(text).strip()}")
    write_result(
        args,
        [
            {"rollout": row["rollout"]}
            | {name: shard[name] for name in ("verdict", "reward", "extracted", "completion")}
            for row, shard in zip(rows, shards, strict=True)
        ],
    )
