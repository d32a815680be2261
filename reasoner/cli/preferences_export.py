"""`reasoner rollouts export RUN FILE --as preferences`: pairs of a group's completions, labelled by a judge."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from reasoner.cli.arguments import Parser, write_result
from reasoner.console import print_result


def add_preference_arguments(export: Parser) -> None:
    """Add the arguments of --as preferences."""
    group = export.add_argument_group("preferences", "With --as preferences: pairs in the columns of TRL.")
    group.add_argument(
        "--judge",
        help="who prefers: rule (a right answer, of two the shorter) or utility:FILE.py:NAME, a function of the "
        "columns that reward functions get, which returns a number for each completion [rule]",
    )
    group.add_argument(
        "--noise",
        type=float,
        metavar="NUMBER",
        help="of a utility: completion i is preferred to j with probability sigmoid((u_i - u_j) / NUMBER) [1]",
    )
    group.add_argument("--seed", type=int, help="seed of the labels [0]")


def export_preferences(args: argparse.Namespace, run_dir: Path, rollouts: Iterator[Mapping[str, Any]]) -> None:
    """Write the pairs of a run's rollouts to args.file, .jsonl or .parquet, and print what was left out."""
    from reasoner.preferences.export import WRITERS, ExportCounts, preference_rows
    from reasoner.preferences.judges import load_judge
    from reasoner.rollouts.prompts import load_template
    from reasoner.runs.io import atomic_path
    from reasoner.runs.run_dir import read_settings

    if args.file.suffix not in WRITERS:
        raise ValueError(f"{args.file}: unknown kind of file {args.file.suffix!r}; known are {', '.join(WRITERS)}")
    judge, counts = load_judge(args.judge or "rule", noise=args.noise), ExportCounts()
    style = read_settings(run_dir)["config"].get("prompt.style")
    prefill = load_template(style).prefill if style else ""
    rows = preference_rows(rollouts, judge, seed=args.seed or 0, counts=counts, prefill=prefill)
    with atomic_path(args.file) as partial:
        WRITERS[args.file.suffix](partial, rows)
    print_result(f"{counts.summary()}: {args.file}")
    write_result(args, {"file": str(args.file)} | asdict(counts))
