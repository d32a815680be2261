"""The command line: `main` parses the arguments and calls the command's handler.

A command is a file of this package with `add_arguments(command)`, or a function of one, which sets the handler as the
parser's default `handler`, and one row of COMMANDS. Only the file of the command that is named gets imported, and these
files import what is heavy inside their handlers.
"""

from __future__ import annotations

import argparse
import os
import re
import select
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from reasoner import __version__
from reasoner.cli.arguments import Parser
from reasoner.console import drop_output, escape_controls, log, print_raw
from reasoner.distributed.world import is_connected, record_cause
from reasoner.runtime import set_environment


@dataclass(frozen=True, slots=True)
class Command:
    """One row of COMMANDS."""

    name: str
    summary: str
    epilog: str = ""
    module: str = ""  # file of this package, if it has not the command's name
    function: str = "add_arguments"


COMMANDS = (
    Command("train", "train a model by reinforcement learning with verifiable rewards"),
    Command(
        "sft",
        "train a model by supervised finetuning on examples: files, rollouts of own runs, data sets of the hub",
        epilog="examples: reasoner sft --model base --data examples.jsonl;  "
        "reasoner sft --model base --data 'runs:first?per_problem=4'",
        module="train",
        function="add_sft_arguments",
    ),
    Command(
        "expert-iteration",
        "rounds of sampling, selection of right answers and supervised finetuning: the control of every RL result",
        epilog="example: reasoner expert-iteration --model base --rounds 3 --run.name ei; the same command goes on "
        "where it was stopped",
    ),
    Command(
        "doctor",
        "check a training run before it starts: takes the settings of train; reports faults, time and memory",
        epilog="example: reasoner doctor --model base --algo.group_size 16; exit status 2 on an error",
    ),
    Command(
        "eval",
        "evaluate a model, or the responses in a file: --pass@K, --cons@K for any K, --greedy",
        epilog="examples: reasoner eval --model base --pass@1 --cons@16;  "
        "reasoner eval --model ORG/NAME --data math500,aime25 --pass@1 --cons@16 --num-samples 64;  "
        "reasoner eval --responses samples.jsonl --pass@1 --cons@16",
    ),
    Command(
        "compare",
        "compare two evaluations of the same problems: the difference and its significance",
        epilog="example: reasoner compare before after   (names in --out, or folders)",
        module="eval",
        function="add_compare_arguments",
    ),
    Command(
        "export",
        "write a run's model as a folder for transformers, vLLM and the hub, with chat template and model card",
        epilog="example: reasoner export first --out my-model --step best",
    ),
    Command(
        "sample",
        "sample graded completions of a model without training: a run with rollouts",
        epilog="example: reasoner sample --model base --data generated --problems 400 --num-samples 8 --name mine, "
        "then: reasoner sft --model base --data runs:mine",
    ),
    Command(
        "reward-model",
        "train a reward model on preferences, evaluate one, or score completions with it",
        epilog="example: reasoner reward-model train --model base --data pairs.parquet --run.name taste",
    ),
    Command(
        "pipeline",
        "run a recipe of several stages: r1, that of DeepSeek-R1",
        epilog="example: reasoner pipeline r1 --model base --dry-run; the same command goes on where it was stopped",
    ),
    Command(
        "runs",
        "list the runs of a folder, show the state of one",
        epilog="examples: reasoner runs;  reasoner runs show first",
    ),
    Command(
        "reference",
        "make reference bands: within which the metrics of a recipe run from seed to seed",
        epilog="example: reasoner reference make seed-0 seed-1 seed-2 seed-3 --out mine.json, then: reasoner train "
        "--run.reference mine.json",
    ),
    Command("rollouts", "list, show and export the rollouts of a run"),
    Command("app", "start the dashboard: rollouts, curves and reflection of your runs in a browser"),
    Command(
        "serve",
        "start a vLLM server that training runs sample from, on this machine or another",
        epilog="example: reasoner serve --model base --port 8001, "
        "then: reasoner train --model base --engine.urls http://127.0.0.1:8001",
    ),
    Command(
        "import",
        "import rollouts that TRL wrote, or files of rollouts, as a run for the dashboard",
        epilog="example: reasoner import trl my-trl-output --name theirs, then: reasoner app",
        module="runs",
        function="add_import_arguments",
    ),
    Command("grade", "grade one answer, or a file of answers"),
    Command(
        "data",
        "list the problem sets, show how one is read, audit its gold answers, or find problems that two have in common",
    ),
    Command("base", "pretrain a base model like the embedded one, or write texts of its corpus"),
)


