"""`reasoner eval`: evaluate a model on problem sets, or the responses in files, with confidence intervals. `reasoner
compare`: the difference of two evaluations of the same problems.
"""

from __future__ import annotations

import argparse
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from reasoner.cli.arguments import (
    Parser,
    add_engine,
    add_evals_folder,
    add_json,
    add_option,
    add_runs_folder,
    add_sampling,
    add_threads,
    values_of,
    write_result,
)
from reasoner.config.check import check_least
from reasoner.console import print_result, silent
from reasoner.distributed.launch import launch
from reasoner.distributed.world import LONG_TIME_LIMIT, World, num_launched, open_world
from reasoner.evals import PROBLEMS
from reasoner.runtime import gc_paused, set_threads

if TYPE_CHECKING:
    from reasoner.evals.request import EvalRequest


def add_arguments(command: Parser) -> None:
    """Add the arguments of the command. reasoner.cli.main adds pass_at and cons_at, the values of K."""
    command.set_defaults(handler=run_eval)
    _add_model(command)
    _add_problems(command)
    _add_grading(command)
    about = (
        "divide the problems among N processes of this machine, each with an engine (one for each GPU); under "
        "torchrun: as many as it has started (docs/SCALE.md) [1]"
    )
    add_option(command, "--processes", about, kind=int)
    add_threads(command)
    add_evals_folder(command)
    add_option(command, "--name", "name of the evaluation [the model's, and a hash of the arguments]")
    add_json(command, "the manifest and all metrics")


def _add_model(command: Parser) -> None:
    model = command.add_argument_group("the model")
    about = "base (the embedded model), a run, a checkpoint, a model folder, or a hub name [base]"
    add_option(model, "--model", about)
    about = "with a run as --model: its checkpoint after this number of steps, or best [the last one]"
    add_option(model, "--step", about)
    add_runs_folder(command)
    add_engine(model)


def _add_problems(command: Parser) -> None:
    problems = command.add_argument_group("the problems")
    about = "problem sets: names of `reasoner data list`, files, folders or ORG/NAME; with commas or repeated"
    add_option(problems, "--data", f"{about} [generated:heldout]", action="append")
    about = f"evaluate the first N problems of each set; 0: all [{PROBLEMS} of a generated set, all of any other]"
    add_option(problems, "--problems", about, kind=int)
    sampling = command.add_argument_group(
        "sampling",
        "A checkpoint of a run is sampled with the settings of the run, the embedded base with those of its preset.",
    )
    add_option(sampling, "--num-samples", "samples of each problem, at least 1 [the largest K]", kind=int)
    about = "evaluate greedy decoding too; without --pass@K and --cons@K, nothing else"
    add_option(sampling, "--greedy", about, kind=bool)
    add_sampling(sampling)
    about = "text that ends a response; repeatable [those of the prompt template]"
    add_option(sampling, "--stop", about, action="append")


def _add_grading(command: Parser) -> None:
    grading = command.add_argument_group("grading")
    about = "how the answer is extracted from a response: strict, boxed, gsm8k, last-number, lenient"
    add_option(grading, "--extract", f"{about} [that of the prompt template]")
    about = "evaluate no model but the responses in this file: lm-eval's samples, or JSON lines"
    add_option(grading, "--responses", f"{about}; repeatable", kind=Path, action="append")
    about = "grade the cached responses again, and sample none: an error where one is missing"
    add_option(grading, "--regrade", about, kind=bool)


def run_eval(args: argparse.Namespace) -> None:
    """Run the evaluation and print its table. Of several processes: start them, or be one of them."""
    processes = _num_processes(args)
    if processes > 1 and not num_launched():
        launch(processes, args.words)
    set_threads(args.threads)
    with gc_paused():
        from reasoner.evals.sampling import end_others, serve_first
    with open_world(LONG_TIME_LIMIT) as world:
        if world.is_first:
            with end_others(world):
                _evaluate(args, world)
        else:
            with silent(True), world.name_errors(lambda: "between the prompts of the first rank"):
                serve_first(world)


def _num_processes(args: argparse.Namespace) -> int:
    """The number of processes. ValueError where torchrun has started another one, or no model is sampled here."""
    processes = args.processes if args.processes is not None else max(1, num_launched())
    check_least(1, processes=processes)
    if num_launched() not in (0, processes):
        raise ValueError(f"--processes is {processes}, and torchrun has started {num_launched()}; leave it out")
    if processes > 1 and args.responses:
        raise ValueError(f"--responses is evaluated by one process, not {processes}: no model is sampled here")
    return processes


def _evaluate(args: argparse.Namespace, world: World) -> None:
    with gc_paused():
        from reasoner.evals.run import evaluate
        from reasoner.runs.run_start import versions

    result = evaluate(_request(args), world)
    print_result(f"\n{result.text}\n\n{result.provenance}\nfiles: {result.folder}")
    write_result(args, {"manifest": result.manifest, "versions": versions(), "results": result.to_dict()})


def _request(args: argparse.Namespace) -> EvalRequest:
    from data.spec import split_list
    from reasoner.evals.request import EvalRequest
    from reasoner.evals.result import MetricKs

    values = values_of(args, (one.name for one in fields(EvalRequest)))
    values["data"] = [spec for text in args.data or [] for spec in split_list(text) if spec]
    return EvalRequest(ks=MetricKs(tuple(args.pass_at), tuple(args.cons_at)), **values)


def add_compare_arguments(command: Parser) -> None:
    command.set_defaults(handler=run_compare)
    add_option(command, "a", "an evaluation: its folder, or its name in the folder --out", metavar="A")
    add_option(command, "b", "the evaluation that A is compared with", metavar="B")
    add_evals_folder(command)
    add_option(command, "--force", "compare even if data, prompt or grader differ", kind=bool)
    add_json(command, "all differences and flipped problems")


def run_compare(args: argparse.Namespace) -> None:
    from reasoner.evals.compare import compare

    compare(args.a, args.b, out=args.out, force=args.force, json_file=args.json)
