"""The arguments of the command line. Light: nothing is imported here that `--help` does not need."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import NoReturn

from reasoner import __version__
from reasoner.evals import PROBLEMS
from reasoner.filters import FIELDS
from reasoner.presets import PRESETS
from reasoner.settings import settings

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
            close = get_close_matches(flag, known - {flag}, 1, cutoff=0.5)
            message = f"unknown argument {flag!r}" + (f"; did you mean {close[0]!r}?" if close else "")
        self.exit(2, f"reasoner: error: {message}\n")


def _all(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """The parser and those of its sub-commands."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                yield from _all(child)


def parser() -> Parser:
    parser = Parser(
        prog="reasoner", description="Teach language models to reason about mathematics.", allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=Parser)

    train = _command(commands, "train", "run the R1-Zero recipe on a model", "train")
    train.add_argument("--resume", metavar="RUN", help="go on with a run from its last checkpoint")
    train.add_argument("--dry-run", action="store_true", help="print the settings, and where each comes from, and stop")
    train.add_argument("--json", metavar="FILE", type=Path, help="write the figures of the final table here as well")
    _settings(train)

    doctor = _command(
        commands,
        "doctor",
        "look at a run before it is started: takes what train takes, says what will work and how long it takes",
        "doctor",
        epilog="example: reasoner doctor --model base --algo.group 16; exit status 2 where something will not work",
    )
    doctor.add_argument("--problems", type=int, default=64, help="the first so many questions are asked [64]")
    doctor.add_argument("--samples", type=int, default=16, help="responses to each, at most [16]")
    doctor.add_argument("--json", metavar="FILE", type=Path, help="write all figures here as well")
    _settings(doctor)

    evaluation = _command(
        commands,
        "eval",
        "measure a model, or responses of a file: --pass@K, --pass^K, --cons@K for any K, --greedy",
        "eval",
        epilog="examples: reasoner eval --model base --pass@1 --cons@16;  "
        "reasoner eval --model ORG/NAME --data math500,aime25 --pass@1 --cons@16 --n 64;  "
        "reasoner eval --responses samples.jsonl --pass@1 --cons@16",
    )
    evaluation.add_argument("--model", help="base, a run, a checkpoint, a local folder, or a hub name [base]")
    evaluation.add_argument("--step", help="the checkpoint of a run after so many steps, or best [the last]")
    evaluation.add_argument("--data", action="append", help="problem sets, with commas or repeated [generated:heldout]")
    evaluation.add_argument(
        "--problems",
        type=int,
        help=f"the first so many problems of each set; 0 = all [{PROBLEMS} of a generated set, all of any other]",
    )
    evaluation.add_argument("--n", type=int, help="samples of each problem [the largest K]")
    evaluation.add_argument(
        "--greedy", action="store_true", help="the likeliest answer too (or alone, without --pass and --cons)"
    )
    evaluation.add_argument(
        "--temperature", type=float, help="[a run: as it was trained; base: 1; any other model: 0.6, as DeepSeek-R1]"
    )
    evaluation.add_argument("--top-p", type=float, help="nucleus sampling [as trained; base: 1; any other model: 0.95]")
    evaluation.add_argument("--max-tokens", type=int, help="of a response [as trained; any other model: 32,768]")
    evaluation.add_argument(
        "--prompt", help="r1-zero, qwen-math, boxed, chat, none, or a .txt or .toml file [as trained; r1-zero]"
    )
    evaluation.add_argument("--stop", action="append", help="a text that ends a response, repeatable [the prompt's]")
    evaluation.add_argument(
        "--extract", help="how answers are read: strict, boxed, gsm8k, last-number, lenient [the prompt's]"
    )
    evaluation.add_argument("--engine", default="auto", help="vllm, transformers, auto [auto]")
    evaluation.add_argument("--dtype", help="float32, bfloat16 [bfloat16 for long responses on a GPU, else float32]")
    evaluation.add_argument("--seed", type=int, default=0)
    evaluation.add_argument(
        "--responses", action="append", type=Path, help="grade this file: lm-eval, lighteval, or JSON lines; repeatable"
    )
    evaluation.add_argument(
        "--cut", action="append", default=[], help="with --responses: a text that ends a response, repeatable"
    )
    evaluation.add_argument("--regrade", action="store_true", help="sample nothing: grade the stored responses again")
    evaluation.add_argument("--runs", default="runs", type=Path, help="folder of the runs [runs]")
    evaluation.add_argument("--out", default="evals", type=Path, help="folder of the evaluations [evals]")
    evaluation.add_argument("--name", help="of the evaluation [the model's, and a hash of what was asked]")
    evaluation.add_argument("--json", metavar="FILE", type=Path, help="write the figures here as well")
    evaluation.set_defaults(pass_at=[], pass_hat=[], cons_at=[])

    comparison = _command(
        commands,
        "compare",
        "two evaluations of the same problems: the difference, and whether it could be chance",
        "compare",
        epilog="example: reasoner compare before after   (names in --out, or folders)",
    )
    comparison.add_argument("a", help="an evaluation: a folder, or its name in --out")
    comparison.add_argument("b", help="the one that it is compared with")
    comparison.add_argument("--out", default="evals", type=Path, help="folder of the evaluations [evals]")
    comparison.add_argument("--force", action="store_true", help="compare what differs in data, prompt or grader, too")
    comparison.add_argument("--json", metavar="FILE", type=Path, help="write the figures here as well")

    report = _command(commands, "report", "a run as one page: report.html and report.md in its folder", "report")
    report.add_argument("name", metavar="RUN", help="a run: a folder, or its name in --runs")
    report.add_argument("--runs", default="runs", type=Path, help="folder of the runs [runs]")

    rollouts = _command(commands, "rollouts", "what a run's model wrote: list, show, grep, export", None)
    actions = rollouts.add_subparsers(
        dest="action", required=True, metavar="list|show|grep|export", parser_class=Parser
    )
    _rollouts(_command(actions, "list", "a line a rollout", "rollouts list"), limit=20)
    shown = _rollouts(_command(actions, "show", "one rollout in full", "rollouts show"), filters=False)
    shown.add_argument("rollout", metavar="STEP.GROUP.SAMPLE", help="its name, as in 12.3.7")
    searched = _rollouts(_command(actions, "grep", "rollouts with these words", "rollouts grep"), limit=20)
    searched.add_argument("pattern", metavar="TEXT", help='words, "a phrase", begin*, -without')
    exported = _rollouts(_command(actions, "export", "into a .jsonl, .parquet or .md file", "rollouts export"))
    exported.add_argument("file", metavar="FILE", type=Path)

    app = _command(
        commands,
        "app",
        "the dashboard: rollouts, curves and second thoughts of your runs in a browser",
        "app",
        epilog="example: reasoner app --port 8000   (also: reasoner dashboard)",
        aliases=["dashboard"],
    )
    app.add_argument("runs", nargs="?", default=Path("runs"), type=Path, help="folder of runs, or a run [runs]")
    app.add_argument("--evals", default="evals", type=Path, help="folder of the evaluations [evals]")
    app.add_argument("--port", default=7860, type=int, help="0 = any that is free [7860]")
    app.add_argument("--host", default="127.0.0.1", help="another one lets others in [127.0.0.1]")
    app.add_argument("--auth", metavar="NAME:PASSWORD", help="who may look")
    app.add_argument("--allow-unauthenticated", action="store_true", help="anyone who can reach --host may look")
    app.add_argument("--open", action="store_true", help="open a browser")

    aha = _command(commands, "aha", "second thoughts over a run: how often, what came of them, the best ones", "aha")
    aha.add_argument("name", metavar="RUN", help="a run: a folder, or its name in --runs")
    aha.add_argument("--runs", default="runs", type=Path, help="folder of the runs [runs]")
    aha.add_argument("--limit", type=int, default=5, help="of the ranked list [5]")
    aha.add_argument("--json", metavar="FILE", type=Path, help="write the figures here as well")

    imported = _command(
        commands,
        "import",
        "rollouts that TRL, verl or prime-rl dumped, as a run to look at",
        "import",
        epilog="example: reasoner import trl my-trl-output --name theirs, then: reasoner app",
    )
    imported.add_argument("system", help="trl, verl, prime-rl")
    imported.add_argument("source", type=Path, help="the folder of the dumps")
    imported.add_argument("--name", help="of the run [the folder's name]")
    imported.add_argument("--runs", default="runs", type=Path, help="folder of the runs [runs]")

    grade = _command(commands, "grade", "grade one answer, or a file of them", "grade")
    grade.add_argument("file", nargs="?", type=Path, help="JSON lines with gold and answer (or response) in each")
    grade.add_argument("--gold")
    grade.add_argument("--answer")
    grade.add_argument("--rule", default="maths", help="maths or countdown [maths]")
    grade.add_argument("--json", metavar="FILE", type=Path, help="write the verdicts here as well")

    data = _command(commands, "data", "list the problem sets, or show problems of one", None)
    actions = data.add_subparsers(dest="action", required=True, metavar="list|show", parser_class=Parser)
    _command(actions, "list", "the problem sets by name", "data list")
    show = _command(actions, "show", "problems of a set", "data show")
    show.add_argument("spec", help="a name of `reasoner data list`, or a .jsonl or .parquet file")
    show.add_argument("-n", "--n", type=int, default=5, help="how many [5]")

    base = _command(commands, "base", "the embedded base model", None)
    actions = base.add_subparsers(dest="action", required=True, metavar="build", parser_class=Parser)
    build = _command(actions, "build", "make the embedded base again, from nothing", "base build")
    build.add_argument("--out", type=Path, default=Path("runs/base"), help="a new folder [runs/base]")
    build.add_argument("--seed", type=int, default=0, help="another corpus and another start [0]")
    build.add_argument("--steps", type=int, help="fewer or more steps than the recipe's")
    build.add_argument("--threads", type=int, default=0, help="torch threads; 0 = all cores [0]")
    return parser


def _command(
    commands: argparse._SubParsersAction[Parser],
    name: str,
    summary: str,
    run: str | None,
    epilog: str = "",
    aliases: Sequence[str] = (),
) -> Parser:
    made = commands.add_parser(
        name, help=summary, description=summary, allow_abbrev=False, epilog=epilog, aliases=aliases
    )
    if run is not None:
        made.set_defaults(run=run)
    return made


def _settings(command: Parser) -> None:
    """The arguments that make the settings of a run."""
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


def _rollouts(command: Parser, *, filters: bool = True, limit: int = 0) -> Parser:
    """The arguments that say which rollouts of which run."""
    command.add_argument("name", metavar="RUN", help="a run: a folder, or its name in --runs")
    command.add_argument("--runs", default="runs", type=Path, help="folder of the runs [runs]")
    if limit:
        command.add_argument("--limit", type=int, default=limit, help=f"so many of them [{limit}]")
    if filters:
        for name, meaning in FIELDS.items():
            command.add_argument(f"--{name}", help=meaning)
    return command
