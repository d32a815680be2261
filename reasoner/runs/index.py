"""An index of a run's rollouts: filters and full text in milliseconds over a million of them.

The shards (reasoner.runs.rollouts) are the truth; the index is a SQLite file beside them that any reader may delete and
build again. It holds what is filtered by and the words of the completions; texts and tokens are read from the shards.

A rollout is named STEP.GROUP.SAMPLE, as in 12.3.7. Inside, its number is STEP * 2**24 + its row in the step's shard.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from reasoner.runs.filters import ALL, FIELDS, ORDERS, ROWS, Filter, Found, match, read_filter, sql
from reasoner.runs.index_schema import TABLES, Rows
from reasoner.runs.index_shards import read_shard, shards
from reasoner.runs.json_files import is_file
from reasoner.runs.rollouts import rows_of, shard

__all__ = ["FIELDS", "ORDERS", "Filter", "Found", "RolloutIndex", "match", "place", "read_filter"]

VERSION = 4  # of the tables; an index of another one is built again
_TOGETHER = 32  # shards of a transaction: the words of many are merged at once
_TICK = 10**9  # nanoseconds within which two changes of a folder may bear the same time


class RolloutIndex:
    """The index of one run. One reader at a time brings it up to date; the others read what is there.

    ValueError for a folder without rollouts.
    """

    def __init__(self, run_dir: Path, path: Path | None = None) -> None:
        """`path` is where the index file goes: by default into the run's folder."""
        if not (run_dir / "rollouts").is_dir():
            raise ValueError(f"{run_dir} has no rollouts")
        self.run_dir = run_dir
        self.path = path or place(run_dir)
        is_file(self.path)  # a named pipe, say, is refused
        self._seen = -1  # when the folder of shards had last changed as they were indexed
        self._db = self._opened()

    def close(self) -> None:
        self._db.close()

    def refresh(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Index the shards that are new; the number of rollouts added. A shard that was written again (a resumed run)
        makes the index begin anew. A shard that cannot be read is left out and named by `faults`.
        """
        changed = (self.run_dir / "rollouts").stat().st_mtime_ns
        if changed == self._seen and time.time_ns() - changed > _TICK:
            return 0
        with self._locked() as is_ours:
            if not is_ours:
                return 0
            known = {row[0]: row[1:] for row in self._db.execute("SELECT step, size, changed FROM shards")}
            there = {step: (stat.st_size, stat.st_mtime_ns) for step, stat in shards(self.run_dir)}
            if any(there.get(step) != state for step, state in known.items()):
                self._begin_anew()
                known = {}
            fresh = sorted(there.keys() - known.keys())
            added = 0
            with ThreadPoolExecutor(1) as ahead:  # one shard is read while another is written
                for start in range(0, len(fresh), _TOGETHER):
                    steps = fresh[start : start + _TOGETHER]
                    with _transaction(self._db):
                        for step, found in zip(steps, ahead.map(self._shard, steps), strict=True):
                            added += self._add(step, *there[step], found)
                    if progress is not None:
                        progress(start + len(steps), len(fresh))
            self._seen = changed
            return added

    def pending(self) -> tuple[int, int]:
        """The shards that are indexed, and all that are there."""
        return int(self._db.execute("SELECT COUNT(*) FROM shards").fetchone()[0]), len(list(shards(self.run_dir)))

    def page(
        self, where: Filter = ALL, *, after: int = -1, offset: int = 0, limit: int = 50, order: str = "step"
    ) -> list[Found]:
        """The first `limit` rollouts after that id, or after `offset` others in that order.

        ValueError for a text that cannot be searched, and for an order that is none of ORDERS.
        """
        if order not in ORDERS:
            raise ValueError(f"unknown order {order!r}; known are {', '.join(ORDERS)}")
        if where == ALL and order == "step" and offset:
            after, offset = self._skipped(offset)
        clause, values = sql(where)
        after = max(after, (where.first_step or 0) * ROWS - 1)  # of two lower bounds SQLite walks from the first
        rows = self._db.execute(
            "SELECT * FROM rollouts WHERE id IN "
            f"(SELECT id FROM rollouts WHERE id > ? AND {clause} ORDER BY {ORDERS[order]} LIMIT ? OFFSET ?) "
            f"ORDER BY {ORDERS[order]}",
            [after, *values, limit, offset],
        )
        return [Found(*row) for row in rows]

    def count(self, where: Filter = ALL) -> int:
        if where == ALL:
            return int(self._db.execute("SELECT COALESCE(SUM(rows), 0) FROM shards").fetchone()[0])
        clause, values = sql(where)
        return int(self._db.execute(f"SELECT COUNT(*) FROM rollouts WHERE {clause}", values).fetchone()[0])

    def rank(self, number: int, where: Filter = ALL) -> int:
        """How many rollouts of the filter stand before this one."""
        clause, values = sql(where)
        found = self._db.execute(f"SELECT COUNT(*) FROM rollouts WHERE id < ? AND {clause}", [number, *values])
        return int(found.fetchone()[0])

    def rows(self, query: str, values: Sequence[object] = ()) -> list[dict[str, Any]]:
        """A query over the index's tables, for the figures of the dashboard."""
        found = self._db.execute(query, values)
        names = [column[0] for column in found.description]
        return [dict(zip(names, row, strict=True)) for row in found]

    def shard_rows(self, step: int, columns: Sequence[str]) -> Iterator[tuple[int, dict[str, Any]]]:
        """(id, the columns) of each rollout of a step, null where the shard has not got the column."""
        with pq.ParquetFile(shard(self.run_dir, step)) as file:
            table = file.read([name for name in columns if name in file.schema_arrow.names])
        for number, row in enumerate(rows_of(table)):
            yield step * ROWS + number, dict.fromkeys(columns) | row

    def store(self, rows: Mapping[str, Sequence[Sequence[object]]]) -> None:
        """Put whole rows into tables, all or none; rows with the same key are written over."""
        with _transaction(self._db):
            self._insert(rows)

    def name(self, number: int) -> str:
        """STEP.GROUP.SAMPLE of an id."""
        found = self._db.execute("SELECT step, grp, sample FROM rollouts WHERE id = ?", [number]).fetchone()
        if found is None:
            raise ValueError(f"{self.run_dir} has no rollout with the number {number}")
        return ".".join(map(str, found))

    def _skipped(self, offset: int) -> tuple[int, int]:
        """The last id of the steps that lie wholly before the row at the offset, and how many rows remain to skip."""
        for step, rows in self._db.execute("SELECT step, rows FROM shards ORDER BY step"):
            if offset < rows:
                return step * ROWS - 1, offset
            offset -= rows
        return 2**62, 0

    def find(self, name: str) -> Found:
        """The rollout STEP.GROUP.SAMPLE. ValueError for a name that is none, and for one that is not there."""
        parts = name.split(".")
        if len(parts) != 3 or not all(part.isdecimal() for part in parts):
            raise ValueError(f"{name!r} names no rollout; write STEP.GROUP.SAMPLE, as in 12.3.7")
        step, group, sample = map(int, parts)
        row = self._db.execute(
            "SELECT * FROM rollouts WHERE id BETWEEN ? AND ? AND grp = ? AND sample = ?",
            [step * ROWS, (step + 1) * ROWS - 1, group, sample],
        ).fetchone()
        if row is None:
            raise ValueError(f"{self.run_dir} has no rollout {name}")
        return Found(*row)

    def rollout(self, number: int) -> dict[str, Any]:
        """Everything that the shard has of the rollout with this id."""
        step, row = divmod(number, ROWS)
        path = shard(self.run_dir, step)
        return rows_of(_table(path, path.stat().st_mtime_ns).slice(row, 1))[0]

    def completions(self, numbers: Sequence[int]) -> list[str | None]:
        """The completions of the rollouts with these ids; None where the shard cannot be read any more."""
        texts: list[str | None] = []
        for step, row in (divmod(number, ROWS) for number in numbers):
            path = shard(self.run_dir, step)
            try:
                column = _completions(path, path.stat().st_mtime_ns)
            except (OSError, pa.ArrowException):
                texts.append(None)
            else:
                texts.append(column[row].as_py() if row < len(column) else None)
        return texts

    def faults(self) -> dict[int, str]:
        """Why the shard of a step could not be read."""
        return dict(self._db.execute("SELECT step, fault FROM shards WHERE fault IS NOT NULL"))

    # -------------------------------------------------------------------------------------------- building

    def _opened(self) -> sqlite3.Connection:
        """The file's tables, made where they are missing, of another version or damaged; by one reader at a time."""
        folder = os.open(self.run_dir / "rollouts", os.O_RDONLY)
        try:
            with suppress(OSError):  # a file system that knows no locks
                fcntl.flock(folder, fcntl.LOCK_EX)
            return self._made()
        finally:
            os.close(folder)

    def _made(self) -> sqlite3.Connection:
        try:
            found = self._connected()
            if found.execute("PRAGMA user_version").fetchone()[0] == VERSION:
                return found
            found.close()
        except sqlite3.OperationalError:  # it cannot be had now: no reason to throw it away
            raise
        except sqlite3.DatabaseError:
            pass
        self._remove()
        found = self._connected()
        found.executescript(f"BEGIN; {TABLES} PRAGMA user_version = {VERSION}; COMMIT;")
        return found

    def _connected(self) -> sqlite3.Connection:
        found = sqlite3.connect(self.path, isolation_level=None, timeout=10, check_same_thread=False)
        found.execute("PRAGMA journal_mode = WAL")
        found.execute("PRAGMA synchronous = NORMAL")
        found.execute("PRAGMA cache_size = -65536")  # KiB
        return found

    def _begin_anew(self) -> None:
        self._db.close()
        self._remove()
        self._db = self._opened()

    def _remove(self) -> None:
        for suffix in ("", "-wal", "-shm"):
            self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)

    @contextmanager
    def _locked(self) -> Iterator[bool]:
        """Whether this process is the one that writes."""
        path = self.path.with_name(self.path.name + ".lock")
        is_file(path)
        with path.open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                yield False
            else:
                yield True

    def _shard(self, step: int) -> Rows | str:
        return read_shard(shard(self.run_dir, step), step)

    def _add(self, step: int, size: int, changed: int, found: Rows | str) -> int:
        """A shard's rows, or its fault."""
        tables, fault = ({}, found) if isinstance(found, str) else (vars(found), None)
        num = len(tables.get("rollouts", ()))
        self._db.execute("INSERT INTO shards VALUES (?, ?, ?, ?, ?)", [step, size, changed, num, fault])
        self._insert(tables)
        return num

    def _insert(self, tables: Mapping[str, Sequence[Sequence[object]]]) -> None:
        for name, rows in tables.items():
            if rows:
                into = "words (rowid, completion)" if name == "words" else name
                self._db.executemany(f"INSERT OR REPLACE INTO {into} VALUES ({', '.join('?' * len(rows[0]))})", rows)


def place(run_dir: Path) -> Path:
    """Where a run's index goes: into its folder, or, where that cannot be written, into the user's cache."""
    if os.access(run_dir, os.W_OK):
        return run_dir / "index.sqlite"
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "reasoner" / "index"
    cache.mkdir(parents=True, exist_ok=True)
    return cache / f"{hashlib.sha256(str(run_dir.resolve()).encode()).hexdigest()[:16]}.sqlite"


@contextmanager
def _transaction(db: sqlite3.Connection) -> Iterator[None]:
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


@lru_cache(maxsize=8)
def _table(path: Path, _changed: int) -> pa.Table:
    return pq.read_table(path)


@lru_cache(maxsize=32)
def _completions(path: Path, _changed: int) -> pa.ChunkedArray:
    """That column alone: most of a shard's bytes are tokens and their figures."""
    with pq.ParquetFile(path) as file:
        return file.read(["completion"])["completion"]
