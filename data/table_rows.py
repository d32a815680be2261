"""Conversion of table rows, from a file or a hub, to problems. Every error names the row."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from math import isfinite
from numbers import Integral, Real
from typing import Any

from data.conversation import is_conversation, read_conversation
from data.environments.spec import VERIFIER, EnvironmentRow
from data.faults import OnFault, RowFault, refuse
from data.gold_answers import gold_answer
from data.problem import Problem

Columns = Mapping[str, str]  # field of Problem -> name of the column that holds it

# The columns of a field without an explicit mapping: the first one that exists is used. A dot leads into a column that
# holds named values: reward_model.ground_truth is where verl has the gold answer, and extra_info.question the question
# without what its prompt says about the form of the answer.
USUAL_COLUMNS: dict[str, tuple[str, ...]] = {
    "question": ("question", "problem", "extra_info.question", "prompt", "messages"),
    "answer": ("answer", "final_answer", "ground_truth", "reward_model.ground_truth", "solution"),
    "id": ("id", "unique_id"),
    "level": ("level",),
    "subject": ("subject", "type"),
    "verifier": ("verifier",),
}
REQUIRED = ("question", "answer")
_WORD = re.compile(r"(?<![\\a-zA-Z])[^\W\d_]{2,}")  # of two letters or more, and no command of LaTeX
# What JSON makes of \frac, \boxed or \times that are written with one backslash.
_LOST = re.compile(r"\f(?=rac[\\{\d]|box|loor|orall)|\x08(?=oxed|inom|egin|eta)|\t(?=imes|ext\{|heta|frac[\\{\d])")
_LEVEL = re.compile(r"(?:Level)?\s*(\d+)(?:\.0+)?\s*")
_MOST_WORDS = 5  # of a final answer in a column of solutions


@dataclass(frozen=True, slots=True)
class RowReading:
    """A problem, and the columns that it was read from."""

    problem: Problem
    columns: Columns  # the column of each field that the row has


def problems(
    rows: Iterable[tuple[str, Mapping[str, Any]]], *, source: str, split: str, columns: Columns | None = None
) -> Iterator[Problem]:
    """Convert (position, row) pairs to problems. ValueError with the position for a faulty row or a repeated id."""
    return (reading.problem for reading in read_rows(rows, source=source, split=split, columns=columns))


def read_rows(
    rows: Iterable[tuple[str, Mapping[str, Any]]],
    *,
    source: str,
    split: str,
    columns: Columns | None = None,
    system: str = "refuse",
    environments: str = "refuse",
    on_fault: OnFault = refuse,
) -> Iterator[RowReading]:
    """Convert (position, row) pairs to problems, with what each was read from. A row that cannot be used goes to
    `on_fault`. `system`: the rule for system turns (data.conversation.SYSTEM_RULES). `environments`: "allow" accepts
    problems of environments, whose grading starts the programs that the rows name. ValueError for an unknown field.
    """
    columns = columns or {}
    for name in columns:
        if name not in USUAL_COLUMNS:
            raise ValueError(f"a problem has no field {name!r}; fields that can be mapped: {', '.join(USUAL_COLUMNS)}")
    seen: dict[str, str] = {}
    for number, (where, row) in enumerate(rows):
        try:
            reading = _read_row(row, columns, system, default_id=f"{source}/{split}/{number}", origin=(source, split))
            reading = replace(reading, problem=_checked_environment(reading.problem, environments))
            if (name := reading.problem.id) in seen:
                raise ValueError(f"id {name!r} was used before, by {seen[name]}")
        except ValueError as error:
            on_fault(RowFault(where, str(error)))
            continue
        seen[name] = where
        yield reading


@dataclass(slots=True)
class _Cells:
    """The values of a row by field of a problem, and the columns that they stand in."""

    row: Mapping[str, Any]
    mapping: Columns
    columns: dict[str, str] = field(default_factory=dict)

    def value(self, name: str, *, default: str = "") -> Any:
        """The value of a field; `default` for a required field without a column. ValueError where that is empty."""
        choices = (self.mapping[name],) if name in self.mapping else USUAL_COLUMNS[name]
        for column in choices:
            is_present, value = _lookup(self.row, column)
            if is_present:
                self.columns[name] = column
                return value
        if name not in self.mapping and (default or name not in REQUIRED):
            return default or None
        raise ValueError(
            f"no column {' or '.join(map(repr, choices))} for the {name}; its columns are "
            f"{', '.join(map(repr, self.row)) or 'none'} (map them: FILE?question=COLUMN&answer=COLUMN)"
        )


def _read_row(
    row: Mapping[str, Any], mapping: Columns, system: str, *, default_id: str, origin: tuple[str, str]
) -> RowReading:
    cells = _Cells(row, mapping)
    question, reply = cells.value("question"), ""
    if is_conversation(question):
        question, reply = read_conversation(question, system)
    solution = _text("answer", cells.value("answer", default=reply if gold_answer(reply)[0] else ""))
    is_worked, gold = _gold(solution, cells.columns.get("answer", ""))
    worked = {"solution": solution} if is_worked else {}
    identity, subject = cells.value("id"), cells.value("subject")
    problem = Problem(
        id=str(identity) if identity not in (None, "") else default_id,
        question=_text("question", question),
        answer=gold,
        source=origin[0],
        split=origin[1],
        level=_level(cells.value("level")),
        subject=str(subject) if subject else None,
        verifier=str(cells.value("verifier") or "maths"),
        columns=worked | {name: value for name, value in row.items() if name not in USUAL_COLUMNS},
    )
    cells.columns.setdefault("answer", f"the assistant's turn in {cells.columns['question']}")
    return RowReading(problem, cells.columns)


def _gold(answer: str, column: str) -> tuple[bool, str]:
    """(whether the text is a solution that marks it, the gold answer). ValueError for a text that has none."""
    is_worked, gold = gold_answer(answer)
    if not gold:
        raise ValueError(f"no final answer in {answer[:60]!r}")
    if not is_worked and column.rpartition(".")[2] == "solution" and len(_WORD.findall(gold)) > _MOST_WORDS:
        raise ValueError(
            f"the column {column!r} has neither #### nor \\boxed{{}}, and is more than a final answer "
            f"({gold[:60]!r}...); name the column of the answers: ?answer=COLUMN"
        )
    return is_worked, gold


def _checked_environment(problem: Problem, environments: str) -> Problem:
    """The problem, of an environment with its row in it. ValueError for one that is not allowed."""
    place = problem.columns.get("environment")
    if problem.verifier != VERIFIER or isinstance(place, EnvironmentRow):
        return problem
    if environments != "allow":
        raise ValueError(
            f"the verifier is {VERIFIER!r}, which starts a program that the row names; name the environment itself, as "
            "gym:TASK or env:NAME (a file that reasoner.train or reasoner.evaluate wrote: FILE?environments=allow)"
        )
    return replace(problem, columns={**problem.columns, "environment": EnvironmentRow.of(place)})


def _lookup(row: Mapping[str, Any], column: str) -> tuple[bool, Any]:
    """(whether the row has the column, its value). A dot in the name leads into a column of named values."""
    if column in row:
        return True, row[column]
    outer, _, inner = column.partition(".")
    nested = row.get(outer)
    return _lookup(nested, inner) if inner and isinstance(nested, Mapping) else (False, None)


def _text(name: str, value: Any) -> str:
    if name == "answer" and isinstance(value, str) and value.startswith('["'):  # JSON in a text, as in Skywork-OR1
        with suppress(ValueError):
            value = json.loads(value)
    if isinstance(value, list) and value and all(isinstance(part, str) for part in value):
        value = ", ".join(part.strip() for part in value)  # several answers, as in OlympiadBench
    if isinstance(value, bool) or not isinstance(value, str | Real | Decimal):
        raise ValueError(f"the {name} is {value!r}; it must be a text or a number")
    if not isinstance(value, str | Integral) and not isfinite(value):
        raise ValueError(f"the {name} is {value!r}; a number must be finite")
    if lost := _LOST.search(str(value)):
        found = str(value)[lost.start() : lost.end() + 6]
        raise ValueError(f"the {name} has {found!r}: in JSON a backslash of LaTeX is written twice, as in \\\\frac")
    text = (f"{value:f}" if isinstance(value, Decimal) else str(value)).strip()
    if not text:
        raise ValueError(f"the {name} is blank")
    return text


def _level(value: Any) -> int | None:
    """The level as a number: 5 from 5, "Level 5", or 5.0 as in a column with gaps; None without a whole number."""
    match = _LEVEL.fullmatch(str(value))
    return int(match[1]) if match else None
