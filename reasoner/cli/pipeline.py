"""`reasoner pipeline r1`: a recipe of several stages, each a call of the Python API."""

from __future__ import annotations

import argparse
from dataclasses import asdict, fields
from pathlib import Path

from reasoner.cli.arguments import (
    Parser,
    add_action,
    add_actions,
    add_json,
    add_option,
    add_runs_folder,
    values_of,
    write_result,
)
from reasoner.console import log, print_result
from reasoner.recipes.r1 import R1Settings
from reasoner.recipes.stages import PipelineState, read_state

_NAMES = (*(one.name for one in fields(R1Settings)), "set")
_DATA = "data_sha256"  # in the record beside the settings
_TYPES = {"str": str, "int": int, "float": float, "float | None": float}


def add_arguments(command: Parser) -> None:
    r1 = add_action(
        add_actions(command, ("r1",)),
        "r1",
        "DeepSeek-R1's recipe: cold start, RL, rejection sampling, reward model, RL with it, distillation",
        run_r1,
        epilog="The same command goes on where it was stopped. Sizes are for the embedded base on two cores.",
    )
    add_option(r1, "--name", "name of the pipeline; its runs are NAME-STAGE", "r1")
    add_runs_folder(r1)
    about = (
        "a setting of `reasoner train`, sft or reward-model train for all stages that have a use for it, or a setting "
        "or argument of one stage; repeatable"
    )
    add_option(r1, "--set", about, action="append", metavar="[STAGE:]SETTING=VALUE")
    add_option(r1, "--dry-run", "print the calls of the stages; then exit", kind=bool)
    add_json(r1, "the stages with their calls, and whether they are done, as pipeline.json has them,")
    for one in fields(R1Settings):
        flag, about = f"--{one.name.replace('_', '-')}", one.metadata["help"]
        if one.type == "bool":
            add_option(r1, flag, about, kind=bool, default=None)
        else:
            default = "none" if one.default in ("", None) else one.default
            add_option(r1, flag, f"{about} [{default}]".replace("%", "%%"), kind=_TYPES[str(one.type)])


def run_r1(args: argparse.Namespace) -> None:
    from reasoner.recipes.pipeline import run_pipeline, stages_to_run
    from reasoner.recipes.plan import Change, Plan
    from reasoner.recipes.r1 import r1

    name = args.name
    if "/" in name or name.startswith("."):
        raise ValueError(f"--name is {name!r}; it must be a plain name (the folder is --runs)")
    own = values_of(args, _NAMES)
    changes = own.pop("set", [])
    settings = R1Settings(**own)
    plan = Plan(name, args.runs, [Change.parse(text) for text in changes])
    r1(plan, settings)
    plan.check(download=not args.dry_run)
    stages = stages_to_run(plan)
    record = asdict(settings) | {"set": changes}
    if args.dry_run:
        print_result("\n".join(stage.call for stage in stages))
        write_result(args, asdict(PipelineState("r1", record, stages)))
        return
    if not settings.student:
        log("no --student is named: the recipe ends without distillation")
    try:
        run_pipeline(plan, recipe="r1", settings=record | {_DATA: _data_fingerprint(plan.folder, settings.data)})
    finally:
        if state := read_state(plan.folder):
            write_result(args, asdict(state))


def _data_fingerprint(folder: Path, data: str) -> str:
    """The fingerprint of the training problems. ValueError where a pipeline has begun with other ones."""
    from data.registry import fingerprint, load

    now, state = fingerprint(load(data)), read_state(folder)
    before = state.settings if state is not None else {}
    if before.get("data") == data and before.get(_DATA, now) != now:
        raise ValueError(
            f"the problems of {data} have changed since the pipeline in {folder} began: restore them, or choose "
            "another --name"
        )
    return now
