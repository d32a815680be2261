"""Problems as the Python API takes them: a name, a file, or rows in memory, which are written to a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from data import Problem
from data.table_rows import USUAL_COLUMNS
from data.table_rows import problems as problems_of_rows

# A name as --data takes it (data.spec), or rows: problems, mappings, or a `datasets.Dataset`.
Data = str | Path | Iterable[Problem | Mapping[str, Any]]


def is_spec(data: Data) -> bool:
    """Whether the data are named (a name or a file), and not in memory."""
    return isinstance(data, str | Path)


def problems_in_memory(data: Data, *, source: str, argument: str = "data") -> list[Problem]:
    """Convert rows in memory to problems; a row that is not a Problem needs the columns question and answer.

    `source` names the rows' default ids ("SOURCE/file/0"), as a file of that name would. ValueError naming `argument`
    and the row for what cannot be used.
    """
    if isinstance(data, str | Path) or not isinstance(data, Iterable):
        raise ValueError(f"{argument} is {data!r:.80}; it must be a name, a file, or rows (problems, a Dataset)")
    rows = [(f"{argument}, row {number}", _row(f"{argument}, row {number}", row)) for number, row in enumerate(data)]
    if not rows:
        raise ValueError(f"{argument} is empty; it must have at least one problem")
    return list(problems_of_rows(rows, source=source, split="file"))


def _row(where: str, row: object) -> Mapping[str, Any]:
    if isinstance(row, Problem):
        return {**row.columns, **{name: getattr(row, name) for name in USUAL_COLUMNS}}
    if isinstance(row, Mapping):
        return row
    raise ValueError(f"{where} is {row!r:.80}; it must be a Problem or a mapping with the keys question and answer")
