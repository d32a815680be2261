"""`reasoner sample`: graded completions of a model, as a run with rollouts and as a file of examples."""

from __future__ import annotations

import argparse
from inspect import signature
from pathlib import Path

from reasoner.cli.arguments import (
    Parser,
    add_engine,
    add_json,
    add_option,
    add_runs_folder,
    add_sampling,
    add_threads,
    values_of,
    write_result,
)
from reasoner.cli.rollouts import add_selection, selection_of, write_examples
from reasoner.console import print_result
from reasoner.runtime import gc_paused


def add_arguments(command: Parser) -> None:
    command.set_defaults(handler=run_sample)
    add_option(command, "--model", "base, a run, a checkpoint, a model folder, or a hub name [base]")
    add_option(command, "--data", "problems: a name of `reasoner data list`, or a file [generated]")
    add_option(command, "--problems", "the first N problems, at least 1 [all]", kind=int)
    add_option(command, "--skip", "leave out the first N problems before [0]", kind=int)
    add_option(command, "--num-samples", "completions of each, at least 1 [16]", kind=int)
    add_sampling(command)
    add_engine(command)
    add_threads(command)
    add_option(command, "--workers", "grading processes [1]", kind=int)
    add_option(command, "--name", "name of the run folder [MODEL-sample-MMDD-HHMMSS]")
    add_runs_folder(command)
    examples = command.add_argument_group("examples", "Of the samples those that are to be learnt.")
    add_option(examples, "--out", "also write examples to this .jsonl or .parquet file", kind=Path)
    add_selection(examples)
    add_json(command, "the run's folder, the file of examples and what was left out")


def run_sample(args: argparse.Namespace) -> None:
    with gc_paused():
        from reasoner.api.sampling import sample
        from reasoner.runs.row_files import check_ending
        from reasoner.runs.selection import read_rollouts

    selection = selection_of(args)
    if args.out is not None:
        check_ending(args.out)
    elif args.where is not None or args.per_problem is not None:
        raise ValueError("--where and --per-problem select the examples of --out, and there is none")
    run_dir = sample(**values_of(args, signature(sample).parameters)).folder
    print_result(f"rollouts: {run_dir}")
    result: dict[str, object] = {"run": str(run_dir)}
    if args.out is not None:
        result |= write_examples(args.out, read_rollouts([run_dir]), selection)
    write_result(args, result)
