"""Problems of a file, a folder or a data set of the hub."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice

from data.files import Row, local_path, read_files
from data.hub import hub_rows
from data.problem import Problem
from data.spec import Part
from data.table_rows import OnFault, RowFault, RowReading, read_rows

_log = logging.getLogger(__name__)


def load_table(table: Part, limit: int | None = None, on_fault: OnFault | None = None) -> list[Problem]:
    """Load the first `limit` problems, each once (read_table). ValueError with the file and the line for a row that
    cannot be used, unless the spec says faulty=skip or there is an `on_fault`, and where no problem is left. Without a
    limit warnings count the rows that are left out.
    """
    left_out: Counter[str] = Counter()  # rows by the reason

    def refuse_or_skip(fault: RowFault) -> None:
        if table.options.get("faulty") != "skip":
            raise RowFault(fault.where, f"{fault.reason}; ?faulty=skip leaves out rows that cannot be used")
        left_out["cannot be used"] += 1

    on_fault = on_fault or refuse_or_skip
    readings = read_table(table, table_rows(table, on_fault), on_fault, left_out)
    problems = [reading.problem for reading in islice(readings, limit)]
    if not problems:
        kind = "data set" if table.kind == "hub" else "folder" if local_path(table.name).is_dir() else "file"
        raise ValueError(f"{table.name}: the {kind} holds no problems")
    if limit is None:
        warn_of_rows(table.name, left_out)
    return problems


def warn_of_rows(name: str, left_out: Counter[str]) -> None:
    """Log how many rows were left out, by the reason."""
    for reason, number in left_out.items():
        _log.warning(f"{name}: {number:,} rows {reason}: they are left out")


def table_rows(table: Part, on_fault: OnFault) -> Iterator[Row]:
    """The (position, row) pairs."""
    if table.kind == "hub":
        return hub_rows(table.name, table.options.get("config"), table.split)
    return read_files(local_path(table.name), on_fault)


def read_table(table: Part, rows: Iterable[Row], on_fault: OnFault, left_out: Counter[str]) -> Iterator[RowReading]:
    """Convert the rows of a table to problems, each once (without_repeats), with what each was read from. What cannot
    be used goes to `on_fault`.
    """
    name, split = (table.name, table.split) if table.kind == "hub" else (local_path(table.name).stem, "file")
    readings = read_rows(rows, source=name, split=split, options=table.options, on_fault=on_fault)
    return without_repeats(readings, left_out)


def without_repeats(readings: Iterable[RowReading], left_out: Counter[str]) -> Iterator[RowReading]:
    """Leave out rows without an id that repeat the question, the answer and the verifier of an earlier row, counted in
    `left_out`: DAPO-Math-17k has each of its rows a hundred times.
    """
    seen: set[tuple[str, ...]] = set()
    for reading in readings:
        problem = reading.problem
        key = (problem.question, problem.answer, problem.verifier, problem.id if "id" in reading.columns else "")
        if key in seen:
            left_out["repeat the question and the answer of an earlier row"] += 1
        else:
            seen.add(key)
            yield reading
