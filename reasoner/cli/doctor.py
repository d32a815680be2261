"""`reasoner doctor`: check a training run before it starts."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from reasoner.cli.arguments import Parser, add_json, add_option, write_result
from reasoner.cli.train import add_settings, command_line, new_run
from reasoner.config.check import check_least
from reasoner.config.presets import bytes_of_gpu
from reasoner.console import print_result


def add_arguments(command: Parser) -> None:
    command.set_defaults(handler=run_doctor)
    add_option(command, "--problems", "sample the run's first N problems, at least 1", 64)
    add_option(command, "--num-samples", "at most N completions of each, at least 2", 16)
    about = (
        "predict the memory of the run on GPUs of this kind, as many as --processes, which this machine need not have, "
        "and run nothing: rtx-4090, a100, h100, h200 [check the run on this machine]"
    )
    add_option(command, "--gpu", about, metavar="KIND")
    about = (
        "compare a run so far, a folder or a name in --run.dir, with the reference of its preset or --run.reference, "
        "and do nothing else; exit status 2 where it is not normal"
    )
    add_option(command, "--run", about, metavar="RUN")
    add_json(command, "all findings and measurements")
    add_settings(command)


def run_doctor(args: argparse.Namespace) -> int:
    """Print the findings; exit status 2 where something will not work."""
    check_least(1, problems=args.problems)
    check_least(2, num_samples=args.num_samples)  # a group of one has no advantage
    if args.run is not None and args.gpu is None:
        return _compare_run(args)
    resolved, run_dir = new_run(args, gpu_bytes=None if args.gpu is None else bytes_of_gpu(args.gpu))
    from reasoner.runtime import gc_paused
    from reasoner.trainer.preflight import preflight

    model_folder = preflight(resolved.config, run_dir, download=args.gpu is None)
    with gc_paused():
        from reasoner.doctor.checkup import check_run, report
        from reasoner.doctor.gpu_plan import gpu_findings

    if args.gpu is None:
        checks = check_run(resolved, run_dir, problems=args.problems, samples=args.num_samples)
    else:
        checks = gpu_findings(resolved.config, model_folder, args.gpu)
    return report(resolved, checks, args.json)


def _compare_run(args: argparse.Namespace) -> int:
    """Say whether a run is normal. ValueError where it has no reference, or too few steps."""
    from reasoner.runs.bands import FIRST_STEP
    from reasoner.runs.metrics import read_metrics
    from reasoner.runs.reference import compare_run
    from reasoner.runs.run_dir import find_run

    named = command_line(args)
    run_dir = find_run(args.run, Path(str(named.get("run.dir", "runs"))))
    comparison = compare_run(run_dir, read_metrics(run_dir), file=str(named.get("run.reference", "")))
    if comparison is None:
        raise ValueError(f"{run_dir} has no reference; name one by --run.reference (reasoner reference make)")
    if comparison.num_steps <= FIRST_STEP:
        raise ValueError(f"{run_dir} has {comparison.num_steps} steps; a run is compared from {FIRST_STEP + 1} on")
    print_result(str(comparison))
    write_result(args, asdict(comparison))
    return 0 if comparison.is_inside else 2
