"""The command line. Everything heavy is imported inside the command that needs it."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import NoReturn

from reasoner import __version__
from reasoner.evals import PROBLEMS
from reasoner.presets import PRESETS, preset_for
from reasoner.runs import find_run
from reasoner.settings import Resolved, parse, read_file, resolve, settings, to_dict

SHORT = {"--algo": "algo.name", "--data": "data.train", "--prompt": "prompt.style", "--engine": "engine.name"}


class _Parser(argparse.ArgumentParser):
    """One line for a usage error, with the nearest flag for one that is unknown."""

    def error(self, message: str) -> NoReturn:
        if message.startswith("unrecognized arguments:"):
            flag = message.split(": ", 1)[1].split()[0].split("=")[0]
            known = [option for parser in _all(self) for action in parser._actions for option in action.option_strings]
            close = get_close_matches(flag, known, 1, cutoff=0.5)
            message = f"unknown argument {flag!r}" + (f"; did you mean {close[0]!r}?" if close else "")
        self.exit(2, f"reasoner: error: {message}\n")


def _all(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """The parser and those of its sub-commands."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                yield from _all(child)


def _parser() -> _Parser:
    parser = _Parser(
        prog="reasoner", description="Teach language models to reason about mathematics.", allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)

    train = _command(commands, "train", "run the R1-Zero recipe on a model", _train)
    train.add_argument("--resume", metavar="RUN", help="go on with a run from its last checkpoint")
    train.add_argument(
        "--preset", choices=PRESETS, help="settings for a kind of model; by default the one that fits --model"
    )
    train.add_argument(
        "--config", metavar="FILE", action="append", default=[], type=Path, help="a TOML file of settings; repeatable"
    )
    train.add_argument("--dry-run", action="store_true", help="print the settings, and where each comes from, and stop")
    train.add_argument("--json", metavar="FILE", type=Path, help="write the figures of the final table here as well")
    for setting in settings().values():
        flags = [f"--{setting.key}", *(short for short, key in SHORT.items() if key == setting.key)]
        default = "" if setting.default in ("", None) else f" [{setting.default}]"
        train.add_argument(*flags, dest=setting.key, metavar="V", help=(setting.help + default).replace("%", "%%"))

    evaluation = _command(
        commands,
        "eval",
        "measure a model, or responses of a file: --pass@K, --pass^K, --cons@K for any K, --greedy",
        _eval,
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
        _compare,
        epilog="example: reasoner compare before after   (names in --out, or folders)",
    )
    comparison.add_argument("a", help="an evaluation: a folder, or its name in --out")
    comparison.add_argument("b", help="the one that it is compared with")
    comparison.add_argument("--out", default="evals", type=Path, help="folder of the evaluations [evals]")
    comparison.add_argument("--force", action="store_true", help="compare what differs in data, prompt or grader, too")
    comparison.add_argument("--json", metavar="FILE", type=Path, help="write the figures here as well")

    report = _command(commands, "report", "a run as one page: report.html and report.md in its folder", _report)
    report.add_argument("name", metavar="RUN", help="a run: a folder, or its name in --runs")
    report.add_argument("--runs", default="runs", type=Path, help="folder of the runs [runs]")

    rollouts = _command(commands, "rollouts", "what a run's model wrote: list, show, grep, export", None)
    actions = rollouts.add_subparsers(
        dest="action", required=True, metavar="list|show|grep|export", parser_class=_Parser
    )
    _rollouts(_command(actions, "list", "a line a rollout", _browse("list_rollouts")), limit=20)
    shown = _rollouts(_command(actions, "show", "one rollout in full", _browse("show_rollout")), filters=False)
    shown.add_argument("rollout", metavar="STEP.GROUP.SAMPLE", help="its name, as in 12.3.7")
    searched = _rollouts(_command(actions, "grep", "rollouts with these words", _browse("grep_rollouts")), limit=20)
    searched.add_argument("pattern", metavar="TEXT", help='words, "a phrase", begin*, -without')
    exported = _rollouts(_command(actions, "export", "into a .jsonl, .parquet or .md file", _browse("export_rollouts")))
    exported.add_argument("file", metavar="FILE", type=Path)

    grade = _command(commands, "grade", "grade one answer, or a file of them", _grade)
    grade.add_argument("file", nargs="?", type=Path, help="JSON lines with gold and answer (or response) in each")
    grade.add_argument("--gold")
    grade.add_argument("--answer")
    grade.add_argument("--rule", default="maths", help="maths or countdown [maths]")
    grade.add_argument("--json", metavar="FILE", type=Path, help="write the verdicts here as well")

    data = _command(commands, "data", "list the problem sets, or show problems of one", None)
    actions = data.add_subparsers(dest="action", required=True, metavar="list|show", parser_class=_Parser)
    _command(actions, "list", "the problem sets by name", _data_list)
    show = _command(actions, "show", "problems of a set", _data_show)
    show.add_argument("spec", help="a name of `reasoner data list`, or a .jsonl or .parquet file")
    show.add_argument("-n", type=int, default=5, help="how many [5]")

    base = _command(commands, "base", "the embedded base model", None)
    actions = base.add_subparsers(dest="action", required=True, metavar="build", parser_class=_Parser)
    build = _command(actions, "build", "make the embedded base again, from nothing", _base_build)
    build.add_argument("--out", type=Path, default=Path("runs/base"), help="a new folder [runs/base]")
    build.add_argument("--seed", type=int, default=0, help="another corpus and another start [0]")
    build.add_argument("--steps", type=int, help="fewer or more steps than the recipe's")
    build.add_argument("--threads", type=int, default=0, help="torch threads; 0 = all cores [0]")
    return parser


