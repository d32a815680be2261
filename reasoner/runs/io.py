"""Atomic file writes: write a temporary file beside the target, sync it, rename it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write to; it replaces `path` when the block ends, and is deleted when the block fails.

    A reader sees the old file or the new one and nothing between, also after a crash of the machine.
    """
    partial = path.with_name(path.name + ".partial")
    try:
        with named_errors(path):
            yield partial
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    sync(partial)
    partial.replace(path)
    sync(path.parent)


@contextmanager
def named_errors(path: Path) -> Iterator[None]:
    """Name the path in an OSError of the block that names none, as that of a full disk."""
    try:
        yield
    except OSError as error:
        if error.filename is not None:
            raise
        raise type(error)(f"cannot write {path}: {error}") from error


def write_text(path: Path, text: str) -> None:
    """Replace a file atomically by this text in UTF-8."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, content: bytes) -> None:
    """Replace a file atomically by these bytes."""
    with atomic_path(path) as partial:
        partial.write_bytes(content)


def sync(path: Path) -> None:
    """Flush a file, or a folder's list of files, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
