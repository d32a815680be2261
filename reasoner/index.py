"""An index of a run's rollouts: filters and full text in milliseconds over a million of them.

The shards (reasoner.store) are the truth; the index is a SQLite file beside them that any reader may delete and build
again. It holds what is filtered by and the words of the completions; texts and tokens are read from the shards.

A rollout is named STEP.GROUP.SAMPLE, as in 12.3.7. Inside, its number is STEP * 2**24 + its row in the step's shard.
"""

from __future__ import annotations

import fcntl
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from reasoner.store import shard

VERSION = 1  # of the tables; an index of another one is built again
_ROWS = 2**24  # rollouts of a step, at most

_TABLES = """
CREATE TABLE shards (step INTEGER PRIMARY KEY, size INTEGER, changed INTEGER, rows INTEGER, fault TEXT);
CREATE TABLE rollouts (
    id INTEGER PRIMARY KEY, step INTEGER, grp INTEGER, sample INTEGER, problem TEXT, subject TEXT, level INTEGER,
    verdict TEXT, well_formed INTEGER, finish TEXT, reward REAL, advantage REAL, tokens INTEGER
);
CREATE INDEX by_problem ON rollouts (problem, id);
CREATE INDEX by_verdict ON rollouts (verdict, id);
CREATE VIRTUAL TABLE words USING fts5 (completion, content='', tokenize='unicode61');
"""
_COLUMNS = (
    "group", "sample", "problem_id", "subject", "level", "verdict", "well_formed", "finish", "reward", "advantage",
    "token_ids", "completion",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Filter:
    """Which rollouts; None is any. Bounds are inclusive."""

    first_step: int | None = None
    last_step: int | None = None
    problem: str | None = None
    subject: str | None = None
    level: int | None = None
    verdict: str | None = None
    well_formed: bool | None = None
    finish: str | None = None
    least_reward: float | None = None
    most_reward: float | None = None
    least_tokens: int | None = None
    most_tokens: int | None = None
    text: str | None = None  # words; "a phrase"; begin*; -without


@dataclass(frozen=True, slots=True)
class Found:
    """A rollout as it stands in a list."""

    id: int
    step: int
    group: int
    sample: int
    problem: str
    subject: str | None
    level: int | None
    verdict: str
    well_formed: bool
    finish: str
    reward: float
    advantage: float
    tokens: int

    @property
    def name(self) -> str:
        return f"{self.step}.{self.group}.{self.sample}"


class RolloutIndex:
    """The index of one run. One reader at a time brings it up to date; the others read what is there.

    ValueError for a folder without rollouts.
    """

    def __init__(self, run_dir: Path, path: Path | None = None) -> None:
        """`path` is where the index file goes: by default into the run's folder."""
        if not (run_dir / "rollouts").is_dir():
            raise ValueError(f"{run_dir} has no rollouts")
        self.run_dir = run_dir
        self.path = path or run_dir / "index.sqlite"
        self._db = self._opened()

    def close(self) -> None:
        self._db.close()

    def refresh(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Index the shards that are new; the number of rollouts added. A shard that was written again (a resumed run)
        makes the index begin anew. A shard that cannot be read is left out and named by `faults`.
        """
        with self._locked() as is_ours:
            if not is_ours:
                return 0
            known = {row[0]: row[1:] for row in self._db.execute("SELECT step, size, changed FROM shards")}
            there = {step: (stat.st_size, stat.st_mtime_ns) for step, stat in self._shards()}
            if any(there.get(step) != state for step, state in known.items()):
                self._begin_anew()
                known = {}
            fresh = sorted(there.keys() - known.keys())
            added = 0
            for done, step in enumerate(fresh, 1):
                added += self._add(step, *there[step])
                if progress is not None:
                    progress(done, len(fresh))
            return added

    def page(self, where: Filter = Filter(), *, after: int = -1, limit: int = 50) -> list[Found]:
        """The first `limit` rollouts after that id, in order. ValueError for a text that cannot be searched."""
        clause, values = _sql(where)
        rows = self._db.execute(
            f"SELECT * FROM rollouts WHERE id > ? AND {clause} ORDER BY id LIMIT ?", [after, *values, limit]
        )
        return [Found(*row) for row in rows]

    def count(self, where: Filter = Filter()) -> int:
        clause, values = _sql(where)
        return int(self._db.execute(f"SELECT COUNT(*) FROM rollouts WHERE {clause}", values).fetchone()[0])

    def find(self, name: str) -> Found:
        """The rollout STEP.GROUP.SAMPLE. ValueError for a name that is none, and for one that is not there."""
        parts = name.split(".")
        if len(parts) != 3 or not all(part.isdecimal() for part in parts):
            raise ValueError(f"{name!r} names no rollout; write STEP.GROUP.SAMPLE, as in 12.3.7")
        step, group, sample = map(int, parts)
        row = self._db.execute(
            "SELECT * FROM rollouts WHERE id BETWEEN ? AND ? AND grp = ? AND sample = ?",
            [step * _ROWS, (step + 1) * _ROWS - 1, group, sample],
        ).fetchone()
        if row is None:
            raise ValueError(f"{self.run_dir} has no rollout {name}")
        return Found(*row)

    def rollout(self, number: int) -> dict[str, Any]:
        """Everything that the shard has of the rollout with this id."""
        step, row = divmod(number, _ROWS)
        path = shard(self.run_dir, step)
        return _table(path, path.stat().st_mtime_ns).slice(row, 1).to_pylist()[0]  # type: ignore[no-any-return]

    def faults(self) -> dict[int, str]:
        """Why the shard of a step could not be read."""
        return dict(self._db.execute("SELECT step, fault FROM shards WHERE fault IS NOT NULL"))

    # -------------------------------------------------------------------------------------------- building

    def _opened(self) -> sqlite3.Connection:
        """The file's tables, made where they are missing, of another version or damaged."""
        try:
            found = self._connected()
            if found.execute("PRAGMA user_version").fetchone()[0] == VERSION:
                return found
            found.close()
        except sqlite3.DatabaseError:
            pass
        self._remove()
        found = self._connected()
        found.executescript(f"BEGIN; {_TABLES} PRAGMA user_version = {VERSION}; COMMIT;")
        return found

    def _connected(self) -> sqlite3.Connection:
        found = sqlite3.connect(self.path, isolation_level=None, timeout=10, check_same_thread=False)
        found.execute("PRAGMA journal_mode = WAL")
        found.execute("PRAGMA synchronous = NORMAL")
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
        with self.path.with_name(self.path.name + ".lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                yield False
            else:
                yield True

    def _shards(self) -> Iterator[tuple[int, Any]]:
        for path in (self.run_dir / "rollouts").glob("step-*.parquet"):
            if (digits := path.stem.removeprefix("step-")).isdecimal():
                yield int(digits), path.stat()

    def _add(self, step: int, size: int, changed: int) -> int:
        """A shard's rows in one transaction."""
        rows: list[tuple[Any, ...]] = []
        texts: list[tuple[int, str]] = []
        fault = None
        try:
            table = pq.read_table(shard(self.run_dir, step), columns=list(_COLUMNS)).to_pydict()
        except (OSError, pa.ArrowException) as error:
            fault = (str(error).splitlines() or ["unreadable"])[0]
        else:
            tokens = [len(ids) for ids in table.pop("token_ids")]
            completions = table.pop("completion")
            columns = [table[name] for name in _COLUMNS if name in table]
            for number, values in enumerate(zip(*columns, tokens, strict=True)):
                rows.append((step * _ROWS + number, step, *values))
            texts = [(step * _ROWS + n, text) for n, text in enumerate(completions)]
        with _transaction(self._db):
            self._db.execute("INSERT INTO shards VALUES (?, ?, ?, ?, ?)", [step, size, changed, len(rows), fault])
            self._db.executemany(f"INSERT INTO rollouts VALUES ({', '.join('?' * 13)})", rows)
            self._db.executemany("INSERT INTO words (rowid, completion) VALUES (?, ?)", texts)
        return len(rows)


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


# ------------------------------------------------------------------------------------------------ asking


def _sql(where: Filter) -> tuple[str, list[Any]]:
    """The filter as a WHERE clause and its values."""
    conditions: dict[str, object | None] = {
        "id >= ?": None if where.first_step is None else where.first_step * _ROWS,
        "id < ?": None if where.last_step is None else (where.last_step + 1) * _ROWS,
        "problem = ?": where.problem,
        "subject = ?": where.subject,
        "level = ?": where.level,
        "verdict = ?": where.verdict,
        "well_formed = ?": where.well_formed,
        "finish = ?": where.finish,
        "reward >= ?": where.least_reward,
        "reward <= ?": where.most_reward,
        "tokens >= ?": where.least_tokens,
        "tokens <= ?": where.most_tokens,
        "id IN (SELECT rowid FROM words WHERE words MATCH ?)": None if where.text is None else match(where.text),
    }
    asked = {condition: value for condition, value in conditions.items() if value is not None}
    return " AND ".join(["1", *asked]), list(asked.values())


_TERM = re.compile(r'(-?)(?:"([^"]*)"|([^\s"]+))')


def match(text: str) -> str:
    """What a user types as an FTS5 query: words, "phrases", begin*, -without. Nothing in it is syntax but that.

    ValueError when nothing is left to look for.
    """
    wanted, unwanted = [], []
    for minus, phrase, word in _TERM.findall(text):
        is_prefix = word.endswith("*")
        words = re.findall(r"\w+", phrase or word)
        if words:
            term = f'"{" ".join(words)}"' + ("*" if is_prefix else "")
            (unwanted if minus else wanted).append(term)
    if not wanted:
        raise ValueError(f'nothing to look for in {text!r}: write words, "a phrase", begin*, or -without beside one')
    return " ".join([" AND ".join(wanted), *(f"NOT {term}" for term in unwanted)])
