"""Export rollouts of a run as a .jsonl, .parquet or .md file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reasoner.analysis.report_format import Section, markdown_parts, quote
from reasoner.runs.filters import Filter
from reasoner.runs.io import atomic_path
from reasoner.runs.rollout_table import RolloutTable
from reasoner.runs.row_files import check_ending, write_rows

ENDINGS = (".jsonl", ".parquet", ".md")


def matching(table: RolloutTable, where: Filter) -> Iterator[dict[str, Any]]:
    """All columns of the rollouts that match the filter, in order."""
    return map(table.rollout, table.ids(where))


# ------------------------------------------------------------------------------------------------ exports


def _markdown(path: Path, rows: Iterator[dict[str, Any]]) -> int:
    with path.open("w", encoding="utf-8") as file:
        return sum(1 for _ in map(file.write, markdown_parts("Rollouts", map(_section, rows)))) - 1  # the title


def _section(row: dict[str, Any]) -> Section:
    """A rollout as a section of a report."""
    title = f"{row['step']}.{row['group']}.{row['sample']}: {row['verdict']}, reward {row['reward']:g}"
    question = quote(f"{row['problem_id']} (gold: {row['gold']})", row["question"])
    return title, [question, quote("completion", row["completion"].strip())]


def export_rollouts(path: Path, rows: Iterator[dict[str, Any]]) -> int:
    """Write rollouts to a .jsonl, .parquet or .md file; returns their number. ValueError for another ending."""
    check_ending(path, ENDINGS)
    if path.suffix == ".md":
        with atomic_path(path) as beside:
            return _markdown(beside, rows)
    if path.suffix == ".jsonl":
        rows = (row | {"rewards": dict(row["rewards"])} for row in rows)
    from reasoner.runs.rollouts import schema_of

    return write_rows(path, rows, schema_of=schema_of)  # all shards of a run have the same columns
