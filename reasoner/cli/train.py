"""From the arguments of `reasoner train` and `reasoner doctor` to the settings and the folder of a run."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

from data import load
from data.registry import is_file
from reasoner.config.presets import PRESETS, preset_for, preset_values
from reasoner.config.resolve import Resolved, check_types, parse, read_file, resolve, settings, to_dict
from reasoner.config.schema import Config
from reasoner.doctor.budget import plan
from reasoner.models.resolve import locate
from reasoner.models.size import num_parameters
from reasoner.rollouts.dataset import gradable
from reasoner.runs.run_dir import check_free, find_run, read_settings, way_out
from reasoner.runtime import asleep
from reasoner.trainer.preflight import preflight, problem_sets


def start_training(args: argparse.Namespace) -> None:
    """`reasoner train`."""
    resuming = args.resume is not None
    resolved, run_dir = _resumed(args) if resuming else _fresh(args)
    if args.json and not resolved.config.eval.heldout_problems:
        raise ValueError("--json is for the final table, and eval.heldout_problems is 0: this run makes none")
    if args.dry_run:
        if resolved.note:
            print(resolved.note, file=sys.stderr)
        _dry_run(resolved, run_dir)
        return
    preflight(resolved.config, run_dir)
    from reasoner.trainer.shutdown import Stopped

    with asleep():
        from reasoner.trainer.train import train

    go_on = f"go on with: reasoner train --resume {run_dir}"
    try:
        train(resolved, run_dir, resuming=resuming)
    except Stopped as stopped:
        print(f"reasoner: {stopped}; {go_on}", file=sys.stderr)
        raise SystemExit(stopped.status) from None
    except (OSError, MemoryError, RuntimeError) as error:
        if not (run_dir / "config.json").is_file():
            vanished = "" if run_dir.exists() else f"the run folder {run_dir} has vanished: "
            raise type(error)(f"{vanished}{error}") from error
        raise RuntimeError(f"{error}\nWhat was complete is kept; {go_on}") from error
    if args.json and (run_dir / "report.json").is_file():
        args.json.write_text((run_dir / "report.json").read_text())


def _dry_run(resolved: Resolved, run_dir: Path) -> None:
    """Print every setting as the run would have it, where it comes from, and what the run will do.

    ValueError or OSError for what the run would be refused for, as far as that shows without torch and downloads.
    """
    cfg = resolved.config
    parts = preflight(cfg, run_dir, download=False)
    for spec in problem_sets(cfg):
        if is_file(spec):
            gradable(load(spec))
    of_row = {f"algo.{name}": value for name, value in asdict(parts.algorithm).items()}
    for key, value in to_dict(cfg).items():
        is_open = value is None and key in of_row  # the algorithm's own
        shown, origin = (of_row[key], f"algorithm {cfg.algo.name}") if is_open else (value, resolved.origin[key])
        print(f"{key:<28} {shown!s:<24} {origin}")
    print("\n".join([f"run folder: {run_dir}", *plan(cfg)]))
    if parts.model_folder is None:
        print(f"model: {cfg.model} is not in the cache; a run downloads it first. Nothing about it was checked")


def start_doctor(args: argparse.Namespace) -> int:
    """`reasoner doctor`: its exit status."""
    for name, least in (("problems", 1), ("samples", 2)):  # there is nothing to learn from a group of one
        if getattr(args, name) < least:
            raise ValueError(f"--{name} is {getattr(args, name)}; it must be at least {least}")
    resolved, run_dir = _fresh(args)
    preflight(resolved.config, run_dir)
    with asleep():
        from reasoner.doctor.checkup import examine

    return examine(resolved, run_dir, problems=args.problems, samples=args.samples, json_file=args.json)


def _given(args: argparse.Namespace) -> dict[str, object]:
    """The settings of the command line."""
    given = {key: getattr(args, key) for key in settings() if getattr(args, key) is not None}
    return {key: parse(settings()[key], text) for key, text in given.items()}


def _fresh(args: argparse.Namespace) -> tuple[Resolved, Path]:
    given = _given(args)
    files = [(str(path), read_file(path)) for path in args.config]
    named = [values["model"] for _, values in [*files, ("", given)] if "model" in values]
    model = str(named[-1]) if named else "base"
    runs = [Path(str(values["run.dir"])) for _, values in [*files, ("", given)] if "run.dir" in values]
    preset, why = args.preset, ""
    if preset is None:
        preset, why = preset_for(model, _num_parameters(model, (runs or [Path("runs")])[-1]), has_gpu=_has_gpu())
    algorithms = [str(values["algo.name"]) for _, values in [*files, ("", given)] if "algo.name" in values]
    defaults = preset_values(preset, algorithms[-1] if algorithms else None)
    resolved = resolve([(f"preset {preset}", defaults), *files, ("command line", given)])
    cfg = resolved.config
    if not args.preset and model != "base":
        resolved = replace(resolved, note=_chosen(preset, why, cfg))
    made = f"{Path(cfg.model).name}-{cfg.algo.name}-{time.strftime('%m%d-%H%M%S')}"
    if "/" in cfg.run.name or cfg.run.name.startswith("."):
        raise ValueError(f"run.name is {cfg.run.name!r}; it must be a plain name (the folder is run.dir)")
    run_dir = Path(cfg.run.dir) / (cfg.run.name or made)
    check_free(run_dir)
    return resolved, run_dir


def _num_parameters(model: str, runs: Path) -> int | None:
    """Of a model that is on this machine as a folder or a run; None of one that is not."""
    if model == "base" or not (Path(model).is_dir() or (runs / model).is_dir()):
        return None
    return num_parameters(locate(model, runs=runs))


def _chosen(preset: str, why: str, cfg: Config) -> str:
    """Which preset was taken, why, and what to change."""
    table = f"a table of {cfg.eval.heldout_problems} held-out problems" if cfg.eval.heldout_problems else "no table"
    return (
        f"preset {preset}: {why}. {cfg.steps} steps of {cfg.data.prompts_per_step} x {cfg.algo.group} completions of "
        f"at most {cfg.sampling.max_tokens} tokens on {cfg.data.train}, lr {cfg.optim.lr:g}, {table}; change it with "
        f"--preset ({', '.join(PRESETS)}) or with --steps, --data, --optim.lr, ...: --dry-run lists them all"
    )


_MAY_CHANGE = ("run.", "eval.", "verify.", "engine.")  # of a run that goes on


def _resumed(args: argparse.Namespace) -> tuple[Resolved, Path]:
    """The run's own settings; the command line may change the number of steps and what does not touch the learning."""
    run_dir = find_run(args.resume, Path("runs"))
    try:
        before = read_settings(run_dir)
    except ValueError as error:
        raise ValueError(f"{error}; {way_out(run_dir)}") from error
    stored = before["config"]
    unknown = stored.keys() - settings().keys()
    if unknown:
        raise ValueError(
            f"{run_dir}/config.json has settings that this version does not know: {', '.join(sorted(unknown))}"
        )
    check_types(stored, run_dir / "config.json")
    given = _given(args)
    fixed = [key for key in given if key not in ("steps", "tokens") and not key.startswith(_MAY_CHANGE)]
    if fixed or args.config or args.preset:
        what = ", ".join(f"--{key}" for key in fixed) or "--config and --preset"
        raise ValueError(f"{what} cannot change when a run is resumed; steps, run.*, eval.*, verify.* and engine.* can")
    resolved = resolve([("the run", stored), ("command line", given)])
    return Resolved(resolved.config, before.get("origin", {}) | dict.fromkeys(given, "command line")), run_dir


def _has_gpu() -> bool:
    """A CUDA device is there, asked without importing torch."""
    return Path("/proc/driver/nvidia/version").exists() or Path("/dev/nvidia0").exists()
