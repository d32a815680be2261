"""Conversion of table rows, from a file or a hub, to problems. Every error names the row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from data.answer_key import final_answer
from data.problem import Problem

Columns = Mapping[str, str]  # field of Problem -> name of the column that holds it

# The columns of a field without an explicit mapping: the first one that exists is used.
USUAL_COLUMNS: dict[str, tuple[str, ...]] = {
    "question": ("question", "problem"),
    "answer": ("answer", "final_answer", "solution"),
    "id": ("id", "unique_id"),
    "level": ("level",),
    "subject": ("subject", "type"),
    "verifier": ("verifier",),
}
REQUIRED = ("question", "answer")


def problems(
    rows: Iterable[tuple[str, Mapping[str, Any]]],
    *,
    source: str,
    split: str,
    columns: Columns | None = None,
    on_fault: Callable[[str], None] | None = None,
) -> Iterator[Problem]:
    """Convert (position, row) pairs to problems.

    ValueError with the position for a faulty row or a repeated id; `on_fault` is called with its text instead, where it
    is given, and the row is left out.
    """
    columns = columns or {}
    for field in columns:
        if field not in USUAL_COLUMNS:
            raise ValueError(f"a problem has no field {field!r}; fields that can be mapped: {', '.join(USUAL_COLUMNS)}")
    seen: dict[str, str] = {}
    for number, (where, row) in enumerate(rows):
        try:
            problem = _problem(where, row, columns, default_id=f"{source}/{split}/{number}", source=source, split=split)
            if problem.id in seen:
                raise ValueError(f"{where}: id {problem.id!r} was used before, by {seen[problem.id]}")
        except ValueError as error:
            if on_fault is None:
                raise
            on_fault(str(error))
            continue
        seen[problem.id] = where
        yield problem


def _problem(
    where: str, row: Mapping[str, Any], columns: Columns, *, default_id: str, source: str, split: str
) -> Problem:
    values = {field: _value(where, row, field, columns) for field in USUAL_COLUMNS}
    question, answer = (_text(where, field, values[field]) for field in REQUIRED)
    gold = final_answer(answer)
    if not gold:
        raise ValueError(f"{where}: no final answer in {answer[:60]!r}")
    return Problem(
        id=str(values["id"]) if values["id"] not in (None, "") else default_id,
        question=question,
        answer=gold,
        source=source,
        split=split,
        level=_level(values["level"]),
        subject=str(values["subject"]) if values["subject"] else None,
        verifier=str(values["verifier"] or "maths"),
        columns={name: value for name, value in row.items() if name not in USUAL_COLUMNS},
    )


def _value(where: str, row: Mapping[str, Any], field: str, columns: Columns) -> Any:
    names = (columns[field],) if field in columns else USUAL_COLUMNS[field]
    for name in names:
        if name in row:
            return row[name]
    if field in columns or field in REQUIRED:
        raise ValueError(
            f"{where}: no column {' or '.join(map(repr, names))} for the {field}; its columns are "
            f"{', '.join(map(repr, row)) or 'none'} (map them: FILE?question=COLUMN&answer=COLUMN)"
        )
    return None


def _text(where: str, field: str, value: Any) -> str:
    if isinstance(value, list) and value and all(isinstance(part, str) for part in value):
        value = ", ".join(part.strip() for part in value)  # several answers, as in OlympiadBench
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"{where}: the {field} is {value!r}; it must be a text or a number")
    text = str(value).strip()
    if not text:
        raise ValueError(f"{where}: the {field} is blank")
    return text


def _level(value: Any) -> int | None:
    """The level as a number: 5 from 5 or "Level 5"; None without a number."""
    digits = str(value).removeprefix("Level").strip() if value is not None else ""
    return int(digits) if digits.isdecimal() else None
