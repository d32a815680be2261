"""The file of a run's index: where it is, and how it is opened, created and deleted."""

from __future__ import annotations

import fcntl
import hashlib
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from reasoner.runs.index_schema import TABLES

VERSION = 9  # of the tables; an index of another version is rebuilt


# File systems of several machines, as Linux names them. SQLite's log of changes needs memory that its users share.
_NETWORK = ("nfs", "nfs4", "cifs", "smb3", "lustre", "gpfs", "beegfs", "ceph", "wekafs", "glusterfs", "afs")
_MOUNTS = Path("/proc/self/mountinfo")


def index_path(run_dir: Path) -> Path:
    """The path of a run's index: in its folder, or in the user's cache where that is not possible."""
    mounts = _MOUNTS.read_text("utf-8", "replace") if _MOUNTS.is_file() else ""
    if os.access(run_dir, os.W_OK) and not is_on_network(run_dir, mounts):
        return run_dir / "index.sqlite"
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "reasoner" / "index"
    cache.mkdir(parents=True, exist_ok=True)
    return cache / f"{hashlib.sha256(str(run_dir.resolve()).encode()).hexdigest()[:16]}.sqlite"


def is_on_network(path: Path, mounts: str) -> bool:
    """Whether a path is on a file system of several machines. `mounts`: the content of Linux' /proc/self/mountinfo."""
    kinds = {}  # by mount point; of two on the same point the later one is seen
    for line in mounts.splitlines():
        mount, _, kind = line.partition(" - ")
        kinds[mount.split()[4].replace("\\040", " ")] = kind.split()[0].removeprefix("fuse.")
    folder = path.resolve()
    return next((kinds[str(at)] in _NETWORK for at in (folder, *folder.parents) if str(at) in kinds), False)


def open_index(path: Path, run_dir: Path) -> sqlite3.Connection:
    """Open the index file with its tables, under a lock: one process at a time creates them."""
    folder = os.open(run_dir / "rollouts", os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(folder, fcntl.LOCK_EX)
        return _open_or_create(path)
    finally:
        os.close(folder)


def _open_or_create(path: Path) -> sqlite3.Connection:
    """Open the index file; a missing or damaged one, or one of another version, is created again."""
    try:
        db = _connect(path)
        if db.execute("PRAGMA user_version").fetchone()[0] == VERSION:
            return db
        db.close()
    except sqlite3.OperationalError:  # busy or not accessible now, which is no reason to delete it
        raise
    except sqlite3.DatabaseError:
        pass
    delete_index(path)
    db = _connect(path)
    db.executescript(f"BEGIN; {TABLES} PRAGMA user_version = {VERSION}; COMMIT;")
    return db


def _connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None, timeout=10, check_same_thread=False)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute("PRAGMA cache_size = -65536")  # KiB
    return db


def delete_index(path: Path) -> None:
    """Delete the index file and those that SQLite keeps beside it."""
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """A block whose changes are made together, or none of them."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")
