"""Resolve the settings of a run: defaults, a preset, files, the command line. Unknown keys are refused."""

from __future__ import annotations

import ast
import inspect
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from functools import cache
from itertools import chain
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, cast, get_args, get_origin, get_type_hints

from data.registry import name_columns, table_parts
from reasoner.config.limits import check, number_range, value_of
from reasoner.config.other_names import did_you_mean, other_name_message
from reasoner.config.preset_docs import preset_lines
from reasoner.config.schema import Config


@dataclass(frozen=True, slots=True)
class Setting:
    """One field of the tree of settings."""

    key: str  # dotted, such as "optim.lr"
    types: tuple[type, ...]  # NoneType among them where the value may be left to the algorithm
    default: object
    help: str


@dataclass(frozen=True, slots=True)
class RunSettings:
    """The settings, and by key the origin of each value: "default", "preset NAME", a file, or "command line"."""

    config: Config
    origin: dict[str, str]
    note: str = ""  # which preset was chosen and why; empty where one was named


@cache
def settings() -> dict[str, Setting]:
    """Every setting by its dotted key, in the order of the schema."""
    return {setting.key: setting for setting in _walk(Config, "")}


def _walk(node: type, prefix: str) -> list[Setting]:
    """The settings of a dataclass and of the dataclasses inside it."""
    helps = _comments(node)
    hints = get_type_hints(node)
    result: list[Setting] = []
    for field in fields(node):
        hint = hints[field.name]
        if is_dataclass(hint):
            result += _walk(cast(type, hint), f"{prefix}{field.name}.")
        else:
            types = get_args(hint) if get_origin(hint) is UnionType else (hint,)
            default = field.default if field.default is not MISSING else None
            result.append(Setting(prefix + field.name, types, default, helps.get(field.name, "")))
    return result


def _comments(node: type) -> dict[str, str]:
    """The comment above each field, by field name, its lines joined."""
    result: dict[str, str] = {}
    pending: list[str] = []
    sources = [inspect.getsource(base) for base in node.__mro__ if is_dataclass(base)]
    for line in chain.from_iterable(source.splitlines() for source in sources):
        text = line.strip()
        if text.startswith("#"):
            pending.append(text.lstrip("# "))
        elif ":" in text and pending:
            result[text.split(":")[0]] = " ".join(pending)
            pending = []
    return result


def parse(setting: Setting, text: str) -> object:
    """Parse a command-line text by the type of the setting. ValueError naming the key, the text and what is allowed."""
    if NoneType in setting.types and (text == "" or (text.lower() == "none" and str not in setting.types)):
        return None  # where texts are allowed, "none" is a name to choose (algo.baseline none)
    for kind in setting.types:
        if kind is str:
            return text
        if kind is bool and text.lower() in _BOOLS:
            return _BOOLS[text.lower()]
        try:
            value = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            continue
        if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        if kind is int and isinstance(value, int) and not isinstance(value, bool):
            return value
    raise ValueError(f"--{setting.key} takes {_NAMES[setting.types[0]]}, not {text!r}")


_BOOLS = {"true": True, "false": False}
_NAMES = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}


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
        kinds = settings()[key].types
        if not _fits(value, kinds):
            raise ValueError(f"{source}: {key} takes {_NAMES[kinds[0]]}, not {value!r}")


def _fits(value: object, kinds: tuple[type, ...]) -> bool:
    """Whether the value is of one of the types: an int is also a float, a bool is neither."""
    if isinstance(value, bool):
        return bool in kinds
    return isinstance(value, kinds) or (float in kinds and isinstance(value, int))


def _flat(nested: Mapping[str, Any], prefix: str) -> dict[str, object]:
    flat: dict[str, object] = {}
    for name, value in nested.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {prefix + name: value}
    return flat


def resolve(layers: Sequence[tuple[str, Mapping[str, object]]]) -> RunSettings:
    """Apply layers of (name, values by dotted key) over the defaults, the last one winning, and check the result.

    ValueError for an unknown key and for what check() refuses.
    """
    resolved = RunSettings(Config(), dict.fromkeys(settings(), "default"))
    for name, values in layers:
        resolved = with_values(resolved, values, origin=name)
    resolved = replace(resolved, config=_with_columns(resolved.config))
    check(resolved.config)
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
    sets = {
        "data.train": config.data.train,
        "validation.data": config.validation.data,
        "eval.heldout": config.eval.heldout,
    }
    if not any(map(table_parts, sets.values())):
        names = " and ".join(f"data.{name}" for name in columns)
        raise ValueError(f"{names}: without a meaning for {', '.join(map(repr, sets.values()))}, which have no columns")
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


def allowed_values(setting: Setting) -> str:
    """The range of a number or the values of a boolean, for help texts; empty for texts and unbounded numbers."""
    return "true or false" if bool in setting.types else number_range(setting.key)


def markdown() -> str:
    """The text of docs/config.md: every setting with its default, range and meaning; every preset."""
    lines = [
        "# Settings",
        "",
        "Generated by `python -m reasoner.config.resolve > docs/config.md`. On the command line: `--KEY VALUE`; in a "
        "TOML file given with `--config`: the same keys, dots as tables. An empty default of an `algo.` setting means "
        "that the algorithm decides; a preset replaces some defaults (below). `reasoner sft` takes the settings that "
        "have a meaning for it, with other defaults of some ([SFT.md](SFT.md)); `sft.*` are its own.",
        "",
        "| setting | default | allowed | meaning |",
        "|---|---|---|---|",
    ]
    for setting in settings().values():
        default = "" if setting.default in ("", None) else f"`{setting.default}`"
        lines.append(
            f"| `{setting.key}` | {default} | {allowed_values(setting)} | {setting.help.replace('|', chr(92) + '|')} |"
        )
    lines += [
        "",
        "## Presets",
        "",
        *preset_lines(),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(markdown(), end="")