def _command(
    commands: argparse._SubParsersAction[_Parser],
    name: str,
    summary: str,
    run: Callable[[argparse.Namespace], None] | None,
    epilog: str = "",
) -> _Parser:
    made = commands.add_parser(name, help=summary, description=summary, allow_abbrev=False, epilog=epilog)
    if run is not None:
        made.set_defaults(run=run)
    return made


def _rollouts(command: _Parser, *, filters: bool = True, limit: int = 0) -> _Parser:
    """The arguments that say which rollouts of which run."""
    command.add_argument("name", metavar="RUN", help="a run: a folder, or its name in --runs")
    command.add_argument("--runs", default="runs", type=Path, help="folder of the runs [runs]")
    if limit:
        command.add_argument("--limit", type=int, default=limit, help=f"so many of them [{limit}]")
    if filters:
        for flag, meaning in {
            "--step": "a step, or LOW:HIGH",
            "--problem": "the id of a problem",
            "--subject": "a family",
            "--verdict": "correct, wrong, malformed, no_answer, timed_out, ...",
            "--finish": "stop, length",
            "--reward": "a reward, or LOW:HIGH",
            "--tokens": "a number of tokens, or LOW:HIGH",
            "--text": 'words of the completion, "a phrase", begin*, -without',
        }.items():
            command.add_argument(flag, help=meaning)
        command.add_argument("--level", type=int, help="a level")
    return command


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
        args = _parser().parse_args(rest)
        if args.command == "eval":
            vars(args).update(at)
        elif any(at.values()):
            raise ValueError("--pass@K and --cons@K belong to reasoner eval")
        args.run(args)
    except ValueError as error:
        return _fail(error, 2)
    except (OSError, MemoryError, RuntimeError) as error:
        return _fail(error, 1)
    except KeyboardInterrupt:
        print("reasoner: interrupted", file=sys.stderr)
        return 130
    return 0


def _fail(error: Exception, status: int) -> int:
    if os.environ.get("REASONER_DEBUG"):
        raise error
    print(f"reasoner: error: {error}", file=sys.stderr)
    return status


# --------------------------------------------------------------------------------------------------- commands


def _train(args: argparse.Namespace) -> None:
    resuming = args.resume is not None
    resolved, run_dir = _resumed(args) if resuming else _fresh(args)
    if args.dry_run:
        for key, value in to_dict(resolved.config).items():
            print(f"{key:<28} {value!s:<24} {resolved.origin[key]}")
        print(f"run folder: {run_dir}")
        return
    from reasoner.train import train

    train(resolved, run_dir, resuming=resuming)
    if args.json and (run_dir / "report.json").is_file():
        args.json.write_text((run_dir / "report.json").read_text())


def _given(args: argparse.Namespace) -> dict[str, object]:
    """The settings of the command line."""
    given = {key: getattr(args, key) for key in settings() if getattr(args, key) is not None}
    return {key: parse(settings()[key], text) for key, text in given.items()}


def _fresh(args: argparse.Namespace) -> tuple[Resolved, Path]:
    given = _given(args)
    files = [(str(path), read_file(path)) for path in args.config]
    named = [values["model"] for _, values in [*files, ("", given)] if "model" in values]
    preset = args.preset or preset_for(str(named[-1]) if named else "base", has_gpu=_has_gpu())
    resolved = resolve([(f"preset {preset}", PRESETS[preset]), *files, ("command line", given)])
    cfg = resolved.config
    made = f"{Path(cfg.model).name}-{cfg.algo.name}-{time.strftime('%m%d-%H%M%S')}"
    if "/" in cfg.run.name or cfg.run.name.startswith("."):
        raise ValueError(f"run.name is {cfg.run.name!r}; it must be a plain name (the folder is run.dir)")
    run_dir = Path(cfg.run.dir) / (cfg.run.name or made)
    if run_dir.exists() and any(run_dir.iterdir()):
        raise ValueError(f"{run_dir} is in use; choose another --run.name, or continue it with --resume {run_dir.name}")
    return resolved, run_dir


def _resumed(args: argparse.Namespace) -> tuple[Resolved, Path]:
    """The run's own settings; the command line may change the number of steps and what does not touch the learning."""
    run_dir = find_run(args.resume, Path("runs"))
    stored = json.loads((run_dir / "config.json").read_text())["config"]
    unknown = stored.keys() - settings().keys()
    if unknown:
        raise ValueError(
            f"{run_dir}/config.json has settings that this version does not know: {', '.join(sorted(unknown))}"
        )
    given = _given(args)
    fixed = [key for key in given if not (key == "steps" or key.startswith(("run.", "eval.", "verify.", "engine.")))]
    if fixed or args.config or args.preset:
        what = ", ".join(f"--{key}" for key in fixed) or "--config and --preset"
        raise ValueError(f"{what} cannot change when a run is resumed; steps, run.*, eval.*, verify.* and engine.* can")
    return resolve([("the run", stored), ("command line", given)]), run_dir


def _has_gpu() -> bool:
    """A CUDA device is there, asked without importing torch."""
    return Path("/proc/driver/nvidia/version").exists() or Path("/dev/nvidia0").exists()


def _eval(args: argparse.Namespace) -> None:
    from reasoner.measure import run_eval

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
        from reasoner import browse

        getattr(browse, name)(args)

    return run


def _report(args: argparse.Namespace) -> None:
    from reasoner.page import write_report

    for path in write_report(find_run(args.name, args.runs)):
        print(path)


def _grade(args: argparse.Namespace) -> None:
    from reasoner.grading import grade_file, grade_one

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

    from reasoner.base.build import build
    from reasoner.base.pretrain import Recipe

    recipe = Recipe() if args.steps is None else replace(Recipe(), steps=args.steps)
    build(args.out, seed=args.seed, recipe=recipe, threads=args.threads)
