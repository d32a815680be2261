"""`reasoner config RUN`: the settings of a run; `reasoner config diff A B`: those in which two runs differ; `reasoner
presets`: the presets with the memory they are predicted to take, and the settings of one.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from reasoner.cli.arguments import Parser, add_json, add_option, add_runs_folder, write_result
from reasoner.console import print_result, shorten

_WIDTH = 48  # characters of a value in a table


def add_arguments(command: Parser) -> None:
    command.set_defaults(handler=run_config)
    command.usage = "%(prog)s RUN [OPTION ...]\n       %(prog)s diff A B [OPTION ...]"
    add_option(command, "names", "a run, or diff and two runs", nargs="+", metavar="RUN")
    add_runs_folder(command)
    add_option(command, "--all", "print the settings with their default value too", kind=bool)
    add_json(command, "the settings with their origins, or the differences")


def run_config(args: argparse.Namespace) -> None:
    match args.names:
        case ["diff", a, b]:
            show_differences(args, a, b)
        case [name]:
            show_settings(args, name)
        case _:
            raise ValueError(f"config takes a run, or diff and two runs, not {' '.join(args.names)!r}")


def show_settings(args: argparse.Namespace, name: str) -> None:
    """Print a run's settings with their defaults and origins: those that are not the default, unless --all."""
    from reasoner.config.schema import settings
    from reasoner.runs.run_dir import find_run, read_settings

    stored = read_settings(find_run(name, args.runs))
    origins, known = stored.get("origin", {}), settings()
    rows = [
        {
            "setting": key,
            "value": value,
            "default": known[key].default if key in known else None,
            "origin": origins.get(key, ""),
        }
        for key, value in stored["config"].items()
    ]
    rows = [row for row in rows if args.all or row["value"] != row["default"]]
    heads = ("setting", "value", "default", "origin")
    _print_table([list(heads), *([_text(row[head]) for head in heads] for row in rows)])
    write_result(args, rows)


def show_differences(args: argparse.Namespace, a: str, b: str) -> None:
    """Print the settings, and the fingerprints of model, prompt and problems, in which two runs differ."""
    from reasoner.runs.run_dir import find_run, setting_differences

    rows = setting_differences([_flat(find_run(name, args.runs)) for name in (a, b)])
    if rows:
        _print_table([["setting", a, b], *([row["key"], *map(_text, row["values"])] for row in rows)])
    else:
        print_result(f"{a} and {b} have the same settings, model, prompt and problems")
    write_result(args, rows)


def _flat(run_dir: Path) -> dict[str, Any]:
    """The settings of a run by key, its stage, and its fingerprints and reward functions by name."""
    from reasoner.runs.run_dir import read_settings, stage_of

    stored = read_settings(run_dir)
    parts = {
        f"{part}.{name}": value
        for part in ("fingerprints", "reward_functions")
        for name, value in stored.get(part, {}).items()
    }
    return {"stage": stage_of(stored), **stored["config"], **parts}


def _text(value: object) -> str:
    return "-" if value in (None, "") else shorten(str(value), _WIDTH)


def _print_table(rows: list[list[str]]) -> None:
    """Print the rows with all columns flush left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print_result("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())


def add_presets_arguments(command: Parser) -> None:
    command.set_defaults(handler=show_presets)
    about = "print the settings of this preset [list all presets]"
    add_option(command, "name", about, nargs="?", metavar="NAME[@MACHINE]")
    add_json(command, "the presets with their settings")


def show_presets(args: argparse.Namespace) -> None:
    """Print the presets, a line each, or the settings of one, for this machine unless it names another."""
    from dataclasses import asdict

    from reasoner.config.preset_docs import listing
    from reasoner.config.presets import MACHINES, find_preset, fits, machine_of
    from reasoner.config.recipes import RECIPES
    from reasoner.runtime import gpu_memory

    if args.name is None:
        print_result(listing())
        machines = {name: [one for one in MACHINES if f"{name}@{one}" in fits()] for name in RECIPES}
        rows = [
            {"name": name, "about": recipe.about, "models": recipe.models}
            | {"machines": {one: asdict(fits()[f"{name}@{one}"]) for one in machines[name]}}
            for name, recipe in RECIPES.items()
        ]
        write_result(args, rows)
        return
    preset = find_preset(args.name, machine_of(gpu_memory()))
    others = preset.recipe.other_algorithms
    layers = [*preset.layers(), (f"preset {preset.label}, with another --algo.name", others)]
    for origin, values in layers:
        for key, value in values.items():
            print_result(f"{key:<28} {value!s:<32} {origin}")
    settings = {"settings": preset.values(), "other_algorithms": others}
    write_result(args, {"name": preset.label, "machine": preset.machine, **settings})
