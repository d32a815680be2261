"""Read and write the JSON and JSON lines files of run and evaluation folders.

Readers check the shape of what they read, because a folder may be damaged or come from another machine. Every fault is
a ValueError that names the file, the line and the reason. Only regular files are opened: a named pipe would block.

A line that is added to a file ends with the CRC-32 of what stands before it: {"step": 0, "loss": 0.5, "crc32": "..."}.
Readers compare it and leave it out; a flipped bit would be read as another number. Lines of other programs have none.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NoReturn
from zlib import crc32

from reasoner.runs.io import named_errors, write_bytes

_LARGEST = 1e300  # numbers above it overflow in float arithmetic, here and in JavaScript
_SHOWN = 40  # characters of a wrong value in a message
_CRC = b', "crc32": "'
_WHOLE = re.compile(_CRC + rb".{8}")  # a line with it was not cut off in writing

Torn = Literal["never", "last", "any"]  # which lines may be torn (cut off in writing) and are then left out


@dataclass(frozen=True, slots=True)
class Kind:
    """A set of values that a field may hold."""

    meaning: str
    holds: Callable[[Any], bool]


def is_number(value: Any) -> bool:
    """Whether the value is a JSON number: not a boolean, and small enough for float arithmetic."""
    return type(value) in (int, float) and -_LARGEST < value < _LARGEST


def is_count(value: Any) -> bool:
    """Whether the value is a whole number >= 0 that 32 bits hold, such as a step."""
    return is_number(value) and 0 <= value < 2**31 and value == int(value)


NUMBER = Kind("a number", is_number)
COUNT = Kind("a whole number from 0 on", is_count)
TEXT = Kind("a text", lambda value: isinstance(value, str))
FLAG = Kind("true or false", lambda value: isinstance(value, bool))
OBJECT = Kind("an object", lambda value: isinstance(value, dict))
TEXTS = Kind("a list of texts", lambda value: isinstance(value, list) and all(isinstance(one, str) for one in value))

Fields = Mapping[str, Kind]


def is_file(path: Path) -> bool:
    """Whether a regular file exists at the path. ValueError for anything else there."""
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


def parse(text: str | bytes, where: object, *, allow_nan: bool = False, numbers_as_text: bool = False) -> Any:
    """Parse JSON. NaN and Infinity, which are not JSON, are refused unless `allow_nan`.

    `numbers_as_text`: return numbers as strings, with the digits of the file.

    ValueError that begins with `where`, the place to name in the message.
    """
    try:
        decoded = text.decode("utf-8") if isinstance(text, bytes) else text
        number = str if numbers_as_text else None
        return json.loads(decoded, parse_constant=None if allow_nan else _refuse, parse_int=number, parse_float=number)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{where} is damaged: {error}") from error


def without_crc(line: bytes, where: object) -> bytes:
    """A line of a JSON lines file without its CRC-32, if it has one. ValueError for that of another line."""
    content, has_crc, rest = line.rpartition(_CRC)
    if has_crc and rest != _crc_of(content):
        raise ValueError(f"{where} is damaged: its content does not have its CRC-32")
    return content + b"}" if has_crc else line


def _crc_of(content: bytes) -> bytes:
    return b'%08x"}' % crc32(content)


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def check(value: Any, where: object, needs: Fields, may: Fields | None = None) -> dict[str, Any]:
    """Return the value if it is an object with all fields of `needs`, any of `may`, and each of its kind.

    Other fields are not checked. ValueError that begins with `where` otherwise.
    """
    if not isinstance(value, dict):
        raise ValueError(f"{where} is damaged: it is not a JSON object")
    for name, kind in (*needs.items(), *((name, kind) for name, kind in (may or {}).items() if name in value)):
        if name not in value:
            raise ValueError(f"{where} is damaged: it has no {name!r}")
        if not kind.holds(value[name]):
            raise ValueError(f"{where} is damaged: {name} is {show(value[name])}; it must be {kind.meaning}")
    return value


def check_each(value: Mapping[str, Any], where: object, needs: Fields, may: Fields | None = None) -> None:
    """Check each value of an object of objects, as `check` does."""
    for name, own in value.items():
        check(own, f"{name} of {where}", needs, may)


def show(value: Any) -> str:
    """The value's repr, shortened for a message."""
    text = repr(value) if not isinstance(value, int) or is_number(value) else "a huge number"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def read_object(
    path: Path, needs: Fields | None = None, may: Fields | None = None, *, allow_nan: bool = False
) -> dict[str, Any]:
    """Read a JSON file that holds an object with these fields (see `check`). Returns {} when there is no file."""
    if not is_file(path):
        return {}
    return check(parse(_read_bytes(path), path, allow_nan=allow_nan), path, needs or {}, may)


