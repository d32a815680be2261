"""Write and read the parquet files of runs and evaluations. Every page is written with a checksum, which readers
verify: without it a flipped bit in a page is read as another number.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from reasoner.console import first_line
from reasoner.runs.io import atomic_path

# Without dictionaries, which do not pay for numbers of tokens, and less than zstd does for texts.
WRITING: dict[str, Any] = {"compression": "zstd", "use_dictionary": False, "write_page_checksum": True}


def write_table(path: Path, table: pa.Table) -> None:
    """Write a table atomically."""
    with atomic_path(path) as partial:
        pq.write_table(table, partial, **WRITING)


def read_table(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Read those of the `columns`, by default all, that a file has. ValueError where it is missing or damaged."""
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            _check_columns(file)
            names = file.schema_arrow.names
            table = file.read([name for name in names if columns is None or name in columns])
        table.validate(full=True)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise ValueError(f"{path} is damaged, or not a parquet file: {first_line(error)}") from error
    return table


def _check_columns(file: pq.ParquetFile) -> None:
    """Raise ValueError unless names and types of the columns are those that the writer put down beside them: no page
    holds them. Files of other writers need not have such a copy.
    """
    copy = (file.metadata.metadata or {}).get(b"ARROW:schema")
    if copy and not pa.ipc.read_schema(pa.py_buffer(base64.b64decode(copy))).equals(file.schema_arrow):
        raise ValueError("its columns are not those that were written")
