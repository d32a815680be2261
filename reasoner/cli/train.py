"""`reasoner train` and `reasoner sft`: resolve the settings and the run folder, then train, or print what the run
would do. `reasoner doctor` takes the same settings.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from reasoner.cli.arguments import LineHelp, Parser, add_json, add_option, write_result
from reasoner.config.check import names_in
from reasoner.config.preset_docs import listing
from reasoner.config.presets import MACHINES
from reasoner.config.resolve import RunSettings, parse, read_file
from reasoner.config.schema import sections, settings
from reasoner.config.setting import Setting
from reasoner.config.stages import STAGES, is_used, problem_sets
from reasoner.console import log, print_result, silent
from reasoner.distributed.launch import launch
from reasoner.distributed.world import RankError, World, open_world
from reasoner.rl.algorithms import ALGORITHMS
from reasoner.trainer.resolve_run import (
    CANNOT_CHANGE,
    resolve_new_run,
    resolve_resumed_run,
    values_and_origins,
)

_SHORT = {  # shorter flags of settings
    "algo.name": "--algo", "prompt.style": "--prompt", "engine.name": "--engine", "tools.names": "--tools",
    "teacher.model": "--teacher", "run.track": "--track",
}  # fmt: skip
_METAVARS = {int: "INT", float: "NUMBER", str: "TEXT", bool: "BOOL"}


# --------------------------------------------------------------------------------------------------- arguments


def add_arguments(command: Parser, stage: str = "rl") -> None:
    """Add the arguments of a stage of training; a reward model has no final table for --json."""
    command.set_defaults(handler=run_train, stage=stage, json=None)
    about = "continue this run (a folder, or a name in runs/) from its last checkpoint"
    add_option(command, "--resume", about, metavar="RUN")
    about = "print every setting with its origin and what the run would do; then exit"
    add_option(command, "--dry-run", about, kind=bool)
    if stage != "reward-model":
        add_json(command, "the figures of the final table, with --dry-run the settings,")
    add_settings(command, stage)


def add_sft_arguments(command: Parser) -> None:
    add_arguments(command, "sft")


def add_settings(
    command: Parser, stage: str = "rl", *, has_data: bool = True, defaults: Mapping[str, object] | None = None
) -> None:
    """Add --preset, --config and a flag for every setting, in groups by section. Those that the stage of training has
    no use for are not in the help: they are known, and refused with the reason. `has_data`: whether --data is short for
    the setting that names what the stage trains on. `defaults`: those of the command, beside the stage's.

    Presets and algorithms have defaults of their own: --dry-run shows those of a command line, with their origins.
    """
    command.usage = "%(prog)s [OPTION ...] [--SETTING VALUE ...]"
    about = (
        "defaults for a size of model, listed at the end [the one that fits --model], and for a machine: "
        f"{', '.join(MACHINES)} [this one]"
    )
    add_option(command, "--preset", about, metavar="NAME[@MACHINE]")
    about = "read settings from this TOML file; repeatable, later files win, the command line wins over all"
    command.add_argument("--config", metavar="FILE", action="append", default=[], type=Path, help=about)
    command.epilog, command.formatter_class = listing(), LineHelp
    used = {key: setting for key, setting in settings().items() if is_used(key, stage)}
    names = {key.split(".")[0] for key in used}
    groups = {name: command.add_argument_group(name, about) for name, about in sections().items() if name in names}
    short = _SHORT | ({STAGES[stage].source: "--data"} if has_data else {})
    defaults = {**STAGES[stage].defaults, **(defaults or {})}
    for key, setting in settings().items():
        flags = [f"--{key}", *([short[key]] if key in short else [])]
        group = groups.get(key.split(".")[0] if "." in key else "run", command)
        about = _help(setting, stage, defaults.get(key, setting.default)) if key in used else argparse.SUPPRESS
        group.add_argument(*flags, dest=key, metavar=_METAVARS[setting.types[0]], help=about)


def _help(setting: Setting, stage: str, default: object) -> str:
    has_needs = all(is_used(name, stage) for name in names_in(setting.needs))  # sft has no algo.trust
    allowed = ", ".join(ALGORITHMS) if setting.key == "algo.name" else setting.allowed_values
    values = "; ".join(filter(None, (allowed, f"default: {'empty' if default in ('', None) else default}")))
    return f"{setting.text if has_needs else setting.help} ({values})".replace("%", "%%")


# --------------------------------------------------------------------------------------------------- handler


def run_train(args: argparse.Namespace) -> None:
    """Start or resume a run, or print what --dry-run asks for. Of several processes: start them, or be one of them."""
    with open_world() as world, silent(not world.is_first):
        if world.size > 1:
            if args.processes not in (None, str(world.size)):
                raise ValueError(
                    f"--processes is {args.processes}, and torchrun has started {world.size}; leave it out"
                )
            args.processes = str(world.size)
        resolved, run_dir = world.from_first(lambda: _resolved_run(args), "the settings of the run")
        if args.dry_run:
            world.from_first(lambda: print_dry_run(args, resolved, run_dir), "the print of the settings")
            return
        if world.size == 1 and resolved.config.processes > 1:
            launch(resolved.config.processes, args.words)
        with world.name_errors(lambda: "before the first step"):
            _train(args, resolved, run_dir, world)


def _resolved_run(args: argparse.Namespace) -> tuple[RunSettings, Path]:
    """The settings and the folder of the run that the command line starts or resumes. Checked, but for a dry run."""
    resolved, run_dir = new_run(args) if args.resume is None else _resumed_run(args)
    if args.json and not args.dry_run and not resolved.config.eval.heldout_problems:
        raise ValueError("--json is for the final table, and eval.heldout_problems is 0: this run makes none")
    if not args.dry_run:
        from reasoner.trainer.preflight import preflight

        preflight(resolved.config, run_dir)
    return resolved, run_dir


def print_dry_run(args: argparse.Namespace, resolved: RunSettings, run_dir: Path) -> None:
    """Print every setting that the stage has a use for, with its origin, and the folder of the run."""
    from data import load
    from data.spec import parts
    from reasoner.rollouts.dataset import filter_gradable
    from reasoner.trainer.preflight import preflight

    cfg = resolved.config
    folder = preflight(cfg, run_dir, download=False)
    for spec in problem_sets(cfg).values():
        for part in parts(spec):
            if part.kind == "file":
                filter_gradable(load(part.text))
    if resolved.note:
        log(resolved.note)
    rows = []
    for key, (value, origin) in values_and_origins(resolved, cfg.algo.name).items():
        if cfg.stage == "rl" or is_used(key, cfg.stage):
            print_result(f"{key:<28} {value!s:<24} {origin}")
            rows.append({"setting": key, "value": value, "origin": origin})
    print_result(f"run folder: {run_dir}")
    if folder is None:
        print_result(f"model: {cfg.model} is not in the cache; a run downloads it first. Nothing about it was checked")
    write_result(args, {"folder": str(run_dir), "settings": rows})


def _train(args: argparse.Namespace, resolved: RunSettings, run_dir: Path, world: World) -> None:
    """Train in this process, which is one of `world`. RuntimeError or OSError that says how to go on."""
    from reasoner.distributed.world import RunInterrupt
    from reasoner.runtime import gc_paused

    with gc_paused():
        from reasoner.trainer.run_stage import run_stage

    resume_hint = f"resume with: reasoner {STAGES[args.stage].command} --resume {run_dir}"
    try:
        run_stage(resolved, run_dir, resuming=args.resume is not None, world=world)
    except RunInterrupt as interrupt:
        log(f"reasoner: {interrupt}; {resume_hint}")
        raise SystemExit(interrupt.status) from None
    except (OSError, MemoryError, RuntimeError) as error:
        if not (run_dir / "config.json").is_file():
            is_lost = isinstance(error, FileNotFoundError) and not run_dir.exists()
            vanished = f"the run folder {run_dir} has vanished: " if is_lost else ""
            raise type(error)(f"{vanished}{error}") from error
        kind = RankError if isinstance(error, RankError) else RuntimeError
        raise kind(f"{error}\nWhat was complete is kept; {resume_hint}") from error
    from reasoner.evals.before_after import next_commands

    print_result(next_commands(run_dir, resolved.config))
    if args.json and world.is_first and (run_dir / "report.json").is_file():
        args.json.write_text((run_dir / "report.json").read_text())


# --------------------------------------------------------------------------------------------------- settings


def command_line(args: argparse.Namespace) -> dict[str, object]:
    texts = {key: getattr(args, key) for key in settings() if getattr(args, key, None) is not None}
    return {key: parse(settings()[key], text) for key, text in texts.items()}


def new_run(args: argparse.Namespace, *, gpu_bytes: int | None = None) -> tuple[RunSettings, Path]:
    """The settings of a new run (preset, files, command line) and its folder. ValueError for a folder in use.
    `gpu_bytes`: memory of the GPU that it is for; None: this machine's.
    """
    return resolve_new_run(
        command_line(args),
        origin="command line",
        preset=args.preset,
        files=settings_files(args),
        gpu_bytes=gpu_bytes,
        stage=getattr(args, "stage", "rl"),
    )


def settings_files(args: argparse.Namespace) -> list[tuple[str, Mapping[str, object]]]:
    return [(str(path), read_file(path)) for path in args.config]


def _resumed_run(args: argparse.Namespace) -> tuple[RunSettings, Path]:
    """The stored settings of the run of --resume, with what the command line changes, and its folder."""
    if args.config or args.preset:
        raise ValueError(f"--config and --preset {CANNOT_CHANGE}")
    values = command_line(args)
    runs = Path(str(values.pop("run.dir", "runs")))  # where it is looked for
    return resolve_resumed_run(args.resume, values, origin="command line", runs=runs, stage=args.stage)
