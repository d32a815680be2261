"""`reasoner pipeline r1`: a recipe of several stages, each a call of the Python API."""

from __future__ import annotations

import argparse
from dataclasses import asdict, fields

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
        default, kind = None if one.default == "" else one.default, bool if one.type == "bool" else None
        add_option(r1, f"--{one.name.replace('_', '-')}", one.metadata["help"], default, kind)


def run_r1(args: argparse.Namespace) -> None:
    from data.registry import fingerprint, load
    from reasoner.recipes.pipeline import Pipeline
    from reasoner.recipes.r1 import r1

    own, changes = R1Settings(**values_of(args, (one.name for one in fields(R1Settings)))), args.set or []
    sha256 = {} if args.dry_run else {"data_sha256": fingerprint(load(own.data))}
    pipeline = Pipeline(args.name, args.runs, asdict(own) | {"set": changes} | sha256, changes)
    r1(pipeline, own)
    pipeline.check(download=not args.dry_run)
    try:
        if args.dry_run:
            print_result("\n".join(stage.call for stage in pipeline.stages))
        else:
            if not own.student:
                log("no --student is named: the recipe ends without distillation")
            pipeline.start()
    finally:
        write_result(args, asdict(pipeline.state))
