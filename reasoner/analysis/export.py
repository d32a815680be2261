"""Export rollouts of a run as a .jsonl or .parquet file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reasoner.runs.filters import Filter
from reasoner.runs.rollout_table import RolloutTable
from reasoner.runs.row_files import write_rows


def matching(table: RolloutTable, where: Filter) -> Iterator[dict[str, Any]]:
    """All columns of the rollouts that match the filter, in order."""
    return map(table.rollout, table.ids(where))


def export_rollouts(path: Path, rows: Iterator[dict[str, Any]]) -> int:
    """Write rollouts to a file; returns their number. ValueError for another ending."""
    if path.suffix == ".jsonl":
        rows = (row | {"rewards": dict(row["rewards"])} for row in rows)
    from reasoner.runs.rollouts import schema_of

    return write_rows(path, rows, schema_of=schema_of)  # all shards of a run have the same columns
