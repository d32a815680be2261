"""An index of a run's rollouts: filters and full-text search over a million rollouts in milliseconds.

The index is a SQLite file that can be deleted and rebuilt from the shards (reasoner.runs.rollouts) at any time. It
holds the columns to filter by and the words of the completions; texts and tokens are read from the shards.

A rollout is named STEP.GROUP.SAMPLE, as in 12.3.7. Its id in the index is STEP * 2**24 + its row in the step's shard.
"""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from reasoner.runs.filters import ALL, ORDERS, ROWS, Filter, ids_of_step, sql
from reasoner.runs.index_file import delete_index, index_path, open_index, transaction
from reasoner.runs.index_schema import (
    SUMMARISE,
    Rows,
    read_shard,
    shard_completions,
    shard_digest,
    shard_steps,
    shard_table,
    shards,
)
from reasoner.runs.json_files import is_file
from reasoner.runs.parquet_files import read_table
from reasoner.runs.rollout_row import ListedRollout
from reasoner.runs.rollouts import SCHEMA, rows_of, shard_path
from reasoner.runs.word_search import match

_TOGETHER = 32  # shards per transaction: merging the words of many at once is faster
_EMPTY: dict[str, object] = {"gold": "", "rewards": [], "token_ids": []}  # in place of null or a missing column
_DIGITS = 10  # of a number in the name of a rollout: those of shards have at most as many
_TICK = 10**9  # nanoseconds within which two changes of a folder may have the same time stamp


