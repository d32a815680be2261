"""Files of answers with their golds, to grade: JSON lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from data import Problem
from reasoner.console import log
from reasoner.runs.json_files import check, parse
from verifiers.answer_text import as_text
from verifiers.equivalence import check_verifier

T = TypeVar("T")
_PART = 256  # answers
_NAMES = ("response", "answer")


def read_answers(path: Path, verifier: str) -> list[tuple[str, str, Problem]]:
    """(name, text, problem) of each line that is not blank: the name is "response", or without one "answer", and the
    problem's id the line's number. ValueError for a file without lines, and naming the line that cannot be used.
    """
    try:
        lines = path.read_text("utf-8").split("\n")  # not splitlines(): a JSON text may hold other line ends
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error
    answers = [_answer(path, number, line, verifier) for number, line in enumerate(lines, 1) if line.strip()]
    if not answers:
        raise ValueError(f"{path} has nothing to grade")
    return answers


def in_parts(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """The items in parts that are graded one after another, with a line of progress after each of several."""
    for start in range(0, len(items), _PART):
        yield items[start : start + _PART]
        if len(items) > _PART:
            log(f"graded {min(start + _PART, len(items)):,} of {len(items):,}")


def _answer(path: Path, number: int, line: str, verifier: str) -> tuple[str, str, Problem]:
    where = f"{path}, line {number}"
    row = check(parse(line, where, allow_nan=True, numbers_as_text=True), where, {})
    name = next((name for name in _NAMES if row.get(name) is not None), None)
    if row.get("gold") is None or name is None:
        has = ", ".join(row) or "nothing"
        raise ValueError(f"{where}: it must have gold, and {' or '.join(_NAMES)}; it has {has}")
    try:
        verifier = check_verifier(str(row.get("verifier", verifier)))
        gold, text = as_text("gold", row["gold"]), as_text(name, row[name])
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error
    question = str(row.get("question") or "")
    return name, text, Problem(str(number), question, gold, str(path), "file", verifier=verifier, columns=row)
