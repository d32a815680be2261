"""`reasoner expert-iteration`: rounds of sampling, selection and supervised finetuning."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from data.related_sets import own_sets
from reasoner.cli.arguments import Parser, add_json, add_option, write_result
from reasoner.cli.rollouts import add_selection, selection_of
from reasoner.cli.train import add_settings, command_line, settings_files
from reasoner.config.check import check_least
from reasoner.console import log, print_result
from reasoner.runtime import gc_paused
from reasoner.trainer.resolve_run import choose_preset, resolve_new_run

# A round has a few hundred examples, and nothing is chosen by the loss on some of them.
_DEFAULTS: dict[str, object] = {"sft.data": "its own samples", "sft.epochs": 3, "sft.validation_share": 0.0}


def add_arguments(command: Parser) -> None:
    command.set_defaults(handler=run_rounds)
    rounds = command.add_argument_group("rounds")
    add_option(rounds, "--data", "problems: of `reasoner data list`, or a file [data.train of the preset]")
    add_option(rounds, "--rounds", "number of rounds, at least 1", 3)
    add_option(rounds, "--problems", "problems sampled in a round", 420)
    add_option(rounds, "--num-samples", "completions of each problem", 8)
    add_selection(rounds, per_problem=4)
    add_json(command, "the table of the rounds")
    add_settings(command, stage="sft", has_data=False, defaults=_DEFAULTS)


def run_rounds(args: argparse.Namespace) -> None:
    """Run or go on with all rounds, and print the table of their held-out results."""
    check_least(1, rounds=args.rounds, problems=args.problems, num_samples=args.num_samples)
    selection, values, sets = selection_of(args), command_line(args), own_sets(args.data or "")
    own = {"validation.data": sets.validation, "eval.heldout": sets.heldout} if sets else {}
    defaults, files = ("reasoner expert-iteration", _DEFAULTS | own), settings_files(args)
    resolved, _ = resolve_new_run(
        values, origin="command line", preset=args.preset, defaults=defaults, files=files, stage="sft"
    )
    cfg, data = resolved.config, sets.train if sets else args.data
    if cfg.sft.data != _DEFAULTS["sft.data"]:
        raise ValueError("sft.data is set; the examples of expert iteration are its own samples")
    if not data:
        preset, _ = choose_preset(args.preset, cfg.model, Path(cfg.run.dir))
        data = str(preset.values().get("data.train", cfg.data.train))
    with gc_paused():
        from reasoner.distributed.world import RunInterrupt
        from reasoner.recipes.expert_iteration import expert_iteration, table

    name = cfg.run.name or f"{Path(cfg.model).name}-ei-{time.strftime('%m%d-%H%M%S')}"
    sizes = {"rounds": args.rounds, "num_problems": args.problems, "num_samples": args.num_samples}
    try:
        rows = expert_iteration(resolved, name=name, data=data, selection=selection, **sizes)
    except RunInterrupt as interrupt:
        log(f"reasoner: {interrupt}; the same command with --run.name {name} goes on")
        raise SystemExit(interrupt.status) from None
    print_result(f"\n{table(rows)}")
    write_result(args, rows)
