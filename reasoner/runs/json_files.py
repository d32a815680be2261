"""JSON files of run and evaluation folders, read with their shape checked.

A folder may come from elsewhere, or have been damaged: whatever is wrong with a file is a ValueError that names the
file, the line and the reason, and nothing that is read blocks (a named pipe in a file's place would).
"""

from __future__ import annotations

import json
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

_LARGEST = 1e300  # what floats and JavaScript can reckon with
_SHOWN = 40  # characters of a wrong value in a message


@dataclass(frozen=True, slots=True)
class Kind:
    """The values that a field may hold."""

    meaning: str
    holds: Callable[[Any], bool]


def is_number(value: Any) -> bool:
    """A number of JSON, neither a boolean nor too large to reckon with."""
    return type(value) in (int, float) and -_LARGEST < value < _LARGEST


def is_count(value: Any) -> bool:
    """A whole number from 0 on, as steps are counted."""
    return is_number(value) and 0 <= value < 2**31 and value == int(value)


NUMBER = Kind("a number", is_number)
COUNT = Kind("a whole number from 0 on", is_count)
TEXT = Kind("a text", lambda value: isinstance(value, str))
FLAG = Kind("true or false", lambda value: isinstance(value, bool))
OBJECT = Kind("an object", lambda value: isinstance(value, dict))
TEXTS = Kind("a list of texts", lambda value: isinstance(value, list) and all(isinstance(one, str) for one in value))

Fields = Mapping[str, Kind]


def is_file(path: Path) -> bool:
    """Whether there is a file. ValueError where a directory, a named pipe or a link to nothing has its name."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        if path.is_symlink():
            raise ValueError(f"{path} is a link to nothing") from None
        return False
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error
    if not stat.S_ISREG(mode):
        raise ValueError(f"{path} is no file but a {_KINDS.get(stat.S_IFMT(mode), 'device')}")
    return True


_KINDS = {stat.S_IFDIR: "directory", stat.S_IFIFO: "named pipe", stat.S_IFSOCK: "socket"}


def parse(text: str | bytes, where: object) -> Any:
    """The value of a text of JSON; NaN and Infinity, which are none, are refused."""
    try:
        return json.loads(text.decode("utf-8") if isinstance(text, bytes) else text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{where} is damaged: {error}") from error


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def check(value: Any, where: object, needs: Fields, may: Fields | None = None) -> dict[str, Any]:
    """The value as an object with the fields that it needs, and those that it may have, all of their kinds."""
    if not isinstance(value, dict):
        raise ValueError(f"{where} is damaged: it holds no object")
    for name, kind in (*needs.items(), *((name, kind) for name, kind in (may or {}).items() if name in value)):
        if name not in value:
            raise ValueError(f"{where} is damaged: it has no {name!r}")
        if not kind.holds(value[name]):
            raise ValueError(f"{where} is damaged: {name} is {shown(value[name])}; it must be {kind.meaning}")
    return value


def check_each(value: Mapping[str, Any], where: object, needs: Fields, may: Fields | None = None) -> None:
    """Check every value of an object of objects."""
    for name, own in value.items():
        check(own, f"{name} of {where}", needs, may)


def shown(value: Any) -> str:
    """A value as a message can hold it."""
    text = repr(value) if not isinstance(value, int) or is_number(value) else "a huge number"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def read_object(path: Path, needs: Fields | None = None, may: Fields | None = None) -> dict[str, Any]:
    """The object in a file of JSON; {} where there is no file."""
    return check(parse(path.read_bytes(), path), path, needs or {}, may) if is_file(path) else {}


def read_lines(path: Path, needs: Fields, *, grows: bool = True) -> list[dict[str, Any]]:
    """The objects of a file of JSON lines; [] where there is no file. In one that grows line by line a last line that
    was torn in writing is left out.
    """
    lines = path.read_bytes().split(b"\n") if is_file(path) else []
    if lines and not lines[-1]:
        lines.pop()
    values = []
    for number, line in enumerate(lines, 1):
        where = f"{path}, line {number}"
        try:
            value = parse(line, where)
        except ValueError:
            if number < len(lines) or not grows:
                raise
            break
        values.append(check(value, where, needs))
    return values
