"""Problems of a file, a folder or a data set of the hub."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from data.faults import OnFault, refuse
from data.files import Row, local_path, read_files
from data.hub import hub_rows
from data.problem import Problem
from data.spec import TableSpec
from data.table_rows import RowReading, read_rows


def load_table(table: TableSpec, limit: int | None = None, on_fault: OnFault | None = None) -> list[Problem]:
    """Load the first `limit` problems. ValueError with the file and the line for a row that cannot be used, unless the
    spec says faulty=skip or there is an `on_fault`, and where no problem is left.
    """
    on_fault = on_fault or ((lambda fault: None) if table.faulty == "skip" else refuse)
    problems = [reading.problem for reading in islice(read_table(table, table_rows(table, on_fault), on_fault), limit)]
    if not problems:
        raise ValueError(f"{table.name}: the {_kind(table)} holds no problems")
    return problems


def read_table(table: TableSpec, rows: Iterable[Row], on_fault: OnFault = refuse) -> Iterator[RowReading]:
    """Convert the rows of a table to problems, with what each was read from. What cannot be used goes to `on_fault`."""
    path = local_path(table.name)
    name, split = (table.name, table.split) if table.is_hub else (path.stem, "file")
    return read_rows(
        rows,
        source=name,
        split=split,
        columns=table.columns,
        system=table.system,
        environments=table.environments,
        on_fault=on_fault,
    )


def table_rows(table: TableSpec, on_fault: OnFault = refuse) -> Iterator[Row]:
    """The (position, row) pairs."""
    if table.is_hub:
        return hub_rows(table.name, table.config, table.split)
    return read_files(local_path(table.name), on_fault)


def _kind(table: TableSpec) -> str:
    return "data set" if table.is_hub else "folder" if local_path(table.name).is_dir() else "file"
