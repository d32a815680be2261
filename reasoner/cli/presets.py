"""`reasoner presets`: the presets with the memory they are predicted to take, and the settings of one."""

from __future__ import annotations

import argparse

from reasoner.cli.arguments import Parser, add_json, add_option, write_result
from reasoner.console import print_result


def add_arguments(command: Parser) -> None:
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
