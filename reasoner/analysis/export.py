"""Export rollouts of a run as a .jsonl, .parquet or .md file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from reasoner.analysis.report_format import Section, markdown_parts, quote
from reasoner.runs.filters import Filter
from reasoner.runs.index import RolloutIndex
from reasoner.runs.json_files import json_line

_PAGE = 500  # rollouts per read


def matching(index: RolloutIndex, where: Filter) -> Iterator[dict[str, Any]]:
    """All columns of the rollouts that match the filter, in order."""
    after = -1
    while page := index.page(where, after=after, limit=_PAGE):
        yield from (index.rollout(one.id) for one in page)
        after = page[-1].id


# ------------------------------------------------------------------------------------------------ exports


def _jsonl(path: Path, rows: Iterator[dict[str, Any]]) -> int:
    number = 0
    with path.open("w", encoding="utf-8", errors="surrogatepass") as file:
        for row in rows:
            number += 1
            line = row | {"rewards": dict(row["rewards"])}
            file.write(json_line(line, ensure_ascii=False, allow_nan=True))
    return number


def _parquet(path: Path, rows: Iterator[dict[str, Any]]) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from reasoner.runs.parquet_files import WRITING
    from reasoner.runs.rollouts import schema_of

    batch = list(islice(rows, _PAGE))
    schema = schema_of(batch)  # all shards of a run have the same columns
    number = 0
    with pq.ParquetWriter(path, schema, **WRITING) as writer:
        while True:
            number += len(batch)
            writer.write_table(pa.Table.from_pylist(batch, schema))
            if not (batch := list(islice(rows, _PAGE))):
                return number


def _markdown(path: Path, rows: Iterator[dict[str, Any]]) -> int:
    with path.open("w", encoding="utf-8") as file:
        return sum(1 for _ in map(file.write, markdown_parts("Rollouts", map(_section, rows)))) - 1  # the title


def _section(row: dict[str, Any]) -> Section:
    """A rollout as a section of a report."""
    title = f"{row['step']}.{row['group']}.{row['sample']}: {row['verdict']}, reward {row['reward']:g}"
    question = quote(f"{row['problem_id']} (gold: {row['gold']})", row["question"])
    return title, [question, quote("completion", row["completion"].strip())]


# By suffix: the function that writes rows to a file and returns their number.
EXPORTS: dict[str, Callable[[Path, Iterator[dict[str, Any]]], int]] = {
    ".jsonl": _jsonl,
    ".parquet": _parquet,
    ".md": _markdown,
}
