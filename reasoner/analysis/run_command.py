"""The command, or the call from Python, that repeats a run, as it may be published.

Of local files only the names are shown: a path names a user or a machine.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reasoner.config.presets import find_preset
from reasoner.config.schema import settings
from reasoner.config.stages import STAGES, is_used
from reasoner.runs.run_dir import PROBLEM_FILES, stage_of

PLACES = ("run.dir", "run.name", "run.track", "threads")  # settings of a machine, not of the recipe
_PYTHON = "reasoner.train"  # the origin of settings from Python


def repetition(stored: Mapping[str, Any]) -> tuple[str, str]:
    """(what repeats a run with these settings (run_dir.read_settings), its language): the call of reasoner.train where
    it was started by one, else the command.
    """
    return (python_call(stored), "python") if _PYTHON in stored["origin"].values() else (command(stored), "")


def command(stored: Mapping[str, Any]) -> str:
    """The command that trains this model: the preset, and a flag for every setting that it and the defaults do not
    give and that the stage of training takes.
    """
    presets, values = _choices(stored)
    words = [
        "reasoner",
        *STAGES[stage_of(stored)].command.split(),
        *(word for preset in presets for word in ("--preset", preset)),
    ]
    for key, value in values.items():
        words += [f"--{key}", shown_value(value)]
    return shlex.join(words)


def python_call(stored: Mapping[str, Any]) -> str:
    """The call of reasoner.train that trains this model, with its reward functions by name and weight."""
    presets, values = _choices(stored)
    functions = ", ".join(f"({name}, {weight:g})" for name, weight in (stored.get("reward_functions") or {}).items())
    model, data = (shown_value(values.pop(key, stored["config"][key])) for key in ("model", "data.train"))
    lines = [
        f"model={model!r},",
        f"data={'problems' if data.partition('?')[0] in PROBLEM_FILES else repr(data)},",
        *([f"reward_functions=[{functions}],"] if functions else []),
        *(f"preset={preset!r}," for preset in presets),
        f"settings={ {key: without_folders(value) for key, value in values.items()} },",
    ]
    return "\n".join(["reasoner.train(", *(f"    {line}" for line in lines), ")"])


def _choices(stored: Mapping[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """(the preset, if there is one; settings that it and the defaults do not give)."""
    origins, stage = stored["origin"], stage_of(stored)
    names = sorted({origin.removeprefix("preset ") for origin in origins.values() if origin.startswith("preset ")})
    presets = [find_preset(name, "cpu") for name in names]  # every name there has its machine, but for the base's
    same = {key: value for preset in presets for key, value in preset.values(stored["config"]["algo.name"]).items()}

    def is_repeated(key: str, value: object) -> bool:
        if origins[key].startswith(("preset ", "machine ")):
            return key in same and same[key] == value  # a preset's values may have changed since
        return origins[key] == "default" and key not in same

    values = {
        key: value
        for key, value in stored["config"].items()
        if key in settings() and key not in PLACES and is_used(key, stage) and not is_repeated(key, value)
    }
    return [preset.label for preset in presets], values


def changed_settings(stored: Mapping[str, Any]) -> list[list[str]]:
    """A table of the settings that differ from the defaults, with where they come from; no folder is named."""
    rows = [
        [f"`{key}`", f"`{shown_value(value)}`", file_name(stored["origin"][key])]
        for key, value in stored["config"].items()
        if stored["origin"][key] != "default" and key not in PLACES
    ]
    return [["setting", "value", "from"], *rows]


def without_folders(value: object) -> object:
    """The value of a setting with the names alone of local files (see file_name)."""
    return file_name(value) if isinstance(value, str) else value


def shown_value(value: object) -> str:
    """The value of a setting as a flag takes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(without_folders(value))


def file_name(spec: str) -> str:
    """The name alone where the spec, or a part between commas, is an absolute path or one with dots; else as it is."""
    parts = [Path(part).name if part.startswith(("/", ".", "~")) else part for part in spec.split(",")]
    return ",".join(parts)
