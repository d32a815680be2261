"""A shard of rollouts as it is searched: its narrow columns in memory, its texts and the findings on it from files."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import fields
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from reasoner.console import first_line
from reasoner.runs.json_files import is_file
from reasoner.runs.parquet_files import read_table, write_table
from reasoner.runs.rollout_row import RolloutRow
from reasoner.runs.rollouts import COLUMNS, SCHEMA, rows_of
from reasoner.types import REWARD_TOLERANCE

Row = dict[str, Any]
ROWS = 2**24  # rollouts of a step, at most
_LONG = ("prompt", "completion")
NARROW = [one.name for one in fields(RolloutRow) if "Sequence" not in str(one.type) and one.name not in _LONG]
_FILLED = ("group", "sample", "problem_id", "question", "verdict", "reward", "advantage")
_EMPTY: Row = {"gold": "", "completion": "", "rewards": [], "token_ids": []}  # in place of null or a missing column
_TEXTS = ("completion", "rewards", "observation_text")
_SEARCHES = 64  # of a shard, whose results are kept
_HEAD = 120  # characters of a completion in a list


class Shard:
    """The rollouts of a step. `state`: bytes and modification time (ns) of the file when it was read."""

    def __init__(self, path: Path, step: int, state: tuple[int, int]) -> None:
        self.path, self.step, self.state = path, step, state
        self.fault = ""  # why the file, or its texts, cannot be read
        try:
            self.rows = _narrow(path, step)
        except (OSError, ValueError, OverflowError, pa.ArrowException) as error:
            self.fault = first_line(error)
            self.rows = NO_ROWS
        self._findings: dict[str, pa.Table] = {}
        self._matches: dict[str, pa.ChunkedArray] = {}
        self._heads: dict[int, str] = {}

    def read(self, columns: Sequence[str]) -> list[tuple[int, Row]]:
        """(id, these columns) of every rollout; one that the file lacks is None."""
        rows = rows_of(read_table(self.path, columns))
        return [(self.step * ROWS + number, _filled(dict.fromkeys(columns) | row)) for number, row in enumerate(rows)]

    def row(self, number: int, *, with_tokens: bool = True) -> Row:
        """All columns of a rollout, those of SCHEMA at least. Without those of the prompt and with a number a token,
        which are most of a shard's bytes, unless `with_tokens`.
        """
        if with_tokens:
            (row,) = rows_of(_whole(self.path, self.state).slice(number, 1))
            return _filled(dict.fromkeys(SCHEMA.names) | row)
        (row,), (narrow,) = (rows_of(table.slice(number, 1)) for table in (_texts(self.path, self.state), self.rows))
        return _filled(dict.fromkeys(_TEXTS) | narrow | row)

    def texts(self, numbers: Sequence[int]) -> list[str | None]:
        """The completions of these rows; None where they cannot be read."""
        completions = self.completions()
        return [completions[number].as_py() for number in numbers]

    def heads(self, numbers: Sequence[int]) -> list[str]:
        """The beginnings of the completions of these rows, each on one line. They are kept: a list that is shown again
        reads no text.
        """
        if missing := [number for number in numbers if number not in self._heads]:
            self._heads.update(zip(missing, map(_head, self.texts(missing)), strict=True))
        return [self._heads[number] for number in numbers]

    def completions(self) -> pa.ChunkedArray:
        """The completions, null where they cannot be read, which `fault` then says."""
        try:
            texts = _texts(self.path, self.state)["completion"].cast(pa.string())
            if len(texts) == len(self.rows):
                return texts
            self.fault = "the file has changed"
        except (OSError, ValueError) as error:
            self.fault = first_line(error)
        return pa.chunked_array([pa.nulls(len(self.rows), pa.string())])

    def matches(self, query: str) -> pa.ChunkedArray:
        """Whether each completion holds a text, in capital or small letters."""
        if query not in self._matches:
            if len(self._matches) >= _SEARCHES:
                self._matches.clear()
            found = pc.match_substring(self.completions(), query, ignore_case=True)
            self._matches[query] = pc.fill_null(found, False)
        return self._matches[query]

    # -------------------------------------------------------------------------------------------- findings

    def findings(self, name: str) -> pa.Table | None:
        """What an analysis found (`keep`); None before it, and where the shard has changed since."""
        if name not in self._findings:
            path = self._path(name)
            with suppress(OSError, ValueError):
                if is_file(path) and path.stat().st_mtime_ns >= self.state[1]:
                    table = read_table(path)
                    if table.schema.metadata[b"bytes"] == b"%d" % self.state[0]:
                        self._findings[name] = table
        return self._findings.get(name)

    def keep(self, name: str, findings: pa.Table, **about: int) -> None:
        """Store what an analysis found, a row with the `id` of its rollout for each finding, and numbers `about` all.

        In a folder that cannot be written it lasts as long as this object.
        """
        about |= {"bytes": self.state[0]}
        self._findings[name] = findings.replace_schema_metadata({key: str(value) for key, value in about.items()})
        with suppress(OSError):
            self._path(name).parent.mkdir(exist_ok=True)
            write_table(self._path(name), self._findings[name])

    def _path(self, name: str) -> Path:
        return self.path.parents[1] / "analysis" / f"{name}-{self.step:06d}.parquet"

    # -------------------------------------------------------------------------------------------- sums

    @cached_property
    def groups(self) -> list[Row]:
        """Problem, size, number of correct completions, and mean and deviation of the rewards of each group."""
        numbers, rewards = (self.rows[name].to_numpy() for name in ("group", "reward"))
        starts = np.flatnonzero(np.diff(numbers, prepend=-1))
        sizes = np.diff(starts, append=len(numbers))
        means = np.add.reduceat(rewards, starts) / sizes
        variances = np.add.reduceat((rewards - np.repeat(means, sizes)) ** 2, starts) / sizes
        is_flat = np.maximum.reduceat(rewards, starts) - np.minimum.reduceat(rewards, starts) < REWARD_TOLERANCE
        sums = {
            "grp": numbers[starts],
            "size": sizes,
            "correct": np.add.reduceat(self._is_correct.astype(int), starts),
            "reward_mean": means,
            "reward_std": np.where(is_flat, 0.0, np.sqrt(variances)),
        }
        about = self.rows.select(["step", "problem_id", "subject", "level", "question"]).take(starts)
        columns = dict(zip(["step", "problem", *about.column_names[2:]], about.columns, strict=True))
        groups: list[Row] = pa.table(columns | sums).to_pylist()
        return groups

    @cached_property
    def summary(self) -> Row:
        """The number of rollouts, and mean lengths and their 95th percentile."""
        tokens, is_correct = self.rows["tokens"], self._is_correct
        known = np.sort(tokens.drop_null().to_numpy())
        return {
            "step": self.step,
            "rollouts": len(self.rows),
            "tokens_correct": pc.mean(tokens.filter(is_correct)).as_py(),
            "tokens_wrong": pc.mean(tokens.filter(~is_correct)).as_py(),
            "tokens_p95": int(known[math.ceil(0.95 * len(known)) - 1]) if len(known) else None,
        }

    @property
    def _is_correct(self) -> np.ndarray:
        return np.asarray(pc.equal(self.rows["verdict"], "correct"))


def _filled(row: Row) -> Row:
    """A shard's row whose columns of _EMPTY have a value: shards of other programs may lack one."""
    return row | {name: value for name, value in _EMPTY.items() if name in row and row[name] is None}


