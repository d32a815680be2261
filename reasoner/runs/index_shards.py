"""Find a run's shards of rollouts, and read them for the index with their columns checked."""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from reasoner.console import first_line
from reasoner.runs.index_schema import COLUMNS, Rows, read
from reasoner.runs.json_files import is_file
from reasoner.runs.parquet_files import read_table
from reasoner.runs.rollouts import OPTIONAL, SCHEMA, shard_path

_NAME = re.compile(r"step-(\d{6,9})\.parquet", re.ASCII)
_FILLED = ("group", "sample", "problem_id", "question", "completion", "verdict", "reward", "advantage")
_FINITE = ("reward", "advantage")


def shard_steps(run_dir: Path) -> list[int]:
    """The step of each shard, readable or not."""
    matches = [match for path in (run_dir / "rollouts").iterdir() if (match := _NAME.fullmatch(path.name))]
    return [int(match[1]) for match in matches if match[0] == shard_path(run_dir, int(match[1])).name]


def shards(run_dir: Path) -> dict[int, tuple[int, int]]:
    """(bytes, modification time in nanoseconds) of each shard, readable or not, by step."""
    stats = {step: shard_path(run_dir, step).lstat() for step in shard_steps(run_dir)}
    return {step: (stat.st_size, stat.st_mtime_ns) for step, stat in stats.items()}


def shard_digest(path: Path) -> str:
    """A hash of the file's content; empty where it cannot be read."""
    try:
        return _digest(path.read_bytes()) if is_file(path) else ""
    except (OSError, ValueError):
        return ""


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def read_shard(path: Path, step: int) -> tuple[Rows | str, str]:
    """(the index's rows of a shard, or the reason why it cannot be read; the digest of its content)."""
    digest = ""
    try:
        if not is_file(path):
            return "the file is missing", digest
        content = path.read_bytes()
        digest = _digest(content)
        _check_kinds(pq.read_schema(pa.BufferReader(content)))
        table = read_table(path, COLUMNS, content=content)
        _check_values(table)
        return read(table, step), digest
    except (OSError, ValueError, OverflowError, pa.ArrowException) as error:
        return first_line(error), digest


def _check_kinds(schema: pa.Schema) -> None:
    """Raise ValueError where a column is missing or has another type than in SCHEMA or OPTIONAL."""
    for name in _FILLED:
        if name not in schema.names:
            raise ValueError(f"it has no column {name!r}")
    for column in (*SCHEMA, *OPTIONAL):
        if column.name not in schema.names:
            continue
        if column.name == "rewards":
            _check_rewards(schema.field(column.name).type)
            continue
        actual, expected = _kind(schema.field(column.name).type), _kind(column.type)
        if actual not in (expected, "nothing", *(("int",) if expected == "float" else ())):
            raise ValueError(f"column {column.name!r} holds {actual} values, not {expected}")


def _check_rewards(kind: pa.DataType) -> None:
    """Raise ValueError where the parts of the reward are not (name, value) pairs."""
    is_list = pa.types.is_list(kind) and pa.types.is_struct(kind.value_type)
    if is_list and [field.name for field in kind.value_type] == ["name", "value"]:
        return
    if not pa.types.is_null(kind):
        raise ValueError(f"column 'rewards' holds {kind} values, not list of {{name, value}}")


def _kind(kind: pa.DataType) -> str:
    for name, holds in _KINDS.items():
        if holds(kind):
            return name
    return f"list of {_kind(kind.value_type)}" if pa.types.is_list(kind) else str(kind)


_KINDS = {
    "text": lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind),
    "int": pa.types.is_integer,
    "float": pa.types.is_floating,
    "bool": pa.types.is_boolean,
    "nothing": pa.types.is_null,  # a column without a value
}


def _check_values(table: pa.Table) -> None:
    """Raise ValueError for an empty cell in a column of _FILLED, and for a value of _FINITE that is not finite."""
    for name in _FILLED:
        if table[name].null_count:
            raise ValueError(f"column {name!r} has empty cells")
    for name in _FINITE:
        if not pc.all(pc.is_finite(table[name]), min_count=0).as_py():
            raise ValueError(f"column {name!r} holds a value that is not finite")


@lru_cache(maxsize=8)
def shard_table(path: Path, _changed: int) -> pa.Table:
    """Read a shard, once for each modification time `_changed`."""
    return read_table(path)


@lru_cache(maxsize=32)
def shard_completions(path: Path, _changed: int) -> pa.ChunkedArray:
    """Read the completions alone: most of a shard's bytes are per-token columns."""
    return read_table(path, ["completion"])["completion"]
