"""Secrets of this user's: texts in files that nobody else can read, made once. It imports nothing of this project, so
that the process of an environment can load it.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from contextlib import suppress
from pathlib import Path


def secret_file(name: str) -> Path:
    """Where the secret of a name is."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "reasoner" / name


def make_secret(path: Path) -> None:
    """Write a random secret where there is none, of processes that start together the first one."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent) as file:  # of mode 600
            file.write(secrets.token_urlsafe(32) + "\n")
            file.flush()
            with suppress(FileExistsError):
                os.link(file.name, path)


def read_secret(path: Path) -> bytes:
    """The secret. ValueError for a file that others can read."""
    secret = path.read_bytes().strip()
    if path.stat().st_mode & 0o077:
        raise ValueError(f"{path} can be read by other users of this machine: chmod 600 {path}")
    return secret
