"""`reasoner pipeline r1`: a recipe of several stages, each an ordinary command."""

from __future__ import annotations

import argparse
import shlex
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from reasoner.cli.arguments import Parser, add_action, add_actions, add_json, add_runs_folder, write_result
from reasoner.config.stages import check_used
from reasoner.console import log, print_result
from reasoner.pipelines.r1 import R1, R1Settings
from reasoner.pipelines.stages import SAMPLED_TOKENS, build_stages, parse_change
from reasoner.pipelines.state import PipelineState, new_record, read_state

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from reasoner.pipelines.stages import Stage

_NAMES = (*(one.name for one in fields(R1Settings)), "set")
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
    from reasoner.pipelines.run import run_pipeline

    name = args.resume or args.name
    if "/" in name or name.startswith("."):
        raise ValueError(f"--name is {name!r}; it must be a plain name (the folder is --runs)")
    folder = args.runs / name
    values = (_stored_settings(folder) if args.resume else {}) | _own_settings(args)
    texts = values.pop("set", [])
    settings, changes = R1Settings(**values), [parse_change(text) for text in texts]
    record = asdict(settings) | {"set": texts}
    stages = build_stages(R1, settings.values(), name=name, runs=args.runs, changes=changes)
    check_commands(stages)
    if args.dry_run:
        print_result("\n".join(f"reasoner {shlex.join(stage.command)}" for stage in stages))
        write_result(args, asdict(PipelineState("r1", record, tuple(map(new_record, stages)))))
        return 0
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
    if unknown := sorted(state.settings.keys() - {*_NAMES}):
        raise ValueError(f"the pipeline in {folder} has settings that this version does not know: {unknown[0]!r}")
    return dict(state.settings)


def check_commands(stages: Sequence[Stage]) -> None:
    """Parse the command of each stage as the command itself will. ValueError or SystemExit for a flag or a setting that
    it refuses.
    """
    from reasoner.cli.main import build_parser
    from reasoner.cli.train import command_line

    for stage in stages:
        words = ["1" if word == SAMPLED_TOKENS else word for word in stage.command]
        args = build_parser(words).parse_args(words)
        if "stage" in args:  # of training
            check_used(command_line(args), args.stage)
