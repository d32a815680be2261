"""`reasoner sample`: graded completions of a model, as a run with rollouts and as a file of examples."""

from __future__ import annotations

import argparse
from inspect import signature
from pathlib import Path

from reasoner.cli.arguments import Parser, add_json, add_runs_folder, add_threads, write_result
from reasoner.cli.rollouts import add_selection, selection_of, write_examples
from reasoner.console import print_result
from reasoner.runtime import gc_paused


def add_arguments(command: Parser) -> None:
    """Add the arguments of the command."""
    command.set_defaults(handler=run_sample)
    command.add_argument(
        "--model", default="base", help="base, a run, a checkpoint, a model folder, or a hub name [base]"
    )
    command.add_argument(
        "--data", default="generated", help="problems: a name of `reasoner data list`, or a file [generated]"
    )
    command.add_argument("--problems", type=int, metavar="N", help="the first N problems, at least 1 [all]")
    command.add_argument("--skip", type=int, default=0, metavar="N", help="leave out the first N problems before [0]")
    command.add_argument(
        "--num-samples", type=int, default=16, metavar="N", help="completions of each, at least 1 [16]"
    )
    command.add_argument("--temperature", type=float, help="above 0 [a run: as trained; base: 1; any other model: 0.6]")
    command.add_argument(
        "--top-p", type=float, help="nucleus sampling [a run: as trained; base: 1; any other model: 0.95]"
    )
    command.add_argument(
        "--max-tokens", type=int, help="maximum tokens of a completion [a run: as trained; any other model: 32,768]"
    )
    command.add_argument("--prompt", help="prompt template [a run: as trained; any other model: r1-zero]")
    command.add_argument("--engine", default="auto", help="vllm, transformers, or auto: vllm where it imports [auto]")
    command.add_argument("--dtype", help="weights in float32 or bfloat16 [as for reasoner eval]")
    add_threads(command)
    command.add_argument("--workers", type=int, default=1, metavar="N", help="grading processes [1]")
    command.add_argument("--seed", type=int, default=0, help="seed of the samples [0]")
    command.add_argument("--name", help="name of the run folder [MODEL-sample-MMDD-HHMMSS]")
    add_runs_folder(command)
    examples = command.add_argument_group("examples", "Of the samples those that are to be learnt.")
    examples.add_argument(
        "--out", type=Path, metavar="FILE", help="also write examples to this .jsonl or .parquet file"
    )
    add_selection(examples)
    add_json(command, "the run's folder, the file of examples and what was left out")


def run_sample(args: argparse.Namespace) -> None:
    """Sample into the run folder, and write the examples. A folder that was begun is completed."""
    with gc_paused():
        from reasoner.api.sampling import sample
        from reasoner.runs.selection import read_rollouts
        from reasoner.sft.sources import check_output

    selection = selection_of(args)
    if args.out is not None:
        check_output(args.out)
    elif args.where is not None or args.per_problem is not None:
        raise ValueError("--where and --per-problem select the examples of --out, and there is none")
    run_dir = sample(**{name: getattr(args, name) for name in signature(sample).parameters}).folder
    print_result(f"rollouts: {run_dir}")
    result: dict[str, object] = {"run": str(run_dir)}
    if args.out is not None:
        result |= write_examples(args.out, read_rollouts([run_dir]), selection)
    write_result(args, result)
