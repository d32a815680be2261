"""`reasoner pipeline r1`: a recipe of several stages, each an ordinary command."""

from __future__ import annotations

import argparse
import shlex
from dataclasses import asdict, fields
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reasoner.cli.arguments import Parser, add_action, add_actions, add_json, add_runs_folder, write_result
from reasoner.config.stages import check_used
from reasoner.console import log, print_result
from reasoner.pipelines.r1 import R1, R1Settings
from reasoner.pipelines.stages import SAMPLED_TOKENS, build_stages, parse_change
from reasoner.pipelines.state import WAITING, PipelineState, read_state

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reasoner.pipelines.stages import Stage

_NAMES = (*(one.name for one in fields(R1Settings)), "set")
_DATA = "data_sha256"  # in the record beside the settings
_TYPES = {"str": str, "int": int, "float": float}


def add_arguments(command: Parser) -> None:
    """Add the recipes of the command."""
    r1 = add_action(
        add_actions(command, ("r1",)),
        "r1",
        "DeepSeek-R1's recipe: cold start, RL, rejection sampling, reward model, RL with it, distillation",
        run_r1,
        epilog="The same command goes on where it was stopped. Sizes are for the embedded base on two cores.",
    )
    names = r1.add_mutually_exclusive_group()
    names.add_argument("--name", default="r1", help="name of the pipeline; its runs are NAME-STAGE [r1]")
    names.add_argument(
        "--resume", metavar="NAME", help="go on with this pipeline and its settings; flags beside it replace them"
    )
    add_runs_folder(r1)
    r1.add_argument(
        "--set",
        action="append",
        metavar="[STAGE:]SETTING=VALUE",
        help="a setting of `reasoner train`, sft or reward-model train for all stages that have a use for it, or any "
        "flag of one stage's command; repeatable",
    )
    r1.add_argument("--dry-run", action="store_true", help="print the commands; then exit")
    add_json(r1, "the stages with commands, states, minutes and figures, as pipeline.json has them,")
    for one in fields(R1Settings):
        flag, about = f"--{one.name.replace('_', '-')}", one.metadata["help"]
        if one.type == "bool":
            r1.add_argument(flag, action="store_true", default=None, help=about)
        else:
            default = one.default if one.default != "" else "none"
            r1.add_argument(flag, type=_TYPES[str(one.type)], help=f"{about} [{default}]".replace("%", "%%"))


def run_r1(args: argparse.Namespace) -> int:
    """Run the stages, or go on with them, or print their commands."""
    from reasoner.pipelines.run import check_records, run_pipeline

    name = args.resume or args.name
    if "/" in name or name.startswith("."):
        raise ValueError(f"--name is {name!r}; it must be a plain name (the folder is --runs)")
    folder = args.runs / name
    values = (_stored_settings(folder) if args.resume else {}) | _own_settings(args)
    texts = values.pop("set", [])
    settings, changes = R1Settings(**values), [parse_change(text) for text in texts]
    record = asdict(settings) | {"set": texts}
    stages = build_stages(R1, settings.values(), name=name, runs=args.runs, changes=changes)
    check_inputs(check_commands(stages), args.runs, download=not args.dry_run)
    records = check_records(folder, stages)
    if args.dry_run:
        print_result("\n".join(f"reasoner {shlex.join(stage.command)}" for stage in stages))
        write_result(args, asdict(PipelineState("r1", record, records)))
        return 0
    record |= {_DATA: _data_fingerprint(folder, settings.data)}
    if not settings.student:
        log("no --student is named: the recipe ends without distillation")
    status = run_pipeline(folder, stages, recipe="r1", settings=record)
    state = read_state(folder)
    assert state is not None
    write_result(args, asdict(state))
    return status


def _own_settings(args: argparse.Namespace) -> dict[str, Any]:
    """The settings on the command line, by name; `set` are the texts of --set."""
    values = {name: getattr(args, name) for name in _NAMES}
    return {name: value for name, value in values.items() if value is not None}


