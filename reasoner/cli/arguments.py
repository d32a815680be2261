"""The arguments of the command line. Light: what only one command's arguments need is imported where they are made."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import NoReturn

from reasoner import __version__
from reasoner.config.presets import PRESETS
from reasoner.evals import PROBLEMS

SHORT = {
    "--algo": "algo.name",
    "--data": "data.train",
    "--prompt": "prompt.style",
    "--engine": "engine.name",
    "--track": "run.track",
}


class Parser(argparse.ArgumentParser):
    """One line for a usage error, with the nearest flag for one that is unknown."""

    def error(self, message: str) -> NoReturn:
        if message.startswith("unrecognized arguments:"):
            flag = message.split(": ", 1)[1].split()[0].split("=")[0]
            known = {option for parser in _all(self) for action in parser._actions for option in action.option_strings}
            message = f"unknown argument {flag!r}{_nearest(flag, known - {flag})}"
        self.exit(2, f"reasoner: error: {message}\n")

    def _check_value(self, action: argparse.Action, value: str) -> None:
        """Refuse a command, or the value of an option, that is none of its choices."""
        if action.choices is None or value in action.choices:
            return
        what = f"{action.option_strings[0]} is" if action.option_strings else f"unknown {action.dest}"
        self.error(f"{what} {value!r}; known are {', '.join(action.choices)}{_nearest(value, action.choices)}")


def _nearest(word: str, known: Iterable[str]) -> str:
    close = get_close_matches(word, list(known), 1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ""


def _all(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """The parser and those of its sub-commands."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                yield from _all(child)


@dataclass(frozen=True, slots=True)
class Command:
    """A command, and what adds its arguments to its parser."""

    name: str
    summary: str
    fill: Callable[[Parser], None]
    epilog: str = ""
    aliases: tuple[str, ...] = ()


def parser(arguments: Sequence[str]) -> Parser:
    """For these arguments: only a command that they name gets its own, the others are there to be listed.

    The parsed `run` names the action; where it is none of reasoner.cli.main.COMMANDS, no action was named.
    """
    made = Parser(prog="reasoner", description="Teach language models to reason about mathematics.", allow_abbrev=False)
    made.add_argument("--version", action="version", version=__version__)
    made.set_defaults(run="")
    commands = made.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    for command in COMMANDS:
        own = _add(commands, command.name, command.summary, epilog=command.epilog, aliases=command.aliases)
        if not {command.name, *command.aliases}.isdisjoint(arguments):
            command.fill(own)
    return made


def _train(command: Parser) -> None:
    command.add_argument("--resume", metavar="RUN", help="go on with a run from its last checkpoint")
    command.add_argument(
        "--dry-run", action="store_true", help="print the settings, and where each comes from, and stop"
    )
    _json(command, "the figures of the final table")
    _settings(command)


def _doctor(command: Parser) -> None:
    command.add_argument("--problems", type=int, default=64, help="the first so many questions are asked [64]")
    command.add_argument("--samples", type=int, default=16, help="responses to each, at most; at least 2 [16]")
    _json(command, "all figures")
    _settings(command)


def _eval(command: Parser) -> None:
    command.add_argument("--model", help="base, a run, a checkpoint, a local folder, or a hub name [base]")
    command.add_argument("--step", help="the checkpoint of a run after so many steps, or best [the last]")
    command.add_argument("--data", action="append", help="problem sets, with commas or repeated [generated:heldout]")
    command.add_argument(
        "--problems",
        type=int,
        help=f"the first so many problems of each set; 0 = all [{PROBLEMS} of a generated set, all of any other]",
    )
    command.add_argument("--n", type=int, help="samples of each problem [the largest K]")
    command.add_argument(
        "--greedy", action="store_true", help="the likeliest answer too (or alone, without --pass and --cons)"
    )
    command.add_argument(
        "--temperature", type=float, help="[a run: as it was trained; base: 1; any other model: 0.6, as DeepSeek-R1]"
    )
    command.add_argument("--top-p", type=float, help="nucleus sampling [as trained; base: 1; any other model: 0.95]")
    command.add_argument("--max-tokens", type=int, help="of a response [as trained; any other model: 32,768]")
    command.add_argument(
        "--prompt", help="r1-zero, qwen-math, boxed, chat, none, or a .txt or .toml file [as trained; r1-zero]"
    )
    command.add_argument("--stop", action="append", help="a text that ends a response, repeatable [the prompt's]")
    command.add_argument(
        "--extract", help="how answers are read: strict, boxed, gsm8k, last-number, lenient [the prompt's]"
    )
    command.add_argument("--engine", default="auto", help="vllm, transformers, auto [auto]")
    command.add_argument("--dtype", help="float32, bfloat16 [bfloat16 for long responses on a GPU, else float32]")
    command.add_argument("--seed", type=int, default=0)
    command.add_argument(
        "--responses", action="append", type=Path, help="grade this file: lm-eval, lighteval, or JSON lines; repeatable"
    )
    command.add_argument(
        "--cut", action="append", default=[], help="with --responses: a text that ends a response, repeatable"
    )
    command.add_argument("--regrade", action="store_true", help="sample nothing: grade the stored responses again")
    command.add_argument("--runs", default="runs", type=Path, help="folder of the runs [runs]")
    command.add_argument("--out", default="evals", type=Path, help="folder of the evaluations [evals]")
    command.add_argument("--name", help="of the evaluation [the model's, and a hash of what was asked]")
    _json(command, "the figures")
    command.set_defaults(pass_at=[], pass_hat=[], cons_at=[])


