"""Checksums of the files in a folder that is written whole and then only read: a model's or an evaluation's.

FOLDER/sha256.json   SHA-256 in hexadecimal digits by the file's path in the folder

A folder without the file, such as a model of the hub, is not checked.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from reasoner.runs.json_files import write_json

CHECKSUMS = "sha256.json"
_CARD = "README.md"  # nothing reads it, and it may be edited


def write_checksums(folder: Path, *, leave_out: Sequence[str] = (), known: Mapping[str, str] | None = None) -> None:
    """Write the checksums of every file in the folder and below, except of the model card and of the names to leave
    out. Those that are `known` are not computed.
    """
    names = [path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*")) if path.is_file()]
    known, others = known or {}, (CHECKSUMS, _CARD, *leave_out)
    sums = {name: known.get(name) or sha256(folder / name) for name in names if name not in others}
    write_json(folder / CHECKSUMS, sums)


def read_checksums(folder: Path) -> dict[str, str]:
    """The checksums in the folder, by path. ValueError if there are none."""
    try:
        checksums = json.loads((folder / CHECKSUMS).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"its checksums cannot be read ({error})") from error
    if not isinstance(checksums, dict):
        raise ValueError(f"its checksums cannot be read ({CHECKSUMS} holds no object)")
    return checksums


def damage(folder: Path, is_read: Callable[[str], bool] = lambda name: True) -> str:
    """Describe what is wrong with the folder's files of the names; empty if it has checksums, and every file is as it
    was written.
    """
    try:
        written = {name: value for name, value in read_checksums(folder).items() if is_read(name)}
    except ValueError as error:
        return str(error)
    wrong = sorted(name for name, value in written.items() if _checksum(folder / name) != value)
    return f"{', '.join(wrong)} not as written" if wrong else ""


def check_model_files(folder: Path, *, weights: bool = True) -> None:
    """Raise ValueError if a file of the model in the folder is not as it was written; without `weights` the small ones
    alone are read. What training keeps in folders below is not checked.
    """
    _check(folder, lambda name: "/" not in name and (weights or not name.endswith(".safetensors")))


def check_file(path: Path) -> None:
    """Raise ValueError if the file is not as it was written, and its folder has the checksum."""
    _check(path.parent, lambda name: name == path.name)


def _check(folder: Path, is_read: Callable[[str], bool]) -> None:
    if (folder / CHECKSUMS).is_file() and (fault := damage(folder, is_read)):
        raise ValueError(
            f"{folder} is damaged: {fault}; take another copy, or delete {CHECKSUMS} if you changed it yourself"
        )


def sha256(path: Path) -> str:
    """SHA-256 of a file, computed once for each state of it."""
    stat = path.stat()
    return _sha256(path, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)


@lru_cache(maxsize=256)
def _sha256(path: Path, *_state: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _checksum(path: Path) -> str:
    """SHA-256 of a regular file; empty where there is none that can be read."""
    try:
        return sha256(path) if path.is_file() else ""  # a named pipe would block
    except OSError:
        return ""
