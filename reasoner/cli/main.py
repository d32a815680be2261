"""The command line. Everything heavy is imported inside the command that needs it."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory

from reasoner.cli.arguments import parser
from reasoner.runs.run_dir import find_run
from reasoner.runtime import asleep

_AT = re.compile(r"--(pass@|pass\^|cons@|maj@)(.*)")
_LISTS = {"pass@": "pass_at", "pass^": "pass_hat", "cons@": "cons_at", "maj@": "cons_at"}


def _split_at(arguments: Sequence[str]) -> tuple[list[str], dict[str, list[int]]]:
    """The arguments without --pass@K, --pass^K, --cons@K and --maj@K (the same as cons), and those Ks in order."""
    rest: list[str] = []
    found: dict[str, list[int]] = {name: [] for name in _LISTS.values()}
    for argument in arguments:
        match = _AT.fullmatch(argument)
        if match is None:
            rest.append(argument)
        elif not re.fullmatch(r"[1-9]\d{0,5}", match[2]):
            raise ValueError(f"{argument}: K must be a whole number above 0, as in --{match[1]}16")
        elif int(match[2]) not in found[_LISTS[match[1]]]:
            found[_LISTS[match[1]]].append(int(match[2]))
    return rest, found


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0, 1 for faults of the machine, 2 for what the user can put right, 130 when interrupted."""
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")  # read when torch is imported: no notes on memory binding
    try:
        rest, at = _split_at(sys.argv[1:] if arguments is None else arguments)
        own = parser(rest)
        args = own.parse_args(rest)
        if args.run not in COMMANDS:  # no command, or one that has several actions: show what there is
            own.parse_args([*rest, "--help"])
        if args.command == "eval":
            vars(args).update(at)
        elif any(at.values()):
            raise ValueError("--pass@K and --cons@K belong to reasoner eval")
        with _json_output(args):
            return COMMANDS[args.run](args) or 0
    except ValueError as error:
        return _fail(error, 2)
    except (OSError, MemoryError, RuntimeError) as error:
        return _fail(error, 1)
    except KeyboardInterrupt:
        print("reasoner: interrupted", file=sys.stderr)
        return 130


@contextmanager
def _json_output(args: argparse.Namespace) -> Iterator[None]:
    """Refuse a --json file that cannot be written before the command starts. With `--json -` the figures are what
    stands on standard output, and what is printed for people goes to standard error.
    """
    path: Path | None = getattr(args, "json", None)
    if path is None:
        yield
        return
    if path != Path("-"):
        if path.is_dir():
            raise ValueError(f"--json {path} is a folder; name a file in it, or - for standard output")
        if not path.absolute().parent.is_dir():
            raise ValueError(f"--json {path} cannot be written: there is no folder {path.parent}")
        yield
        return
    with TemporaryDirectory() as folder:
        args.json = Path(folder) / "figures.json"
        with redirect_stdout(sys.stderr):
            yield
        if args.json.is_file():
            print(args.json.read_text("utf-8"), end="")


def _fail(error: Exception, status: int) -> int:
    if os.environ.get("REASONER_DEBUG"):
        raise error
    print(f"reasoner: error: {error}", file=sys.stderr)
    return status


# --------------------------------------------------------------------------------------------------- commands


def _train(args: argparse.Namespace) -> None:
    from reasoner.cli.train import start_training

    start_training(args)


def _doctor(args: argparse.Namespace) -> int:
    from reasoner.cli.train import start_doctor

    return start_doctor(args)


def _eval(args: argparse.Namespace) -> None:
    with asleep():
        from reasoner.cli.eval import run_eval

    args.data = [spec for given in args.data or [] for spec in _several(given)]
    run_eval(args)


def _several(given: str) -> list[str]:
    """What stands between commas; a file's name may have some of its own."""
    return [given] if Path(given.partition("?")[0]).exists() else [part for part in given.split(",") if part]


def _compare(args: argparse.Namespace) -> None:
    from reasoner.evals.compare import compare

    compare(args.a, args.b, out=args.out, force=args.force, json_file=args.json)


def _browse(name: str) -> Callable[[argparse.Namespace], None]:
    def run(args: argparse.Namespace) -> None:
        from reasoner.cli import rollouts as browse

        getattr(browse, name)(args)

    return run


def _report(args: argparse.Namespace) -> None:
    from reasoner.analysis.run_report import write_report

    for path in write_report(find_run(args.name, args.runs)):
        print(path)


def _app(args: argparse.Namespace) -> None:
    from app.server import serve

    serve(args)


def _aha(args: argparse.Namespace) -> None:
    from reasoner.cli.rollouts import show_aha

    show_aha(args)


def _import(args: argparse.Namespace) -> None:
    from reasoner.runs.importers import import_run

    run_dir = args.runs / (args.name or args.source.resolve().name)
    print(f"{import_run(args.system, args.source, run_dir):,} rollouts: {run_dir}")


def _grade(args: argparse.Namespace) -> None:
    from reasoner.cli.grade import grade_file, grade_one

    if args.file is not None:
        grade_file(args.file, args.rule, args.json)
    elif args.gold is not None and args.answer is not None:
        grade_one(args.gold, args.answer, args.rule, args.json)
    else:
        raise ValueError("grade needs --gold and --answer, or a file")


def _data_list(args: argparse.Namespace) -> None:
    from data.registry import describe

    rows = describe()
    width = max(len(name) for name, _ in rows)
    for name, meaning in rows:
        print(f"{name:<{width}}  {meaning}")


def _data_show(args: argparse.Namespace) -> None:
    from data import load

    for problem in load(args.spec, limit=args.n):
        place = " ".join(str(part) for part in (problem.subject, problem.level) if part is not None)
        print(f"{problem.id}  {place}\n  {problem.question}\n  -> {problem.answer}")


def _base_build(args: argparse.Namespace) -> None:
    from dataclasses import replace

    from reasoner.pretrain.build import build
    from reasoner.pretrain.train import Recipe

    recipe = Recipe() if args.steps is None else replace(Recipe(), steps=args.steps)
    build(args.out, seed=args.seed, recipe=recipe, threads=args.threads)


COMMANDS: dict[str, Callable[[argparse.Namespace], int | None]] = {  # an exit status, where it is not always 0
    "train": _train,
    "doctor": _doctor,
    "eval": _eval,
    "compare": _compare,
    "report": _report,
    "rollouts list": _browse("list_rollouts"),
    "rollouts show": _browse("show_rollout"),
    "rollouts grep": _browse("grep_rollouts"),
    "rollouts export": _browse("export_rollouts"),
    "app": _app,
    "aha": _aha,
    "import": _import,
    "grade": _grade,
    "data list": _data_list,
    "data show": _data_show,
    "base build": _base_build,
}