def _compare(command: Parser) -> None:
    command.add_argument("a", help="an evaluation: a folder, or its name in --out")
    command.add_argument("b", help="the one that it is compared with")
    command.add_argument("--out", default="evals", type=Path, help="folder of the evaluations [evals]")
    command.add_argument("--force", action="store_true", help="compare what differs in data, prompt or grader, too")
    _json(command, "the figures")


def _report(command: Parser) -> None:
    _of_run(command, filters=False)


def _rollouts(command: Parser) -> None:
    actions = command.add_subparsers(dest="action", metavar="list|show|grep|export", parser_class=Parser)
    _of_run(_add(actions, "list", "a line a rollout", of="rollouts"), limit=20)
    shown = _of_run(_add(actions, "show", "one rollout in full", of="rollouts"), filters=False)
    shown.add_argument("rollout", metavar="STEP.GROUP.SAMPLE", help="its name, as in 12.3.7")
    searched = _of_run(_add(actions, "grep", "rollouts with these words", of="rollouts"), limit=20)
    searched.add_argument("pattern", metavar="TEXT", help='words, "a phrase", begin*, -without')
    exported = _of_run(_add(actions, "export", "into a .jsonl, .parquet or .md file", of="rollouts"))
    exported.add_argument("file", metavar="FILE", type=Path)


def _app(command: Parser) -> None:
    command.add_argument("runs", nargs="?", default=Path("runs"), type=Path, help="folder of runs, or a run [runs]")
    command.add_argument("--evals", default="evals", type=Path, help="folder of the evaluations [evals]")
    command.add_argument("--port", default=7860, type=int, help="0 = any that is free [7860]")
    command.add_argument("--host", default="127.0.0.1", help="another one lets others in [127.0.0.1]")
    command.add_argument("--auth", metavar="NAME:PASSWORD", help="who may look")
    command.add_argument("--allow-unauthenticated", action="store_true", help="anyone who can reach --host may look")
    command.add_argument("--open", action="store_true", help="open a browser")


def _aha(command: Parser) -> None:
    _of_run(command, filters=False)
    command.add_argument("--limit", type=int, default=5, help="of the ranked list [5]")
    _json(command, "the figures")


def _import(command: Parser) -> None:
    command.add_argument("system", help="trl, verl, prime-rl")
    command.add_argument("source", type=Path, help="the folder of the dumps")
    command.add_argument("--name", help="of the run [the folder's name]")
    command.add_argument("--runs", default="runs", type=Path, help="folder of the runs [runs]")


def _grade(command: Parser) -> None:
    command.add_argument("file", nargs="?", type=Path, help="JSON lines with gold and answer (or response) in each")
    command.add_argument("--gold")
    command.add_argument("--answer")
    command.add_argument("--rule", default="maths", help="maths or countdown [maths]")
    _json(command, "the verdicts")


def _data(command: Parser) -> None:
    actions = command.add_subparsers(dest="action", metavar="list|show", parser_class=Parser)
    _add(actions, "list", "the problem sets by name", of="data")
    show = _add(actions, "show", "problems of a set", of="data")
    show.add_argument("spec", help="a name of `reasoner data list`, or a .jsonl or .parquet file")
    show.add_argument("-n", "--n", type=int, default=5, help="how many [5]")