def build_parser(arguments: Sequence[str]) -> Parser:
    """The parser for a command line: the command that it names gets its arguments, the others are only listed.

    The parsed `handler` runs the command; it is None where no command or action was named.
    """
    parser = Parser(
        prog="reasoner", description="Teach language models to reason about mathematics.", allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=__version__)
    parser.set_defaults(handler=None)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    for row in COMMANDS:
        about: dict[str, Any] = {"help": row.summary, "description": row.summary, "epilog": row.epilog}
        command = commands.add_parser(row.name, allow_abbrev=False, **about)
        if row.name in arguments:
            getattr(import_module(f"reasoner.cli.{row.module or row.name.replace('-', '_')}"), row.function)(command)
    return parser


_AT = re.compile(r"--(pass|cons)@(.*)")


def _split_at(arguments: Sequence[str]) -> tuple[list[str], dict[str, list[int]]]:
    """(the other arguments, the values of K of --pass@K and --cons@K, as pass_at and cons_at)."""
    rest: list[str] = []
    ks: dict[str, list[int]] = {"pass_at": [], "cons_at": []}
    for argument in arguments:
        match = _AT.fullmatch(argument)
        if match is None:
            rest.append(argument)
        elif not re.fullmatch(r"[1-9][0-9]{0,5}", match[2]):
            raise ValueError(f"{argument}: K must be a whole number above 0, as in --{match[1]}@16")
        elif int(match[2]) not in ks[f"{match[1]}_at"]:
            ks[f"{match[1]}_at"].append(int(match[2]))
    return rest, ks


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command. The exit status: 0; 1 for faults of the machine; 2 for faults that the user can correct; 130 when
    interrupted; 141, without a message, where the reader of standard output is gone (`| head`). With REASONER_DEBUG
    set, an error is raised instead of printed.
    """
    set_environment()
    try:
        words = sys.argv[1:] if arguments is None else arguments
        rest, ks = _split_at(words)
        parser = build_parser(rest)
        args = parser.parse_args(rest)
        args.words = words  # for processes that run the same command
        if args.handler is None:  # no command, or one whose action was not named
            parser.parse_args([*rest, "--help"])
        if args.command == "eval":
            vars(args).update(ks)
        elif any(ks.values()):
            raise ValueError("--pass@K and --cons@K belong to reasoner eval")
        with _json_output(args):
            status = args.handler(args) or 0
        sys.stdout.flush()
        return status
    except ValueError as error:
        return _fail(error, 2)
    except BrokenPipeError as error:
        return _READER_GONE if _has_lost_its_reader() else _fail(error, 1)
    except (OSError, MemoryError, RuntimeError) as error:
        return _fail(error, 1)
    except KeyboardInterrupt:
        log("reasoner: interrupted")
        return 130
    except SystemExit as stop:
        _end_rank(stop.code if isinstance(stop.code, int) else 1)
        raise


@contextmanager
def _json_output(args: argparse.Namespace) -> Iterator[None]:
    """Refuse a --json file that cannot be written. With `--json -` standard output holds the JSON alone."""
    path: Path | None = getattr(args, "json", None)
    if path is None:
        yield
        return
    if path != Path("-"):
        if path.exists() and not path.is_file():  # a device or a pipe would be replaced by a file
            kind = "is a folder; name a file in it" if path.is_dir() else "is no file; name one"
            raise ValueError(f"--json {path} {kind}, or - for standard output")
        if not path.absolute().parent.is_dir():
            raise ValueError(f"--json {path} cannot be written: there is no folder {path.parent}")
        yield
        return
    with TemporaryDirectory() as folder:
        args.json = Path(folder) / "output.json"
        try:
            with redirect_stdout(sys.stderr):
                yield
        finally:  # a pipeline that failed has written its stages
            if args.json.is_file():
                print_raw(args.json.read_text("utf-8"))


_READER_GONE = 128 + 13  # as a shell counts a program that SIGPIPE ended


def _has_lost_its_reader() -> bool:
    """Whether nobody reads standard output any more. Then what it still holds is dropped."""
    output = sys.stdout.fileno()
    poll = select.poll()
    poll.register(output, 0)  # errors alone
    if not poll.poll(0):
        return False
    drop_output(sys.stdout)
    return True


def _fail(error: Exception, status: int) -> int:
    if os.environ.get("REASONER_DEBUG"):
        raise error
    text = str(error)
    if isinstance(error, OSError) and error.filename is not None:
        text = f"{error.filename}: {error.strerror}"
    log(f"reasoner: error: {escape_controls(text)}")
    record_cause(error)
    _end_rank(status)
    return status


def _end_rank(status: int) -> None:
    """End this process at once, if it is still connected to other ranks: at the end of the interpreter torch frees what
    it has of NCCL, which may wait for them.
    """
    if is_connected():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
