"""Rollouts of a run as a .jsonl, .parquet or .md file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from reasoner.runs.index import Filter, RolloutIndex

_PAGE = 500  # rollouts read at once


def matching(index: RolloutIndex, where: Filter) -> Iterator[dict[str, Any]]:
    """Everything that the shards have of the rollouts of the filter, in order."""
    after = -1
    while found := index.page(where, after=after, limit=_PAGE):
        yield from (index.rollout(one.id) for one in found)
        after = found[-1].id


# ------------------------------------------------------------------------------------------------ exports


def _jsonl(path: Path, rows: Iterator[dict[str, Any]]) -> int:
    number = 0
    with path.open("w", encoding="utf-8", errors="surrogatepass") as file:
        for row in rows:
            number += 1
            file.write(json.dumps(row | {"rewards": dict(row["rewards"])}, ensure_ascii=False) + "\n")
    return number


def _parquet(path: Path, rows: Iterator[dict[str, Any]]) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from reasoner.runs.rollouts import SCHEMA

    number = 0
    with pq.ParquetWriter(path, SCHEMA, compression="zstd") as writer:
        batch: list[dict[str, Any]] = []
        for row in rows:
            number += 1
            batch.append(row)
            if len(batch) == _PAGE:
                writer.write_table(pa.Table.from_pylist(batch, SCHEMA))
                batch = []
        writer.write_table(pa.Table.from_pylist(batch, SCHEMA))
    return number


def _markdown(path: Path, rows: Iterator[dict[str, Any]]) -> int:
    from reasoner.analysis.report_format import Quote, as_markdown

    sections: list[Any] = []
    for row in rows:
        title = f"{row['step']}.{row['group']}.{row['sample']}: {row['verdict']}, reward {row['reward']:g}"
        question = Quote(f"{row['problem_id']} (gold: {row['gold']})", row["question"])
        sections.append((title, [question, Quote("completion", row["completion"].strip())]))
    path.write_text(as_markdown("Rollouts", sections), "utf-8")
    return len(sections)


EXPORTS: dict[str, Callable[[Path, Iterator[dict[str, Any]]], int]] = {
    ".jsonl": _jsonl,
    ".parquet": _parquet,
    ".md": _markdown,
}
