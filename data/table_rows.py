"""Conversion of table rows, from a file or a hub, to problems. Every error names the row."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from math import isfinite
from numbers import Integral, Real
from typing import Any

from data.boxes import gold_answer
from data.environments.spec import VERIFIER, EnvironmentRow
from data.problem import Problem

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


class RowFault(ValueError):
    """A row that cannot be used: its position ("FILE, line 3") and the reason."""

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(f"{where}: {reason}")
        self.where, self.reason = where, reason


OnFault = Callable[[RowFault], None]  # returns to leave the row out, or raises


def refuse(fault: RowFault) -> None:
    """Raise the fault."""
    raise fault


@dataclass(frozen=True, slots=True)
class RowReading:
    """A problem, and what it was read from."""

    where: str
    columns: Mapping[str, str]  # the column of each field that the row has a value for
    problem: Problem


def read_rows(
    rows: Iterable[tuple[str, Mapping[str, Any]]],
    *,
    source: str,
    split: str,
    options: Mapping[str, str] = {},
    on_fault: OnFault = refuse,
) -> Iterator[RowReading]:
    """Convert (position, row) pairs to problems, with what each was read from. A row that cannot be used, or has the id
    of an earlier one, goes to `on_fault`. `options`: the columns of fields, and as data.spec has them system=drop
    (_read_conversation) and environments=allow, which accepts problems whose grading starts the programs that the rows
    name.
    """
    seen: dict[str, str] = {}
    for number, (where, row) in enumerate(rows):
        try:
            cells = _cells(row, options)
            problem = _problem(row, {name: value for name, (_, value) in cells.items()}, cells["answer"][0])
            problem = replace(problem, id=problem.id or f"{source}/{split}/{number}", source=source, split=split)
            problem = _checked_environment(problem, options.get("environments", ""))
            if problem.id in seen:
                raise ValueError(f"id {problem.id!r} was used before, by {seen[problem.id]}")
        except ValueError as error:
            on_fault(RowFault(where, str(error)))
            continue
        seen[problem.id] = where
        columns = {name: column for name, (column, value) in cells.items() if value not in (None, "")}
        yield RowReading(where, columns, problem)


def _cells(row: Mapping[str, Any], mapping: Mapping[str, str]) -> dict[str, tuple[str, Any]]:
    """(column, value) of the fields of a problem that the row has: of a conversation the question, and the reply as the
    answer where no column has one. ValueError where there is no question or answer, or no column that is mapped.
    """
    cells, reply = dict[str, tuple[str, Any]](), ""
    for name, usual in USUAL_COLUMNS.items():
        choices = (mapping[name],) if name in mapping else usual
        if cell := next(((column, value) for column in choices for value in _lookup(row, column)), None):
            cells[name] = cell
        elif name == "answer" and name not in mapping and gold_answer(reply)[0]:
            cells[name] = f"the assistant's turn in {cells['question'][0]}", reply
        elif name in mapping or name in REQUIRED:
            raise ValueError(
                f"no column {' or '.join(map(repr, choices))} for the {name}; its columns are "
                f"{', '.join(map(repr, row)) or 'none'} (map them: FILE?question=COLUMN&answer=COLUMN)"
            )
        if name == "question" and _is_conversation(cells[name][1]):
            question, reply = _read_conversation(cells[name][1], mapping.get("system", ""))
            cells[name] = cells[name][0], question
    return cells


def _is_conversation(value: object) -> bool:
    """Whether a value is a list of turns, each with a role and a content, as chat models are trained on."""
    return (
        isinstance(value, list) and bool(value) and all(isinstance(turn, Mapping) and "role" in turn for turn in value)
    )


def _read_conversation(turns: Sequence[Mapping[str, Any]], system: str) -> tuple[str, str]:
    """(the user's last turn, the assistant's turn after it or "") of a conversation. ValueError for one without a
    question, and for one with a system turn, which says how to answer as the prompt template does, unless `system` is
    "drop".
    """
    texts = [(turn["role"], _content(turn)) for turn in turns]
    places = [place for place, (role, _) in enumerate(texts) if role == "user"]
    if not places:
        roles = ", ".join(str(role) for role, _ in texts)
        raise ValueError(f"the conversation has no turn of the user; its roles are {roles}")
    instructions = [text for role, text in texts if role == "system"]
    if instructions and system != "drop":
        raise ValueError(
            f"the conversation has a system turn ({instructions[0][:40]!r}...); ?system=drop leaves it out"
        )
    last = places[-1]
    return texts[last][1], next((text for role, text in texts[last + 1 :] if role == "assistant"), "")


def _content(turn: Mapping[str, Any]) -> str:
    content = turn.get("content")
    if not isinstance(content, str):
        raise ValueError(f"the content of the {turn['role']}'s turn is {content!r:.60}; it must be a text")
    return content


def _problem(row: Mapping[str, Any], values: Mapping[str, Any], answer_column: str) -> Problem:
    """The problem of a row with these values by field; its id is empty where the row has none."""
    solution, identity = _text("answer", values["answer"]), values.get("id")
    is_worked, gold = _gold(solution, answer_column)
    worked = {"solution": solution} if is_worked else {}
    return Problem(
        id="" if identity is None else str(identity),
        question=_text("question", values["question"]),
        answer=gold,
        level=_level(values.get("level")),
        subject=str(values["subject"]) if values.get("subject") else None,
        verifier=str(values.get("verifier") or "maths"),
        columns=worked | {name: value for name, value in row.items() if name not in USUAL_COLUMNS},
    )


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


def _lookup(row: Mapping[str, Any], column: str) -> Iterator[Any]:
    """The value in a column, if the row has it. A dot in the name leads into a column of named values."""
    outer, _, inner = column.partition(".")
    if column in row:
        yield row[column]
    elif inner and isinstance(nested := row.get(outer), Mapping):
        yield from _lookup(nested, inner)


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
    if isinstance(value, float) and len(rounded := f"{value:.15g}") < len(text) - 2:  # 0.1 + 0.2 is 0.30000000000000004
        text = rounded
    if not text:
        raise ValueError(f"the {name} is blank")
    return text


def _level(value: Any) -> int | None:
    """The level as a number: 5 from 5, "Level 5", or 5.0 as in a column with gaps; None without a whole number."""
    match = _LEVEL.fullmatch(str(value))
    return int(match[1]) if match else None
