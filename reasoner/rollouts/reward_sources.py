"""Reward functions as setting reward.functions lists them: FILE.py:function or module:function, with weights."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from reasoner.config.other_names import did_you_mean
from reasoner.rollouts.reward_functions import RewardFunction, reward_functions_of
from reasoner.rollouts.weighted_names import parse_weighted


def load_reward_functions(spec: str) -> list[RewardFunction]:
    """Parse "rewards.py:brevity=0.5,package.module:style" and import the functions. ValueError for a faulty part."""
    entries: list[tuple[Callable[..., Any], float]] = []
    names: list[str] = []
    files: dict[Path, ModuleType] = {}
    for path, weight in parse_weighted("reward.functions", spec, "FILE.py:function").items():
        place, _, name = path.rpartition(":")
        if not place or not name:
            raise ValueError(
                f"reward.functions has {path!r}; it takes FILE.py:function=weight or module:function=weight"
            )
        try:
            module = _module(place, files)
        except Exception as error:  # any statement of the user's module may fail
            raise ValueError(f"reward.functions has {path!r}: {type(error).__name__}: {error}") from error
        if not hasattr(module, name):
            raise ValueError(
                f"reward.functions has {path!r}: {place} has no {name!r}{did_you_mean(name, vars(module))}"
            )
        names.append(name)
        entries.append((getattr(module, name), weight))
    return reward_functions_of(entries, names)


def _module(place: str, files: dict[Path, ModuleType]) -> ModuleType:
    """The module of a file or of a name. A file is executed once: `files` gets its module."""
    if not place.endswith(".py"):
        return importlib.import_module(place)
    path = Path(place).expanduser().resolve()
    if path not in files:
        files[path] = _execute(path)
    return files[path]


def _execute(path: Path) -> ModuleType:
    source = importlib.util.spec_from_file_location(f"reward_file_{path.stem}", path)
    assert source is not None and source.loader is not None
    module = importlib.util.module_from_spec(source)
    sys.modules[source.name] = module  # as dataclasses of the file need
    source.loader.exec_module(module)
    return module