def _stored_settings(folder: Path) -> dict[str, Any]:
    """The settings that the pipeline in a folder was started with. ValueError if there is none."""
    state = read_state(folder)
    if state is None:
        raise ValueError(f"there is no pipeline {folder.name!r} in {folder.parent}")
    if unknown := sorted(state.settings.keys() - {*_NAMES, _DATA}):
        raise ValueError(f"the pipeline in {folder} has settings that this version does not know: {unknown[0]!r}")
    return {name: value for name, value in state.settings.items() if name != _DATA}


def _data_fingerprint(folder: Path, data: str) -> str:
    """The fingerprint of the training problems, for the record. ValueError where those of a pipeline that has begun
    were others: its stages would be of different problems.
    """
    from data.registry import fingerprint, load

    now, state = fingerprint(load(data)), read_state(folder)
    has_begun = state is not None and any(one.state != WAITING for one in state.stages)
    before = state.settings if state is not None and has_begun else {}
    if before.get("data") == data and before.get(_DATA, now) != now:
        raise ValueError(
            f"the problems of {data} have changed since the pipeline in {folder} began: restore them, or choose "
            "another --name"
        )
    return now


def check_commands(stages: Sequence[Stage]) -> list[tuple[Stage, argparse.Namespace]]:
    """Parse the command of each stage as the command itself will: (stage, its arguments). ValueError or SystemExit for
    a flag or a setting that it refuses.
    """
    from reasoner.cli.main import build_parser
    from reasoner.cli.train import command_line

    parsed = []
    for stage in stages:
        words = ["1" if word == SAMPLED_TOKENS else word for word in stage.command]
        args = build_parser(words).parse_args(words)
        if "stage" in args:  # of training
            check_used(command_line(args), args.stage)
        parsed.append((stage, args))
    return parsed


def check_inputs(parsed: Sequence[tuple[Stage, argparse.Namespace]], runs: Path, *, download: bool) -> None:
    """ValueError, which names the stage, for a model, problems, examples or a judge that its command would refuse hours
    later. What the stages themselves write is left unchecked, and without `download` so are problems of the hub.
    """
    from data.registry import check as check_problems
    from reasoner.cli.train import command_line
    from reasoner.models.resolve import resolve_cached_model
    from reasoner.preferences.judges import load_judge

    own_runs = {stage.run.name for stage, _ in parsed if stage.run is not None}
    num_problems = cache(partial(_num_problems, download=download))
    for stage, args in parsed:
        values = command_line(args) if "stage" in args else {}
        try:
            if stage.model and Path(stage.model).name not in own_runs:
                resolve_cached_model(stage.model, runs=runs)
            if stage.command[0] == "sample":
                total = num_problems(args.data)
                if total is not None and total <= args.skip:
                    raise ValueError(f"--skip is {args.skip}, and {args.data} has {total:,} problems")
            for key in ("data.train", "validation.data", "eval.heldout"):
                if key in values:
                    check_problems(str(values[key]))
            if getattr(args, "form", "") == "preferences":
                load_judge(args.judge or "rule", noise=args.noise)
            if "sft.data" in values:
                _check_examples(str(values["sft.data"]), parsed, runs)
        except ValueError as error:
            raise ValueError(f"stage {stage.name}: {error}") from None


def _num_problems(data: str, *, download: bool) -> int | None:
    """The number of problems that a spec names. None without `download`, where they are on the hub."""
    from data.registry import check, hub_sources, load

    check(data)
    return len(load(data)) if download or not hub_sources(data) else None


def _check_examples(spec: str, parsed: Sequence[tuple[Stage, argparse.Namespace]], runs: Path) -> None:
    """ValueError for sources of examples that cannot be read, except for those that the stages write."""
    from reasoner.sft.sources import SEPARATOR, check_source

    written = {str(args.file) for _, args in parsed if "form" in args}
    names = [stage.run.name for stage, _ in parsed if stage.run is not None]
    for one in spec.split(SEPARATOR):
        if one not in written and not any(name in one for name in names):
            check_source(one, runs)
