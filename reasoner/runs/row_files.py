"""Write rows as a .jsonl or .parquet file for others to read: examples, preferences, exported rollouts, scores."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reasoner.runs.io import atomic_path
from reasoner.runs.json_files import json_line

if TYPE_CHECKING:
    import pyarrow as pa

Rows = Iterable[Mapping[str, Any]]
ENDINGS = (".jsonl", ".parquet")
_CHUNK = 1000  # rows of a parquet file that are written at once


def write_rows(path: Path, rows: Rows, *, schema: pa.Schema | None = None) -> int:
    """Write a file whole or not at all; returns the number of rows. Without a `schema` a parquet file's is that of all
    rows, which are then in memory together. ValueError for another ending.
    """
    check_ending(path)
    with atomic_path(path) as beside:
        return _write_jsonl(beside, rows) if path.suffix == ".jsonl" else _write_parquet(beside, rows, schema)


def check_ending(path: Path, known: Collection[str] = ENDINGS) -> None:
    """ValueError for a file whose ending is not one of the `known`."""
    if path.suffix not in known:
        raise ValueError(f"{path}: unknown kind of file {path.suffix!r}; known are {', '.join(known)}")


def _write_jsonl(path: Path, rows: Rows) -> int:
    number = 0
    with path.open("w", encoding="utf-8", errors="surrogatepass") as file:
        for row in rows:
            file.write(json_line(row, ensure_ascii=False, allow_nan=True))
            number += 1
    return number


def _write_parquet(path: Path, rows: Rows, schema: pa.Schema | None) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from reasoner.runs.parquet_files import WRITING

    rest, number = iter(rows), 0
    first = list(islice(rest, _CHUNK if schema else None))
    schema = schema or pa.Table.from_pylist(first).schema
    with pq.ParquetWriter(path, schema, **WRITING) as writer:
        for chunk in chain([first], iter(lambda: list(islice(rest, _CHUNK)), [])):
            number += len(chunk)
            writer.write_table(pa.Table.from_pylist(chunk, schema))
    return number
