"""The options of a spec of problems: NAME?KEY=VALUE&KEY=VALUE."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import parse_qsl


def split_options(spec: str) -> tuple[str, list[str]]:
    """(the spec without its options, each option as it is written)."""
    name, _, query = spec.partition("?")
    return name, query.split("&") if query else []


def join_options(name: str, options: Iterable[str]) -> str:
    """The spec with these options: the opposite of split_options."""
    return "?".join(filter(None, (name, "&".join(options))))


def read_options(spec: str) -> dict[str, str]:
    """The decoded options by key. ValueError where one is not KEY=VALUE."""
    name, _, query = spec.partition("?")
    pairs = parse_qsl(query, keep_blank_values=True)
    if query and (not pairs or not all(value for _, value in pairs)):
        raise ValueError(f"cannot read the options of {spec!r}; write {name}?NAME=VALUE&NAME=VALUE")
    return dict(pairs)
