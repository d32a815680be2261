"""`reasoner eval`: evaluate a model on problem sets, or the responses in files, with confidence intervals."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from reasoner.cli.arguments import Parser, add_evals_folder, add_json, add_runs_folder, add_threads, write_result
from reasoner.console import print_result, silent
from reasoner.distributed.launch import launch
from reasoner.distributed.world import LONG_TIME_LIMIT, World, num_launched, open_world
from reasoner.evals import PROBLEMS
from reasoner.runtime import gc_paused, set_threads

if TYPE_CHECKING:
    from reasoner.evals.request import EvalRequest


def add_arguments(command: Parser) -> None:
    """Add the arguments of the command. reasoner.cli.main adds pass_at, pass_hat and cons_at, the values of K."""
    command.set_defaults(handler=run_eval)
    _add_model(command)
    _add_endpoint(command)
    _add_problems(command)
    _add_sampling(command)
    _add_grading(command)
    command.add_argument(
        "--processes",
        type=int,
        metavar="N",
        help="divide the problems among N processes of this machine, each with an engine (one for each GPU); under "
        "torchrun: as many as it has started (docs/SCALE.md) [1]",
    )
    add_threads(command)
    add_evals_folder(command)
    command.add_argument("--name", help="name of the evaluation [the model's, and a hash of the arguments]")
    add_json(command, "the manifest and all metrics")


def _add_model(command: Parser) -> None:
    model = command.add_argument_group("the model")
    model.add_argument(
        "--model", help="base (the embedded model), a run, a checkpoint, a model folder, or a hub name [base]"
    )
    model.add_argument(
        "--step", help="with a run as --model: its checkpoint after this number of steps, or best [the last one]"
    )
    add_runs_folder(command)
    model.add_argument("--engine", help="vllm, transformers, or auto: vllm where it imports [auto]")
    model.add_argument(
        "--dtype",
        help="weights in float32 or bfloat16 [bfloat16 on a GPU where --max-tokens is above 1,024, else float32]",
    )


def _add_endpoint(command: Parser) -> None:
    endpoint = command.add_argument_group(
        "a model on a server", "Any server with OpenAI's interface, instead of --model; its weights are not needed."
    )
    endpoint.add_argument("--model-url", metavar="URL", help="address of the server, such as http://127.0.0.1:8001/v1")
    endpoint.add_argument("--model-name", metavar="NAME", help="the server's name for the model")
    endpoint.add_argument("--api", choices=("chat", "completions"), help="interface to use [chat]")
    endpoint.add_argument(
        "--api-key-variable",
        metavar="NAME",
        help="environment variable with the API key, which is sent to the server and stored nowhere [OPENAI_API_KEY]",
    )
    endpoint.add_argument("--concurrency", type=int, metavar="N", help="requests at once [16]")


def _add_problems(command: Parser) -> None:
    problems = command.add_argument_group("the problems")
    problems.add_argument(
        "--data",
        action="append",
        help="problem sets: names of `reasoner data list`, files, folders or ORG/NAME; with commas or repeated "
        "[generated:heldout]",
    )
    problems.add_argument(
        "--problems",
        type=int,
        metavar="N",
        help=f"evaluate the first N problems of each set; 0: all [{PROBLEMS} of a generated set, all of any other]",
    )


def _add_sampling(command: Parser) -> None:
    sampling = command.add_argument_group(
        "sampling",
        "A checkpoint of a run is sampled with the settings of the run, the embedded base with those of its preset.",
    )
    sampling.add_argument(
        "--num-samples", type=int, metavar="N", help="samples of each problem, at least 1 [the largest K]"
    )
    sampling.add_argument(
        "--greedy",
        action="store_true",
        help="evaluate greedy decoding too; without --pass@K and --cons@K, nothing else [off]",
    )
    sampling.add_argument(
        "--temperature",
        type=float,
        help="sampling temperature, above 0 [a run: as trained; base: 1; any other model: 0.6, as DeepSeek-R1]",
    )
    sampling.add_argument(
        "--top-p", type=float, help="nucleus sampling, above 0 to 1 [a run: as trained; base: 1; any other model: 0.95]"
    )
    sampling.add_argument(
        "--max-tokens",
        type=int,
        help="maximum tokens of a response, at least 1 [a run: as trained; any other model: 32,768]",
    )
    sampling.add_argument(
        "--prompt",
        help="prompt template: r1-zero, qwen-math, boxed, chat, few-shot, none, or a .txt or .toml file "
        "[a run: as trained; any other model: r1-zero]",
    )
    sampling.add_argument(
        "--stop", action="append", help="text that ends a response; repeatable [those of the prompt template]"
    )
    sampling.add_argument("--seed", type=int, help="seed of the samples [0]")


def _add_grading(command: Parser) -> None:
    grading = command.add_argument_group("grading")
    grading.add_argument(
        "--extract",
        help="how the answer is extracted from a response: strict, boxed, gsm8k, last-number, lenient "
        "[that of the prompt template]",
    )
    grading.add_argument(
        "--responses",
        action="append",
        type=Path,
        metavar="FILE",
        help="evaluate no model but the responses in this file: lm-eval's samples, or JSON lines; repeatable",
    )
    grading.add_argument(
        "--cut", action="append", help="with --responses: cut a response at this text; repeatable [no cut]"
    )
    grading.add_argument(
        "--regrade",
        action="store_true",
        help="grade the cached responses again, and sample none: an error where one is missing [off]",
    )


def run_eval(args: argparse.Namespace) -> None:
    """Run the evaluation, print its table, and write the metrics to --json. Of several processes: start them, or be one
    of them.
    """
    processes = _num_processes(args)
    if processes > 1 and not num_launched():
        launch(processes, sys.argv[1:])
    set_threads(args.threads)
    with gc_paused():
        from reasoner.evals.rank_responses import fail_others, serve_first
    with open_world(LONG_TIME_LIMIT) as world:
        if world.is_first:
            with fail_others(world):
                _evaluate(args, world)
        else:
            with silent(True), world.name_errors(lambda: "between the prompts of the first rank"):
                serve_first(world)


def _num_processes(args: argparse.Namespace) -> int:
    """The number of processes of the evaluation. ValueError where torchrun has started another one, and for several
    where no model is sampled here.
    """
    processes = args.processes if args.processes is not None else max(1, num_launched())
    if processes < 1:
        raise ValueError(f"--processes is {processes}; it must be at least 1")
    if num_launched() not in (0, processes):
        raise ValueError(f"--processes is {processes}, and torchrun has started {num_launched()}; leave it out")
    if processes > 1 and (args.responses or args.model_url):
        flag = "--responses" if args.responses else "--model-url"
        raise ValueError(f"{flag} is evaluated by one process, not {processes}: no model is sampled here")
    return processes


def _evaluate(args: argparse.Namespace, world: World) -> None:
    """Evaluate as the first rank, print and write the results."""
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

    return EvalRequest(
        ks=MetricKs(tuple(args.pass_at), tuple(args.pass_hat), tuple(args.cons_at)),
        greedy=args.greedy,
        num_samples=args.num_samples,
        model=args.model,
        step=args.step,
        model_url=args.model_url,
        model_name=args.model_name,
        api=args.api,
        api_key_variable=args.api_key_variable,
        concurrency=args.concurrency,
        data=[spec for text in args.data or [] for spec in split_list(text) if spec],
        problems=args.problems,
        temperature=args.temperature,
        top_p=args.top_p,
        max_tokens=args.max_tokens,
        prompt=args.prompt,
        stop=args.stop or (),
        engine=args.engine,
        dtype=args.dtype,
        seed=args.seed,
        regrade=args.regrade,
        responses=args.responses or (),
        cut=args.cut or (),
        extract=args.extract,
        runs=args.runs,
        out=args.out,
        name=args.name,
    )
