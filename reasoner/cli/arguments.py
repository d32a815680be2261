"""The parser of the command line, and arguments that several commands share. Light: imports stand in functions."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

Handler = Callable[[argparse.Namespace], int | None]  # returns an exit status, None for 0


class LineHelp(argparse.HelpFormatter):
    """Wraps texts, but for those that have lines of their own."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if "\n" in text else super()._fill_text(text, width, indent)


class _Help(argparse.Action):
    """--help, which reasoner.cli.main puts last: its texts may depend on the other arguments."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, *_: object) -> None:
        if isinstance(parser, Parser) and parser.fill_help is not None:
            parser.fill_help(namespace)
        parser.print_help()
        parser.exit()


class Parser(argparse.ArgumentParser):
    """An argument parser whose usage errors are one line, with the nearest known flag, command or choice, or the flag
    here of a name of TRL or verl.
    """

    fill_help: Callable[[argparse.Namespace], None] | None = None  # writes the texts of --help

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, add_help=False)
        self.add_argument("-h", "--help", action=_Help, nargs=0, help="show this help message and exit")

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
    """Add an action of a command and return its parser."""
    action = actions.add_parser(name, help=summary, description=summary, allow_abbrev=False, **options)
    action.set_defaults(handler=handler)
    return action


def add_json(command: Parser, content: str) -> None:
    """Add --json. reasoner.cli.main checks the path before the command starts, and handles standard output, "-"."""
    command.add_argument(
        "--json",
        metavar="FILE",
        nargs="?",
        const=Path("-"),
        type=Path,
        help=f"also write {content} to this file; without FILE, or with -, JSON alone goes to standard output",
    )


def write_result(args: argparse.Namespace, result: object) -> None:
    """Write the result of a command to the file of --json, if there is one."""
    if args.json is not None:
        from reasoner.runs.json_files import write_json

        write_json(args.json, result)


def add_threads(command: argparse._ActionsContainer) -> None:
    """Add --threads."""
    command.add_argument(
        "--threads", type=_num_threads, default=0, metavar="N", help="torch threads of a process; 0: all cores [0]"
    )


def _num_threads(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of threads; it must be a whole number, at least 0")
    return int(text)


def add_run(command: Parser) -> None:
    """Add the arguments that name a run: RUN and --runs."""
    command.add_argument("name", metavar="RUN", help="a run: its folder, or its name in the folder --runs")
    add_runs_folder(command)


RUNS = Path("runs")  # the folder of the runs where none is named


def add_runs_folder(command: Parser) -> None:
    """Add --runs."""
    command.add_argument("--runs", default=RUNS, type=Path, metavar="FOLDER", help="folder of the runs [runs]")


def add_evals_folder(command: Parser, flag: str = "--out") -> None:
    """Add the folder of evaluations, by default as --out."""
    command.add_argument(flag, default="evals", type=Path, metavar="FOLDER", help="folder of the evaluations [evals]")
