"""`reasoner sample`: graded completions of a model, as a run with rollouts."""

from __future__ import annotations

import argparse
from inspect import signature

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
    add_json(command, "the run's folder")


def run_sample(args: argparse.Namespace) -> None:
    with gc_paused():
        from reasoner.api.stages import sample

    run_dir = sample(**values_of(args, signature(sample).parameters)).folder
    print_result(f"rollouts: {run_dir}")
    write_result(args, {"run": str(run_dir)})
