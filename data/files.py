"""Rows of local files (.jsonl, .json, .csv, .parquet) and folders of them, and problems written as .jsonl."""

from __future__ import annotations

import csv
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from data.environments.spec import VERIFIER, EnvironmentRow
from data.problem import Problem
from data.table_rows import USUAL_COLUMNS, OnFault, RowFault, refuse

Row = tuple[str, dict[str, Any]]  # the position ("FILE, line 3") and the row
_MOST_CHARACTERS = 10_000_000  # of a field of a .csv file


def read_files(path: Path, on_fault: OnFault = refuse) -> Iterator[Row]:
    """The rows of a file, or of the files of a folder in the order of their names. A line that cannot be read goes to
    `on_fault`. ValueError for files that cannot be read, and where there are none.
    """
    for file in _files(path):
        try:
            yield from READERS[file.suffix](file, on_fault)
        except UnicodeDecodeError as error:
            raise ValueError(f"{file}: not a UTF-8 text ({error.reason})") from None


def _files(path: Path) -> Sequence[Path]:
    if exists(path) and path.is_dir():
        if files := sorted(filter(can_read, path.iterdir())):
            return files
        raise ValueError(f"{path}: the folder has no file that can be read; known are {', '.join(READERS)}")
    if path.suffix not in READERS:
        raise ValueError(f"{path}: unknown kind of file {path.suffix!r}; known are {', '.join(READERS)}")
    if not can_read(path):
        raise ValueError(f"{path}: there is no such file")
    return [path]


def local_path(name: str) -> Path:
    """The path that a name stands for. `~` of a user who does not exist stays as it is."""
    return Path(os.path.expanduser(name))  # noqa: PTH111  (pathlib raises)


def exists(path: Path) -> bool:
    """Whether there is such a file or folder; false for a text that is too long for a name."""
    return os.path.exists(path)  # noqa: PTH110  (pathlib raises)


def can_read(path: Path) -> bool:
    """Whether the path is a file of a kind that can be read."""
    return path.suffix in READERS and exists(path) and path.is_file()


_TEXT = "utf-8-sig"  # some programs write a byte order mark


def _jsonl(path: Path, on_fault: OnFault) -> Iterator[Row]:
    with path.open(encoding=_TEXT) as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            where = f"{path}, line {number}"
            try:
                row = json.loads(line)
            except json.JSONDecodeError as error:
                on_fault(RowFault(where, f"not valid JSON ({error.msg} at column {error.colno})"))
            except (ValueError, RecursionError) as error:
                on_fault(RowFault(where, f"not JSON that can be read ({error})"))
            else:
                yield from _object(where, row, on_fault)


def _json(path: Path, on_fault: OnFault) -> Iterator[Row]:
    """The rows of a JSON array, alone or as "data" of an object, or a row in each line, as `datasets` writes them."""
    text = path.read_text(encoding=_TEXT)
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        if isinstance(error, json.JSONDecodeError) and error.msg == "Extra data":
            yield from _jsonl(path, on_fault)
            return
        raise ValueError(f"{path}: not JSON that can be read ({error})") from None
    rows = content.get("data") if isinstance(content, dict) else content
    if not isinstance(rows, list):
        raise ValueError(f'{path}: expected a JSON array of objects, or an object {{"data": [...]}}')
    for number, row in enumerate(rows, start=1):
        yield from _object(f"{path}, row {number}", row, on_fault)


def _object(where: str, row: Any, on_fault: OnFault) -> Iterator[Row]:
    if isinstance(row, dict):
        yield where, row
    else:
        on_fault(RowFault(where, f"expected a JSON object, got {type(row).__name__}"))


def _csv(path: Path, on_fault: OnFault) -> Iterator[Row]:
    """The rows of a .csv file, whose first line names the columns."""
    csv.field_size_limit(_MOST_CHARACTERS)
    with path.open(encoding=_TEXT, newline="") as file:
        table = csv.DictReader(file, strict=True)
        try:
            names = table.fieldnames or ()
            _check_columns(path, names)
            for number, row in enumerate(table, start=1):
                where = f"{path}, row {number} (up to line {table.line_num})"
                if None in row or None in row.values():
                    on_fault(RowFault(where, f"the row has not {len(names)} values as the first line has names"))
                else:
                    yield where, row
        except csv.Error as error:
            raise ValueError(f"{path}, line {table.line_num}: not CSV that can be read ({error})") from None


def _parquet(path: Path, _on_fault: OnFault) -> Iterator[Row]:
    import pyarrow
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path, page_checksum_verification=True) as file:
            _check_columns(path, file.schema_arrow.names)
            rows = (row for batch in file.iter_batches(batch_size=1024) for row in batch.to_pylist())
            for number, row in enumerate(rows, start=1):
                yield f"{path}, row {number}", row
    except (OSError, pyarrow.ArrowInvalid) as error:
        raise ValueError(f"{path}: not a parquet file, or a damaged one ({error})") from None


def _check_columns(path: Path, names: Sequence[str]) -> None:
    """Raise ValueError for a name that two columns have: one of them would be lost."""
    repeated = [name for name, number in Counter(names).items() if number > 1]
    if repeated:
        raise ValueError(f"{path}: several columns are named {repeated[0]!r}; the names of columns must differ")


READERS: dict[str, Callable[..., Iterator[Row]]] = {  # (path, on_fault): on_fault for a line that cannot be read
    ".jsonl": _jsonl,
    ".json": _json,
    ".csv": _csv,
    ".parquet": _parquet,
}


def write_jsonl(path: Path, problems: Iterable[Problem]) -> None:
    """Write problems as a .jsonl file that `data.load` reads, whole or not at all.

    ValueError for a column whose value JSON cannot hold, and where the file exists with other problems.
    """
    text = jsonl_of(problems)
    if path.is_file():
        if path.read_text(encoding="utf-8") != text:
            raise ValueError(f"{path} holds other problems; choose another name, or delete it")
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)


def written_spec(path: Path, problems: Iterable[Problem]) -> str:
    """The name under which `data.load` reads the problems that write_jsonl wrote."""
    return f"{path}?environments=allow" if any(problem.verifier == VERIFIER for problem in problems) else str(path)


def jsonl_of(problems: Iterable[Problem]) -> str:
    """The problems as the text of a .jsonl file. ValueError for a column whose value JSON cannot hold."""
    return "".join(_line(problem) + "\n" for problem in problems)


def _line(problem: Problem) -> str:
    """The problem as a JSON object; fields without a value are left out."""
    fields = {name: getattr(problem, name) for name in USUAL_COLUMNS}
    row = {**problem.columns, **{name: value for name, value in fields.items() if value is not None}}
    for name, value in row.items():
        try:
            json.dumps(value, default=_mapping)
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"problem {problem.id!r}: column {name!r} cannot be written as JSON ({error})") from None
    return json.dumps(row, default=_mapping)


def _mapping(value: object) -> Mapping[str, object]:
    """The row of an environment as a mapping; TypeError for what else JSON cannot hold."""
    if isinstance(value, EnvironmentRow):
        return asdict(value)
    raise TypeError(f"a {type(value).__name__} is no JSON value")