class RolloutIndex:
    """The index of one run. One process at a time updates it; others read what is indexed so far."""

    def __init__(self, run_dir: Path, path: Path | None = None) -> None:
        """Open the index, or create it. `path`: the index file, by default in the run's folder (see `place`)."""
        if not (run_dir / "rollouts").is_dir():
            raise ValueError(f"{run_dir} has no rollouts")
        self.run_dir = run_dir
        self.path = path or index_path(run_dir)
        is_file(self.path)  # ValueError for a named pipe, say
        self._seen = -1  # modification time of the folder of shards when they were indexed, in nanoseconds
        self._db = open_index(self.path, self.run_dir)

    def close(self) -> None:
        self._db.close()

    def refresh(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Index the new shards; returns the number of rollouts added. `progress` is called with (done, all) shards.

        A shard with other content, or one that is gone (after a rollback), makes the index start again from nothing; a
        resumed run writes the same again. A shard that cannot be read is skipped and listed by `faults`.
        """
        changed = (self.run_dir / "rollouts").stat().st_mtime_ns
        if changed == self._seen and time.time_ns() - changed > _TICK:
            return 0
        with self._locked() as is_ours:
            if not is_ours:
                return 0
            states = shards(self.run_dir)
            if not self._accept_rewritten(states):
                self._db.close()
                delete_index(self.path)
                self._db = open_index(self.path, self.run_dir)
            known = {row[0] for row in self._db.execute("SELECT step FROM shards")}
            fresh = sorted(states.keys() - known)
            added = 0
            with ThreadPoolExecutor(1) as reader:  # one shard is read while another is written
                for start in range(0, len(fresh), _TOGETHER):
                    steps = fresh[start : start + _TOGETHER]
                    contents = reader.map(lambda step: read_shard(shard_path(self.run_dir, step), step), steps)
                    with transaction(self._db):
                        for step, (shard_rows, digest) in zip(steps, contents, strict=True):
                            added += self._add(step, *states[step], shard_rows, digest)
                        for statement in SUMMARISE:
                            self._db.execute(statement, [steps[0]])
                    if progress is not None:
                        progress(start + len(steps), len(fresh))
            self._seen = changed
            return added

    def _accept_rewritten(self, states: Mapping[int, tuple[int, int]]) -> bool:
        """Whether all indexed shards have the content of then. Notes the times of those written again."""
        known = self._db.execute("SELECT step, size, changed, digest FROM shards").fetchall()
        rewritten = [(step, digest) for step, *state, digest in known if states.get(step) != tuple(state)]
        if any(shard_digest(shard_path(self.run_dir, step)) != digest for step, digest in rewritten):
            return False
        with transaction(self._db):
            for step, _ in rewritten:
                self._db.execute("UPDATE shards SET changed = ? WHERE step = ?", [states[step][1], step])
        return True

    def pending(self) -> tuple[int, int]:
        """(number of indexed shards, number of all shards)."""
        return int(self._db.execute("SELECT COUNT(*) FROM shards").fetchone()[0]), len(shard_steps(self.run_dir))

    def page(
        self, where: Filter = ALL, *, after: int = -1, offset: int = 0, limit: int = 50, order: str = "step"
    ) -> list[ListedRollout]:
        """The first `limit` rollouts of the filter in this order, after the id `after` and `offset` more."""
        if order not in ORDERS:
            raise ValueError(f"unknown order {order!r}; known are {', '.join(ORDERS)}")
        if where == ALL and order == "step" and offset:
            after, offset = self._skipped(offset)
        first_step = (where.step or (None, None))[0] or 0
        after = max(after, first_step * ROWS - 1)  # SQLite scans from the first lower bound
        if where.text is not None and order == "step":
            return self._search(where, where.text, after, limit, offset)
        clause, values = sql(where)
        rows = self._db.execute(
            "SELECT * FROM rollouts WHERE id IN "
            f"(SELECT id FROM rollouts WHERE id > ? AND {clause} ORDER BY {ORDERS[order]} LIMIT ? OFFSET ?) "
            f"ORDER BY {ORDERS[order]}",
            [after, *values, limit, offset],
        )
        return [ListedRollout(*row) for row in rows]

    def _search(self, where: Filter, text: str, after: int, limit: int, offset: int) -> list[ListedRollout]:
        """page() of a search in the order of steps, in which the words are stored: no more is read than is shown."""
        clause, values = sql(replace(where, text=None))
        rows = self._db.execute(
            "SELECT rollouts.* FROM words CROSS JOIN rollouts ON id = words.rowid "
            f"WHERE words MATCH ? AND words.rowid > ? AND {clause} ORDER BY words.rowid LIMIT ? OFFSET ?",
            [match(text), after, *values, limit, offset],
        )
        return [ListedRollout(*row) for row in rows]

    def count(self, where: Filter = ALL) -> int:
        if where == ALL:
            return int(self._db.execute("SELECT COALESCE(SUM(rows), 0) FROM shards").fetchone()[0])
        if where.text is not None and where == Filter(text=where.text):  # no row of another table is looked up
            query = "SELECT COUNT(*) FROM words WHERE words MATCH ?"
            return int(self._db.execute(query, [match(where.text)]).fetchone()[0])
        clause, values = sql(where)
        return int(self._db.execute(f"SELECT COUNT(*) FROM rollouts WHERE {clause}", values).fetchone()[0])

    def rank(self, number: int, where: Filter = ALL) -> int:
        """The number of rollouts of the filter whose ids are below this one."""
        if where == ALL:
            step, row = divmod(number, ROWS)
            cursor = self._db.execute("SELECT COALESCE(SUM(rows), 0) FROM shards WHERE step < ?", [step])
            return int(cursor.fetchone()[0]) + row
        clause, values = sql(where)
        cursor = self._db.execute(f"SELECT COUNT(*) FROM rollouts WHERE id < ? AND {clause}", [number, *values])
        return int(cursor.fetchone()[0])

    def rows(self, query: str, values: Sequence[object] = ()) -> list[dict[str, Any]]:
        """Run a query over the index's tables (reasoner.runs.index_schema); returns its rows by column name."""
        cursor = self._db.execute(query, values)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor]

    def shard_rows(self, step: int, columns: Sequence[str]) -> Iterator[tuple[int, dict[str, Any]]]:
        """(id, the columns) of each rollout of a step; a column that the shard lacks is None."""
        for number, row in enumerate(rows_of(read_table(shard_path(self.run_dir, step), columns))):
            yield step * ROWS + number, _filled(dict.fromkeys(columns) | row)

    def steps_without(self, table: str, limit: int | None) -> list[int]:
        """The first `limit` indexed steps, or all, that a table of an analysis with a row a step does not have yet."""
        query = f"SELECT step FROM steps WHERE step NOT IN (SELECT step FROM {table}) ORDER BY step LIMIT ?"
        return [row["step"] for row in self.rows(query, [-1 if limit is None else limit])]

    def store(self, rows: Mapping[str, Sequence[Sequence[object]]]) -> None:
        """Insert complete rows into tables, all or none; rows with the same key are replaced."""
        with transaction(self._db):
            self._insert(rows)

    def name(self, number: int) -> str:
        """The name STEP.GROUP.SAMPLE of the rollout with this id. ValueError for an unknown id."""
        row = self._db.execute('SELECT step, "group", sample FROM rollouts WHERE id = ?', [number]).fetchone()
        if row is None:
            raise ValueError(f"{self.run_dir} has no rollout with the number {number}")
        return ".".join(map(str, row))

    def _skipped(self, offset: int) -> tuple[int, int]:
        """(last id of the steps that lie entirely before the row at the offset, number of rows that remain to skip)."""
        for step, rows in self._db.execute("SELECT step, rows FROM shards ORDER BY step"):
            if offset < rows:
                return step * ROWS - 1, offset
            offset -= rows
        return 2**62, 0

    def find(self, name: str) -> ListedRollout:
        """Look up a rollout by its name STEP.GROUP.SAMPLE. ValueError for a malformed and for an unknown name."""
        parts = name.split(".")
        if len(parts) != 3 or not all(part.isascii() and part.isdecimal() and len(part) <= _DIGITS for part in parts):
            raise ValueError(f"{name!r} is not the name of a rollout; write STEP.GROUP.SAMPLE, as in 12.3.7")
        step, group, sample = map(int, parts)
        row = self._db.execute(
            'SELECT * FROM rollouts WHERE id BETWEEN ? AND ? AND "group" = ? AND sample = ?',
            [*ids_of_step(step), group, sample],
        ).fetchone()
        if row is None:
            raise ValueError(f"{self.run_dir} has no rollout {name}")
        return ListedRollout(*row)

    def rollout(self, number: int) -> dict[str, Any]:
        """The columns of SCHEMA, and others that the shard has, of the rollout with this id."""
        step, row = divmod(number, ROWS)
        path = shard_path(self.run_dir, step)
        (stored,) = rows_of(shard_table(path, path.stat().st_mtime_ns).slice(row, 1))
        return _filled(dict.fromkeys(SCHEMA.names) | stored)

    def completions(self, numbers: Sequence[int]) -> list[str | None]:
        """The completions of the rollouts with these ids; None where the shard can no longer be read."""
        texts: list[str | None] = []
        for step, row in (divmod(number, ROWS) for number in numbers):
            path = shard_path(self.run_dir, step)
            try:
                column = shard_completions(path, path.stat().st_mtime_ns)
            except (OSError, ValueError):
                texts.append(None)
            else:
                texts.append(column[row].as_py() if row < len(column) else None)
        return texts

    def faults(self) -> dict[int, str]:
        """By step: the reason why its shard could not be read."""
        return dict(self._db.execute("SELECT step, fault FROM shards WHERE fault IS NOT NULL"))

    # -------------------------------------------------------------------------------------------- building

    @contextmanager
    def _locked(self) -> Iterator[bool]:
        """Try to take the writers' lock; yields whether this process has it."""
        path = self.path.with_name(self.path.name + ".lock")
        is_file(path)
        with path.open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                is_ours = True
            except BlockingIOError:
                is_ours = False
            except OSError:  # a file system without locks
                is_ours = True
            yield is_ours

    def _add(self, step: int, size: int, changed: int, shard_rows: Rows | str, digest: str) -> int:
        """Insert a shard's rows, or the reason why it could not be read; returns the number of rollouts."""
        tables, fault = ({}, shard_rows) if isinstance(shard_rows, str) else (vars(shard_rows), None)
        num = len(tables.get("rollouts", ()))
        self._db.execute("INSERT INTO shards VALUES (?, ?, ?, ?, ?, ?)", [step, size, changed, num, fault, digest])
        self._insert(tables)
        return num

    def _insert(self, tables: Mapping[str, Sequence[Sequence[object]]]) -> None:
        for name, rows in tables.items():
            if rows:
                into = "words (rowid, completion)" if name == "words" else name
                self._db.executemany(f"INSERT OR REPLACE INTO {into} VALUES ({', '.join('?' * len(rows[0]))})", rows)


def _filled(row: dict[str, Any]) -> dict[str, Any]:
    """A shard's row whose columns of _EMPTY have a value: shards of other programs may lack one."""
    return row | {name: value for name, value in _EMPTY.items() if name in row and row[name] is None}
