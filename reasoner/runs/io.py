"""Files appear whole: written beside, synced, renamed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Where to write what shall stand at the path; it takes its place when the block ends, and is gone when it fails.

    A reader sees the file as it was or as it is, also after a crash of the machine.
    """
    beside = path.with_name(path.name + ".partial")
    try:
        yield beside
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    sync(beside)
    beside.replace(path)
    sync(path.parent)


def write_text(path: Path, text: str) -> None:
    with replacing(path) as beside:
        beside.write_text(text, "utf-8")


def sync(path: Path) -> None:
    """What was written of the file, or of the folder's list of files, is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