def _base(command: Parser) -> None:
    actions = command.add_subparsers(dest="action", metavar="build", parser_class=Parser)
    build = _add(actions, "build", "make the embedded base again, from nothing", of="base")
    build.add_argument("--out", type=Path, default=Path("runs/base"), help="a new folder [runs/base]")
    build.add_argument("--seed", type=int, default=0, help="another corpus and another start [0]")
    build.add_argument("--steps", type=int, help="fewer or more steps than the recipe's")
    build.add_argument("--threads", type=int, default=0, help="torch threads; 0 = all cores [0]")


COMMANDS = (
    Command("train", "run the R1-Zero recipe on a model", _train),
    Command(
        "doctor",
        "look at a run before it is started: takes what train takes, says what will work and how long it takes",
        _doctor,
        epilog="example: reasoner doctor --model base --algo.group 16; exit status 2 where something will not work",
    ),
    Command(
        "eval",
        "measure a model, or responses of a file: --pass@K, --pass^K, --cons@K for any K, --greedy",
        _eval,
        epilog="examples: reasoner eval --model base --pass@1 --cons@16;  "
        "reasoner eval --model ORG/NAME --data math500,aime25 --pass@1 --cons@16 --n 64;  "
        "reasoner eval --responses samples.jsonl --pass@1 --cons@16",
    ),
    Command(
        "compare",
        "two evaluations of the same problems: the difference, and whether it could be chance",
        _compare,
        epilog="example: reasoner compare before after   (names in --out, or folders)",
    ),
    Command("report", "a run as one page: report.html and report.md in its folder", _report),
    Command("rollouts", "what a run's model wrote: list, show, grep, export", _rollouts),
    Command(
        "app",
        "the dashboard: rollouts, curves and second thoughts of your runs in a browser",
        _app,
        epilog="example: reasoner app --port 8000   (also: reasoner dashboard)",
        aliases=("dashboard",),
    ),
    Command("aha", "second thoughts over a run: how often, what came of them, the best ones", _aha),
    Command(
        "import",
        "rollouts that TRL, verl or prime-rl dumped, as a run to look at",
        _import,
        epilog="example: reasoner import trl my-trl-output --name theirs, then: reasoner app",
    ),
    Command("grade", "grade one answer, or a file of them", _grade),
    Command("data", "list the problem sets, or show problems of one", _data),
    Command("base", "the embedded base model", _base),
)


def _add(
    commands: argparse._SubParsersAction[Parser],
    name: str,
    summary: str,
    of: str = "",
    epilog: str = "",
    aliases: Sequence[str] = (),
) -> Parser:
    """The parser of a command, or of an action `of` one."""
    made = commands.add_parser(
        name, help=summary, description=summary, allow_abbrev=False, epilog=epilog, aliases=aliases
    )
    made.set_defaults(run=f"{of} {name}".strip())
    return made


def _json(command: Parser, what: str) -> None:
    command.add_argument("--json", metavar="FILE", type=Path, help=f"write {what} here as well; - = standard output")


def _settings(command: Parser) -> None:
    """The arguments that make the settings of a run."""
    from reasoner.config.resolve import settings

    command.add_argument(
        "--preset", choices=PRESETS, help="settings for a kind of model; by default the one that fits --model"
    )
    command.add_argument(
        "--config", metavar="FILE", action="append", default=[], type=Path, help="a TOML file of settings; repeatable"
    )
    for setting in settings().values():
        flags = [f"--{setting.key}", *(short for short, key in SHORT.items() if key == setting.key)]
        default = "" if setting.default in ("", None) else f" [{setting.default}]"
        command.add_argument(*flags, dest=setting.key, metavar="V", help=(setting.help + default).replace("%", "%%"))


def _of_run(command: Parser, *, filters: bool = True, limit: int = 0) -> Parser:
    """The arguments that say which run, and which rollouts of it."""
    from reasoner.runs.filters import FIELDS

    command.add_argument("name", metavar="RUN", help="a run: a folder, or its name in --runs")
    command.add_argument("--runs", default="runs", type=Path, help="folder of the runs [runs]")
    if limit:
        command.add_argument("--limit", type=int, default=limit, help=f"so many of them [{limit}]")
    if filters:
        for name, meaning in FIELDS.items():
            command.add_argument(f"--{name}", help=meaning)
    return command