def read_lines(path: Path, needs: Fields, *, torn: Torn = "last") -> list[dict[str, Any]]:
    """iter_lines() as a list."""
    return list(iter_lines(path, needs, torn=torn))


def iter_lines(path: Path, needs: Fields, *, torn: Torn = "last") -> Iterator[dict[str, Any]]:
    """Yield the objects of a JSON lines file, with these fields, one by one: a file may be larger than the memory.
    None when there is no file.

    `torn` says which lines that do not parse are left out as cut off in writing: "never" none, "last" a last line
    without its newline (a file that grows line by line), "any" every empty line and every line that begins an object
    (a file to which lines were added after a torn one). A line with its CRC-32 was not cut off.
    """
    for number, line in enumerate(_raw_lines(path), 1):
        where, content = f"{path}, line {number}", line.removesuffix(b"\n")
        try:
            value = parse(without_crc(content, where), where)
        except ValueError:
            may_be_torn = content[:1] in (b"{", b"") if torn == "any" else torn == "last" and line == content
            if not may_be_torn or _WHOLE.search(content):
                raise
            continue
        yield check(value, where, needs)


def _raw_lines(path: Path) -> Iterator[bytes]:
    """The lines of a file with their newlines; none when there is no file."""
    if not is_file(path):
        return
    try:
        with path.open("rb") as file:
            yield from file
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error


def scan_steps(path: Path) -> list[tuple[str, dict[str, Any] | None]]:
    """(text, object) of each line of a JSON lines file; [] when there is no regular file.

    The object is None where the line does not parse, or is not an object with a whole number `step`: for readers that
    repair a damaged file instead of refusing it. A complete last line counts even without its newline.
    """
    *lines, rest = _read_bytes(path).split(b"\n") if path.is_file() else [b""]
    return list(map(_scan, [*lines, rest] if rest else lines))


def _scan(line: bytes) -> tuple[str, dict[str, Any] | None]:
    try:
        text = line.decode()
        value = parse(without_crc(line, "line"), "line", allow_nan=True)
    except ValueError:
        return "", None
    return text, value if isinstance(value, dict) and isinstance(value.get("step"), int) else None


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error


# ------------------------------------------------------------------------------------------------ writing


def json_line(value: Mapping[str, object], *, ensure_ascii: bool = True, allow_nan: bool = False) -> str:
    """An object as one line of a JSON lines file, with its newline. ValueError for NaN and infinity unless allowed."""
    return json.dumps(value, ensure_ascii=ensure_ascii, allow_nan=allow_nan) + "\n"


def checked_line(value: Mapping[str, object], *, ensure_ascii: bool = True) -> bytes:
    """json_line() with the CRC-32 of what stands before it."""
    content = json_line(value, ensure_ascii=ensure_ascii).encode("utf-8", "surrogatepass")[:-2]
    return content + _CRC + _crc_of(content) + b"\n"


def finite(value: Any) -> Any:
    """Replace NaN and infinity, which JSON does not have, by None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return value


def write_json(path: Path, value: object) -> None:
    """Replace a file atomically by this value as indented JSON, its numbers `finite`.

    Half of a surrogate pair, which UTF-8 has no bytes for, becomes JSON's own escape: \\udcff.
    """
    text = json.dumps(finite(value), indent=1, ensure_ascii=False) + "\n"
    write_bytes(path, text.encode("utf-8", errors="backslashreplace"))


def append_line(path: Path, value: Mapping[str, object]) -> None:
    """Append an object to a JSON lines file, after a line that was cut off in writing on a new one, and sync."""
    with named_errors(path), path.open("a+b") as file:
        file.seek(max(0, file.tell() - 1))
        is_torn = file.read() not in (b"", b"\n")
        file.write(b"\n" * is_torn + checked_line(value))
        file.flush()
        os.fsync(file.fileno())
