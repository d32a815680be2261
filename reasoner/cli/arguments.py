"""The parser of the command line, and arguments that several commands share. Light: imports stand in functions."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from reasoner.console import print_result

Handler = Callable[[argparse.Namespace], int | None]  # returns an exit status, None for 0


class LineHelp(argparse.HelpFormatter):
    """Wraps texts, but for those that have lines of their own."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if "\n" in text else super()._fill_text(text, width, indent)


class Parser(argparse.ArgumentParser):
    """An argument parser whose usage errors are one line, with the nearest known flag, command or choice."""

    def error(self, message: str) -> NoReturn:
        """Print the message and exit with status 2."""
        from reasoner.config.other_names import did_you_mean, find_other_name, other_name_message

        if message.startswith("unrecognized arguments:"):
            flag = message.split(": ", 1)[1].split()[0].split("=")[0]
            known = {
                option for parser in all_parsers(self) for action in parser._actions for option in action.option_strings
            }
            message = f"unknown argument {flag!r}{did_you_mean(flag, known - {flag})}"
            name = flag.removeprefix("--")
            if (row := find_other_name(name)) and f"--{row.ours or 'algo.name'}" in known:
                message = other_name_message(name, prefix="--")
        self.exit(2, f"reasoner: error: {message}\n")

    def _check_value(self, action: argparse.Action, value: str) -> None:
        """Refuse an unknown command, and a value that is not one of an option's choices."""
        if action.choices is None or value in action.choices:
            return
        from reasoner.config.other_names import did_you_mean

        what = f"{action.option_strings[0]} is" if action.option_strings else f"unknown {action.dest}"
        self.error(f"{what} {value!r}; known are {', '.join(action.choices)}{did_you_mean(value, action.choices)}")


def all_parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """The parser and those of its sub-commands."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                yield from all_parsers(child)


def add_actions(command: Parser, names: Sequence[str]) -> argparse._SubParsersAction[Parser]:
    """Give a command actions, as in `reasoner data list`: call add_action() for each of the names."""
    return command.add_subparsers(dest="action", metavar="|".join(names), parser_class=Parser)


def add_action(
    actions: argparse._SubParsersAction[Parser], name: str, summary: str, handler: Handler, **options: Any
) -> Parser:
    action = actions.add_parser(name, help=summary, description=summary, allow_abbrev=False, **options)
    action.set_defaults(handler=handler)
    return action


_METAVARS: dict[object, str] = {int: "N", Path: "FILE"}


def add_option(
    place: argparse._ActionsContainer,
    name: str,
    about: str,
    default: Any = None,
    kind: Callable[[str], Any] | None = None,
    **options: Any,
) -> None:
    """Add an option, or without dashes an argument. Its value is of `kind` (bool: a switch), else of the kind of the
    default, else a text. `about` is the help, which ends with the default.
    """
    if kind is bool:
        place.add_argument(name, action="store_true", help=about, **options)
        return
    if default is not None:
        kind, about = kind or type(default), f"{about} [{default}]"
    if kind in _METAVARS and name.startswith("-"):
        options = {"metavar": _METAVARS[kind]} | options
    place.add_argument(name, type=kind or str, default=default, help=about, **options)


def values_of(args: argparse.Namespace, names: Iterable[str]) -> dict[str, Any]:
    """The arguments of these names that have a value: those of a function that has the defaults."""
    return {name: value for name in names if (value := getattr(args, name, None)) is not None}


def add_json(command: Parser, content: str) -> None:
    """Add --json. reasoner.cli.main checks the path before the command starts, and handles standard output, "-"."""
    about = f"also write {content} to this file; without FILE, or with -, JSON alone goes to standard output"
    add_option(command, "--json", about, kind=Path, nargs="?", const=Path("-"))


def write_result(args: argparse.Namespace, result: object) -> None:
    """Write the result of a command to the file of --json, if there is one."""
    if args.json is not None:
        from reasoner.runs.json_files import write_json

        write_json(args.json, result)


def print_lines(lines: Mapping[str, object], width: int = 10) -> None:
    """Print names and their values, a line each."""
    for name, value in lines.items():
        print_result(f"{name:<{width}} {value}")


def add_threads(command: argparse._ActionsContainer) -> None:
    add_option(command, "--threads", "torch threads of a process; 0: all cores", 0, _num_threads, metavar="N")


def _num_threads(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of threads; it must be a whole number, at least 0")
    return int(text)


def add_run(command: Parser) -> None:
    add_option(command, "name", "a run: its folder, or its name in the folder --runs", metavar="RUN")
    add_runs_folder(command)


RUNS = Path("runs")  # the folder of the runs where none is named


def add_runs_folder(command: Parser) -> None:
    add_option(command, "--runs", "folder of the runs", RUNS, Path, metavar="FOLDER")


def add_evals_folder(command: Parser, flag: str = "--out") -> None:
    """Add the folder of evaluations, by default as --out."""
    add_option(command, flag, "folder of the evaluations", Path("evals"), Path, metavar="FOLDER")


_AS_TRAINED = "a run: as trained; base: 1; any other model:"


def add_sampling(place: argparse._ActionsContainer) -> None:
    """Add the options of how a model is sampled, but for the number of samples."""
    add_option(place, "--temperature", f"sampling temperature, above 0 [{_AS_TRAINED} 0.6, as DeepSeek-R1]", kind=float)
    add_option(place, "--top-p", f"nucleus sampling, above 0 to 1 [{_AS_TRAINED} 0.95]", kind=float)
    about = "maximum tokens of a response, at least 1 [a run: as trained; any other model: 32,768]"
    add_option(place, "--max-tokens", about, kind=int)
    about = (
        "prompt template: r1-zero, qwen-math, qwen-math-tool, boxed, chat, few-shot, none, or a .txt or .toml file "
        "[a run: as trained; any other model: r1-zero]"
    )
    add_option(place, "--prompt", about)
    about = "tools that the model may call, as of `reasoner train`; '' for none [those that a run's checkpoint has]"
    add_option(place, "--tools", about)
    add_option(place, "--seed", "seed of the samples [0]", kind=int)


def add_engine(place: argparse._ActionsContainer) -> None:
    """Add --engine and --dtype, which say with what a model is sampled."""
    add_option(place, "--engine", "vllm, transformers, or auto: vllm where it imports [auto]")
    about = "weights in float32 or bfloat16 [on a GPU above 1,024 --max-tokens bfloat16, else the run's, or float32]"
    add_option(place, "--dtype", about, choices=("float32", "bfloat16"))
