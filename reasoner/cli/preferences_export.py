"""`reasoner rollouts export RUN FILE --as preferences`: pairs of a group's completions, labelled by a judge."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from reasoner.cli.arguments import Parser, add_option, write_result
from reasoner.console import print_result


def add_preference_arguments(export: Parser) -> None:
    """Add the arguments of --as preferences."""
    group = export.add_argument_group("preferences", "With --as preferences: pairs in the columns of TRL.")
    about = (
        "who prefers: rule (a right answer, of two the shorter) or utility:FILE.py:NAME, a function of the columns "
        "that reward functions get, which returns a number for each completion [rule]"
    )
    add_option(group, "--judge", about)
    about = "of a utility: completion i is preferred to j with probability sigmoid((u_i - u_j) / NUMBER) [1]"
    add_option(group, "--noise", about, kind=float, metavar="NUMBER")
    add_option(group, "--seed", "seed of the labels [0]", kind=int)


def export_preferences(args: argparse.Namespace, run_dir: Path, rollouts: Iterator[Mapping[str, Any]]) -> None:
    """Write the pairs of a run's rollouts to args.file, .jsonl or .parquet, and print what was left out."""
    from reasoner.preferences.export import write_preferences
    from reasoner.preferences.judges import load_judge

    judge = load_judge(args.judge or "rule", noise=args.noise)
    counts = write_preferences(args.file, run_dir, rollouts, judge, seed=args.seed or 0)
    print_result(f"{counts.summary()}: {args.file}")
    write_result(args, {"file": str(args.file)} | asdict(counts))
