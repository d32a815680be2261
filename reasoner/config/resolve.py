"""Resolve the settings of a run: defaults, a preset, files, the command line. Unknown keys are refused."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import NoneType
from typing import Any

from data.registry import name_columns, table_parts
from reasoner.config.check import check_values, no_effect
from reasoner.config.other_names import did_you_mean, other_name_message
from reasoner.config.preset_docs import preset_lines
from reasoner.config.schema import Config, sections, settings, value_of
from reasoner.config.setting import Setting


@dataclass(frozen=True, slots=True)
class RunSettings:
    """The settings, and by key the origin of each value: "default", "preset NAME", a file, or "command line"."""

    config: Config
    origin: dict[str, str]
    note: str = ""  # which preset was chosen and why; empty where one was named


def parse(setting: Setting, text: str) -> object:
    """Parse a command-line text by the type of the setting. ValueError naming the key, the text and what is allowed."""
    if NoneType in setting.types and (text == "" or (text.lower() == "none" and str not in setting.types)):
        return None  # where texts are allowed, "none" is a name to choose (algo.baseline none)
    if str in setting.types:
        return text
    try:
        value = _BOOLS[text.lower()] if text.lower() in _BOOLS else ast.literal_eval(text)
    except (ValueError, SyntaxError):
        value = text
    if not setting.has_type(value):
        raise ValueError(f"--{setting.key} takes {setting.kind}, not {text!r}")
    return float(value) if float in setting.types else value


_BOOLS = {"true": True, "false": False}


def unknown_setting_error(key: str) -> ValueError:
    """The error for an unknown key, with its name here if it is TRL's or verl's, or the most similar known one."""
    if message := other_name_message(key):
        return ValueError(f"unknown setting: {message}")
    return ValueError(f"unknown setting {key!r}{did_you_mean(key, settings())}")


def read_file(path: Path) -> dict[str, object]:
    """Read the settings of a TOML file, by dotted key. ValueError for a file that cannot be read or does not fit."""
    try:
        nested = tomllib.loads(path.read_text())
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror}") from error
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path} is not TOML: {error}") from error
    values = _flat(nested, "")
    check_types(values, path)
    return values


def check_types(values: Mapping[str, object], source: Path) -> None:
    """ValueError naming `source` where a key is unknown or a value is not of its setting's type."""
    for key, value in values.items():
        if key not in settings():
            raise ValueError(f"{source}: {unknown_setting_error(key)}")
        if not settings()[key].has_type(value):
            raise ValueError(f"{source}: {key} takes {settings()[key].kind}, not {value!r}")


def _flat(nested: Mapping[str, Any], prefix: str) -> dict[str, object]:
    flat: dict[str, object] = {}
    for name, value in nested.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {prefix + name: value}
    return flat


def resolve(layers: Sequence[tuple[str, Mapping[str, object]]]) -> RunSettings:
    """Apply layers of (name, values by dotted key) over the defaults, the last one winning, and check the result.

    ValueError for an unknown key and for what check_values() refuses.
    """
    resolved = RunSettings(Config(), dict.fromkeys(settings(), "default"))
    for name, values in layers:
        resolved = with_values(resolved, values, origin=name)
    resolved = replace(resolved, config=_with_columns(resolved.config))
    check_values(resolved.config)
    return resolved


def with_values(resolved: RunSettings, values: Mapping[str, object], *, origin: str) -> RunSettings:
    """The settings with other values by dotted key, which are of this origin. ValueError for an unknown key."""
    config = resolved.config
    for key, value in values.items():
        if key not in settings():
            raise unknown_setting_error(key)
        config = _changed(config, key.split("."), value)
    return replace(resolved, config=config, origin=resolved.origin | dict.fromkeys(values, origin))


def _with_columns(config: Config) -> Config:
    """Write data.question and data.answer into the names of the problem sets that they apply to. ValueError where that
    is none.
    """
    columns = {name: value for name in ("question", "answer") if (value := getattr(config.data, name))}
    if not columns:
        return config
    sets = {key: value_of(config, key) for key in ("data.train", "validation.data", "eval.heldout")}
    if not any(map(table_parts, sets.values())):
        name, value = next(iter(columns.items()))
        needs = f"a file or a data set of the hub, which have columns; the problems are {', '.join(sets.values())}"
        raise ValueError(no_effect(f"data.{name}", value, needs))
    for key, spec in sets.items():
        config = _changed(config, key.split("."), name_columns(spec, columns))
    return config


def _changed(node: Any, path: Sequence[str], value: object) -> Any:
    """A copy of a config dataclass with the field at `path` replaced."""
    if len(path) > 1:
        value = _changed(getattr(node, path[0]), path[1:], value)
    return replace(node, **{path[0]: value})


def to_dict(config: Config) -> dict[str, object]:
    """The values by dotted key, in the order of the schema."""
    return {key: value_of(config, key) for key in settings()}


def markdown() -> str:
    """The text of docs/config.md: every setting with its default, range and meaning; every preset."""
    lines = [
        "# Settings",
        "",
        "Generated by `python -m reasoner.config.resolve > docs/config.md`. On the command line: `--KEY VALUE`; in a "
        "TOML file given with `--config`: the same keys, dots as tables. An empty default of an `algo.` setting means "
        "that the algorithm decides; a preset replaces some defaults (below). `reasoner sft` takes the settings that "
        "have a meaning for it, with other defaults of some ([SFT.md](SFT.md)); `sft.*` are its own. A setting that is "
        "named and has no effect in the run is refused with what it needs: a condition on other settings.",
        "",
        *(f"- `{name}.`: {about}" for name, about in sections().items()),
        "",
        "| setting | default | allowed | meaning |",
        "|---|---|---|---|",
    ]
    for setting in settings().values():
        default = "" if setting.default in ("", None) else f"`{setting.default}`"
        meaning, allowed = (text.replace("|", chr(92) + "|") for text in (setting.text, setting.allowed_values))
        lines.append(f"| `{setting.key}` | {default} | {allowed} | {meaning} |")
    lines += ["", "## Presets", "", *preset_lines()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(markdown(), end="")
