"""`reasoner train --dry-run`: every setting with its origin, and what the run would do."""

from __future__ import annotations

import argparse
from pathlib import Path

from reasoner.cli.arguments import write_result
from reasoner.config.resolve import RunSettings
from reasoner.config.stages import is_used, problem_sets
from reasoner.console import log, print_result
from reasoner.doctor.budget import plan
from reasoner.trainer.resolve_run import values_and_origins


def print_dry_run(args: argparse.Namespace, resolved: RunSettings, run_dir: Path) -> None:
    """Print every setting with its origin (of another stage than reinforcement learning those that it has a use for),
    and what the run would do.

    ValueError or OSError where the run would be refused, as far as that is known without torch and downloads.
    """
    from data import load
    from data.registry import local_parts
    from reasoner.rollouts.dataset import filter_gradable
    from reasoner.trainer.preflight import preflight

    cfg = resolved.config
    checked = preflight(cfg, run_dir, download=False)
    for spec in problem_sets(cfg).values():
        for part in local_parts(spec):
            filter_gradable(load(part))
    if resolved.note:
        log(resolved.note)
    rows = []
    for key, (value, origin) in values_and_origins(resolved, cfg.algo.name).items():
        if cfg.stage == "rl" or is_used(key, cfg.stage):
            print_result(f"{key:<28} {value!s:<24} {origin}")
            rows.append({"setting": key, "value": value, "origin": origin})
    print_result("\n".join([f"run folder: {run_dir}", *plan(cfg)]))
    if checked.model_folder is None:
        print_result(f"model: {cfg.model} is not in the cache; a run downloads it first. Nothing about it was checked")
    write_result(args, {"folder": str(run_dir), "settings": rows})