def value_counts(column: pa.ChunkedArray) -> dict[str, int]:
    """The number of rows by value."""
    return {row["values"]: row["counts"] for row in column.value_counts().to_pylist()}


def file_state(path: Path) -> tuple[int, int]:
    stat = os.lstat(path)
    return stat.st_size, stat.st_mtime_ns


def _head(text: str | None) -> str:
    return " ".join((text or "")[: 2 * _HEAD].lstrip().removeprefix("<think>").split())[:_HEAD]


# Of 1,024 completions of 8,000 tokens the whole shard has 0.25 GB, the texts 0.03 GB.
@lru_cache(maxsize=2)
def _whole(path: Path, _state: tuple[int, int]) -> pa.Table:
    return read_table(path)


@lru_cache(maxsize=16)
def _texts(path: Path, _state: tuple[int, int]) -> pa.Table:
    return read_table(path, _TEXTS)


# ------------------------------------------------------------------------------------------------ narrow columns


def _narrow(path: Path, step: int) -> pa.Table:
    """Check a shard, and read the columns of NARROW. ValueError where it is damaged or not in the format of a shard."""
    if not is_file(path):
        raise ValueError("the file is missing")
    table = read_table(path, NARROW)
    _check_types(pq.read_schema(path))
    for name in _FILLED:
        if table[name].null_count:
            raise ValueError(f"column {name!r} has empty cells")
    for name in ("reward", "advantage"):
        if not pc.all(pc.is_finite(table[name]), min_count=0).as_py():
            raise ValueError(f"column {name!r} holds a value that is not finite")
    return _narrow_of(table, step)


def _narrow_of(table: pa.Table, step: int) -> pa.Table:
    """The columns of NARROW with 64 bits a number, `id` before them; one that is missing is null."""
    length = table.num_rows
    wide = {pa.int32(): pa.int64(), pa.float32(): pa.float64()}
    columns = {}
    for name in NARROW:
        kind = COLUMNS.field(name).type
        column = table[name] if name in table.column_names else pa.nulls(length)
        columns[name] = column.cast(wide.get(kind, kind), safe=False)
    columns["question"] = columns["question"].dictionary_encode()  # a group has one; it may be longer than all the rest
    return pa.table({"id": step * ROWS + np.arange(length), **columns, "step": np.full(length, step)})


NO_ROWS = _narrow_of(COLUMNS.empty_table(), 0)


def _check_types(schema: pa.Schema) -> None:
    """ValueError where a column is missing, or holds another kind of values than in COLUMNS."""
    for name in (*_FILLED, "completion"):
        if name not in schema.names:
            raise ValueError(f"it has no column {name!r}")
    for column in COLUMNS:
        if column.name in schema.names and not _is_like(schema.field(column.name).type, column.type):
            actual = schema.field(column.name).type
            raise ValueError(f"column {column.name!r} holds {actual} values, not {column.type}")


def _is_like(actual: pa.DataType, expected: pa.DataType) -> bool:
    """Whether values of a type can stand in a column of another one: of a narrower or wider kind, or none at all."""
    if pa.types.is_null(actual):
        return True
    if pa.types.is_list(expected):
        return pa.types.is_list(actual) and _is_like(actual.value_type, expected.value_type)
    if pa.types.is_struct(expected):
        return pa.types.is_struct(actual) and [one.name for one in actual] == [one.name for one in expected]
    if pa.types.is_floating(expected):
        return bool(pa.types.is_floating(actual) or pa.types.is_integer(actual))
    if pa.types.is_string(expected):
        return bool(pa.types.is_string(actual) or pa.types.is_large_string(actual))
    return any(is_kind(actual) and is_kind(expected) for is_kind in (pa.types.is_integer, pa.types.is_boolean))
