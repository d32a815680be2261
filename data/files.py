"""Problems from a local .jsonl or .parquet file, and problems written as .jsonl."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from data.problem import Problem
from data.table_rows import USUAL_COLUMNS, Columns, problems

Row = tuple[str, dict[str, Any]]  # the position ("FILE, line 3") and the row


def load_file(
    path: Path,
    columns: Columns | None = None,
    limit: int | None = None,
    *,
    on_fault: Callable[[str], None] | None = None,
) -> list[Problem]:
    """Load the first `limit` problems of a file. ValueError with the file, and the line if one is faulty; `on_fault`,
    where it is given, is called with the text for a row that holds no problem instead.
    """
    if path.suffix not in READERS:
        raise ValueError(f"{path}: unknown kind of file {path.suffix!r}; known are {', '.join(READERS)}")
    if not path.is_file():
        raise ValueError(f"{path}: there is no such file")
    result: list[Problem] = []
    rows = READERS[path.suffix](path)
    for problem in problems(rows, source=path.stem, split="file", columns=columns, on_fault=on_fault):
        result.append(problem)
        if len(result) == limit:
            break
    if not result:
        raise ValueError(f"{path}: the file holds no problems")
    return result


def _jsonl(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8") as file:
        lines = enumerate(file, start=1)
        while True:
            try:
                number, line = next(lines)
            except StopIteration:
                return
            except UnicodeDecodeError as error:
                raise ValueError(f"{path}: not a UTF-8 text ({error.reason})") from None
            if not line.strip():
                continue
            where = f"{path}, line {number}"
            try:
                row = json.loads(line)
            except json.JSONDecodeError as error:
                raise ValueError(f"{where}: not valid JSON ({error.msg} at column {error.colno})") from None
            # ValueError: a number of thousands of digits; RecursionError: brackets nested a thousand deep.
            except (ValueError, RecursionError) as error:
                raise ValueError(f"{where}: not JSON that can be read ({error})") from None
            if not isinstance(row, dict):
                raise ValueError(f"{where}: expected a JSON object, got {type(row).__name__}")
            yield where, row


def _parquet(path: Path) -> Iterator[Row]:
    import pyarrow
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            number = 0
            for batch in file.iter_batches(batch_size=1024):
                for row in batch.to_pylist():
                    number += 1
                    yield f"{path}, row {number}", row
    except pyarrow.ArrowInvalid as error:
        raise ValueError(f"{path}: not a parquet file ({error})") from None


READERS: dict[str, Callable[[Path], Iterator[Row]]] = {".jsonl": _jsonl, ".parquet": _parquet}


def write_jsonl(path: Path, problems: Iterable[Problem]) -> None:
    """Write problems as a .jsonl file that `load_file` reads, whole or not at all.

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


def jsonl_of(problems: Iterable[Problem]) -> str:
    """The problems as the text of a .jsonl file. ValueError for a column whose value JSON cannot hold."""
    return "".join(_line(problem) + "\n" for problem in problems)


def _line(problem: Problem) -> str:
    """The problem as a JSON object; fields without a value are left out."""
    fields = {name: getattr(problem, name) for name in USUAL_COLUMNS}
    row = {**problem.columns, **{name: value for name, value in fields.items() if value is not None}}
    for name, value in row.items():
        try:
            json.dumps(value)
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"problem {problem.id!r}: column {name!r} cannot be written as JSON ({error})") from None
    return json.dumps(row)
