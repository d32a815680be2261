"""Export rollouts of a run as a .jsonl or .parquet file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from reasoner.runs.filters import Filter
from reasoner.runs.rollout_table import RolloutTable
from reasoner.runs.rollouts import schema_of
from reasoner.runs.row_files import write_rows


def matching(table: RolloutTable, where: Filter) -> Iterator[dict[str, Any]]:
    """All columns of the rollouts that match the filter, in order."""
    return map(table.rollout, table.ids(where))


def export_rollouts(path: Path, table: RolloutTable, where: Filter) -> int:
    """Write the rollouts that match the filter to a file; returns their number. ValueError for another ending."""
    rows = matching(table, where)
    if path.suffix == ".jsonl":
        rows = (row | {"rewards": dict(row["rewards"])} for row in rows)
    # A shard without a call of a tool lacks the columns of calls, which others have.
    columns = [pq.read_schema(shard.path).names for shard in table.shards if not shard.fault]
    return write_rows(path, rows, schema=schema_of(columns))
