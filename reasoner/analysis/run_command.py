"""The command, or the call from Python, that repeats a run, as it may be published.

Of local files only the names are shown: a path names a user or a machine.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reasoner.config.resolve import settings
from reasoner.runs.run_dir import PROBLEM_FILES

PLACES = ("run.dir", "run.name", "run.track", "threads")  # settings of a machine, not of the recipe
_PYTHON = "reasoner.train"  # the origin of settings from Python
_FILES = ("model", "data.train", "prompt.style", "validation.data", "eval.heldout")  # settings that may name files


def is_from_python(stored: Mapping[str, Any]) -> bool:
    """Whether a run (run_dir.read_settings) was started by reasoner.train."""
    return _PYTHON in stored["origin"].values()


def command(stored: Mapping[str, Any]) -> str:
    """The command that trains this model: the preset, and a flag for every other setting that is not a default."""
    presets, values = _choices(stored)
    words = ["reasoner", "train", *(word for preset in presets for word in ("--preset", preset))]
    for key, value in values.items():
        words += [f"--{key}", shown_value(key, value)]
    return shlex.join(words)


def python_call(stored: Mapping[str, Any]) -> str:
    """The call of reasoner.train that trains this model, with its reward functions by name and weight."""
    presets, values = _choices(stored)
    functions = ", ".join(f"({name}, {weight:g})" for name, weight in (stored.get("reward_functions") or {}).items())
    model, data = (shown_value(key, values.pop(key, stored["config"][key])) for key in ("model", "data.train"))
    lines = [
        f"model={model!r},",
        f"data={'problems' if data in PROBLEM_FILES else repr(data)},",
        *([f"reward_functions=[{functions}],"] if functions else []),
        *(f"preset={preset!r}," for preset in presets),
        f"settings={ {key: file_name(value) if key in _FILES else value for key, value in values.items()} },",
    ]
    return "\n".join(["reasoner.train(", *(f"    {line}" for line in lines), ")"])


def _choices(stored: Mapping[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """(the preset, if there is one; settings that are neither its values nor defaults)."""
    origins = stored["origin"]
    presets = sorted({origin.removeprefix("preset ") for origin in origins.values() if origin.startswith("preset ")})
    values = {
        key: value
        for key, value in stored["config"].items()
        if key in settings() and key not in PLACES and not origins[key].startswith(("default", "preset "))
    }
    return presets, values


def shown_value(key: str, value: object) -> str:
    """The value of a setting as a flag takes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return file_name(str(value)) if key in _FILES else str(value)


def file_name(spec: str) -> str:
    """The name alone where the spec is an absolute path or one with dots; anything else as it is."""
    return Path(spec).name if spec.startswith(("/", ".", "~")) else spec
