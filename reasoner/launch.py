"""From the arguments of `reasoner train` and `reasoner doctor` to the settings and the folder of a run."""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import replace
from pathlib import Path

from reasoner.collector import asleep
from reasoner.config import Config
from reasoner.locate import locate
from reasoner.presets import PRESETS, preset_for, preset_values
from reasoner.runs import check_free, find_run
from reasoner.settings import Resolved, parse, read_file, resolve, settings, to_dict
from reasoner.size import num_parameters


def start_training(args: argparse.Namespace) -> None:
    """`reasoner train`."""
    resuming = args.resume is not None
    resolved, run_dir = _resumed(args) if resuming else _fresh(args)
    if args.dry_run:
        if resolved.note:
            print(resolved.note, file=sys.stderr)
        for key, value in to_dict(resolved.config).items():
            print(f"{key:<28} {value!s:<24} {resolved.origin[key]}")
        from reasoner.doctor.extent import plan

        print("\n".join([f"run folder: {run_dir}", *plan(resolved.config)]))
        return
    from reasoner.stopping import Stopped

    with asleep():
        from reasoner.train import train

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


def start_doctor(args: argparse.Namespace) -> int:
    """`reasoner doctor`: its exit status."""
    for name, least in (("problems", 1), ("samples", 2)):  # there is nothing to learn from a group of one
        if getattr(args, name) < least:
            raise ValueError(f"--{name} is {getattr(args, name)}; it must be at least {least}")
    resolved, run_dir = _fresh(args)
    with asleep():
        from reasoner.doctor.examine import examine

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
    before = json.loads((run_dir / "config.json").read_text())
    stored = before["config"]
    unknown = stored.keys() - settings().keys()
    if unknown:
        raise ValueError(
            f"{run_dir}/config.json has settings that this version does not know: {', '.join(sorted(unknown))}"
        )
    given = _given(args)
    fixed = [key for key in given if key not in ("steps", "tokens") and not key.startswith(_MAY_CHANGE)]
    if fixed or args.config or args.preset:
        what = ", ".join(f"--{key}" for key in fixed) or "--config and --preset"
        raise ValueError(f"{what} cannot change when a run is resumed; steps, run.*, eval.*, verify.* and engine.* can")
    resolved = resolve([("the run", stored), ("command line", given)])
    return Resolved(resolved.config, before["origin"] | dict.fromkeys(given, "command line")), run_dir


def _has_gpu() -> bool:
    """A CUDA device is there, asked without importing torch."""
    return Path("/proc/driver/nvidia/version").exists() or Path("/dev/nvidia0").exists()
