"""The names of problem sets as users write them (docs/DATA.md), taken apart: parts of a mixture, and the options of a
file, a folder or a data set of the hub. data.registry says which sets have names of their own, data.environments.spec
how environments are named, data.options how a set is divided.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from data.files import READERS, exists, local_path
from data.options import read_options, split_subset

_WEIGHT = re.compile(r"(.+)=([-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?)")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_RULES = {"system": "drop", "faulty": "skip", "environments": "allow"}  # what an option may be beside "refuse"


@dataclass(frozen=True, slots=True)
class TableSpec:
    """A file, a folder or a data set of the hub, and how its rows are read."""

    name: str  # path, or ORG/NAME
    split: str = ""  # of a data set of the hub
    config: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    system: str = "refuse"
    faulty: str = "refuse"
    environments: str = "refuse"

    @property
    def is_hub(self) -> bool:
        return bool(self.split)


def is_file(spec: str) -> bool:
    """Whether a spec is a local file or folder."""
    path = Path(spec.partition("?")[0])
    is_alone = len(path.parts) == 1 and path.suffix[1:].isalpha()  # ORG/my.data is a data set of the hub
    is_path = spec.startswith(("/", "~", ".")) or path.suffix in READERS or is_alone
    return bool(spec) and (is_path or exists(local_path(str(path))))


def parse_table(spec: str) -> TableSpec:
    """Take the spec of a table apart, all but its subset. ValueError for options that cannot be read."""
    spec, _ = split_subset(spec)
    options, name, split = read_options(spec), spec.partition("?")[0], ""
    if not is_file(spec):
        name, _, split = name.partition(":")
        split = split or "train"
    config = options.pop("config", None)
    if config is not None and not split:
        raise ValueError(f"{spec!r} has config={config}; only a data set of the hub has configurations")
    rules = {key: options.pop(key, "refuse") for key in _RULES}
    for key, value in rules.items():
        if value not in ("refuse", _RULES[key]):
            raise ValueError(f"{spec!r} has {key}={value}; known are refuse, {_RULES[key]}")
    if split and rules["environments"] != "refuse":
        raise ValueError(f"{spec!r} has environments=allow; a data set of the hub has no problems of environments")
    return TableSpec(name, split, config, options, **rules)


def map_parts(spec: str, change: Callable[[str], str]) -> str:
    """The spec with each part of a mixture changed, and the same weights."""
    return ",".join(
        change(part) + ("" if weight is None else f"={_decimal(weight)}") for part, weight in split_mixture(spec)
    )


def split_mixture(spec: str) -> list[tuple[str, Fraction | None]]:
    """The parts of a mixture with their weights, None where none are stated; one part for anything else.

    ValueError for a weight that is not above 0, for parts with and without one, and for a part that stands twice.
    """
    texts = split_list(spec)
    if len(texts) == 1:
        return [(spec, None)]
    parts = [_weighted(text) for text in texts]
    names = [name for name, _ in parts]
    for name, weight in parts:
        if not name:
            raise ValueError(f"the mixture {spec!r} has an empty part")
        if names.count(name) > 1:
            raise ValueError(f"the mixture {spec!r} has {name!r} twice; give it once, with the sum of the weights")
        if weight is not None and weight <= 0:
            raise ValueError(f"the weight of {name!r} in a mixture is {_decimal(weight)}; it must be above 0")
    if len({weight is None for _, weight in parts}) > 1:
        raise ValueError(f"the mixture {spec!r} has parts with and without a weight; write SPEC=WEIGHT for all or none")
    return parts


def split_list(text: str) -> list[str]:
    """The parts between commas, unless the whole names a file or a folder. A comma inside a JSON value of an option
    (`?flags=[1,2]`) divides nothing.
    """
    path = text.partition("?")[0]
    if "," in path and exists(local_path(path)):
        return [text]
    parts: list[str] = []
    for piece in text.split(","):
        if parts and _is_open(parts[-1]):
            parts[-1] += f",{piece}"
        else:
            parts.append(piece)
    return [part.strip() for part in parts]


def _is_open(text: str) -> bool:
    """Whether the options of a spec end inside a quoted text or inside brackets."""
    rest = _QUOTED.sub("", text.partition("?")[2])
    return '"' in rest or sum(map(rest.count, "[{")) > sum(map(rest.count, "]}"))


def _weighted(text: str) -> tuple[str, Fraction | None]:
    match = _WEIGHT.fullmatch(text)
    last_option = re.split("[?&]", text)[-1] if "?" in text else ""
    if match is None or last_option.count("=") == 1:  # gym:chain_sum?size=100 has no weight
        return text, None
    try:
        return match[1], Fraction(match[2])
    except (ValueError, ZeroDivisionError):
        raise ValueError(f"the weight {match[2]!r} of {match[1]!r} is no number") from None


def _decimal(weight: Fraction) -> str:
    return f"{float(weight):.12g}"
