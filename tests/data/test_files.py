"""Problems written as .jsonl are read back as they were, with the columns of their rows."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from data import load
from data.files import write_jsonl
from data.problem import Problem

PROBLEMS = [
    Problem("a", "1+1?", "2", columns={"hint": "two", "steps": [1, None], "solution": "It is #### 2"}),
    Problem("b", "Größe of \ud83d?", "\\frac{1}{2}", level=3, subject="sums", columns={"source": "a book"}),
    Problem("c", "Make 6 from 2 and 3.", "2*3", verifier="countdown"),
]


def test_written_problems_are_read_back_with_their_columns(tmp_path: Path) -> None:
    file = tmp_path / "new" / "mine.jsonl"
    write_jsonl(file, PROBLEMS)
    loaded = load(str(file))
    assert loaded == [replace(problem, source="mine", split="file") for problem in PROBLEMS]
    assert [problem.columns for problem in loaded] == [problem.columns for problem in PROBLEMS]
    write_jsonl(file, loaded)  # the same problems: nothing to do
    assert load(str(file)) == loaded


def test_columns_are_those_that_are_no_fields_of_a_problem(tmp_path: Path) -> None:
    file = tmp_path / "mine.jsonl"
    row = {"id": "a", "problem": "1+1?", "solution": "#### 2", "level": 1, "hint": "two"}
    file.write_text(json.dumps(row) + "\n")
    (problem,) = load(str(file))
    assert (problem.question, problem.answer) == ("1+1?", "2")
    assert problem.columns == {"problem": "1+1?", "solution": "#### 2", "hint": "two"}


def test_columns_take_no_part_in_the_comparison_of_problems() -> None:
    assert PROBLEMS[0] == replace(PROBLEMS[0], columns={}) and len({PROBLEMS[0], replace(PROBLEMS[0], columns={})}) == 1


def test_a_column_that_json_cannot_hold_is_named_and_other_problems_are_not_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "mine.jsonl"
    with pytest.raises(ValueError, match="'a': column 'picture'"):
        write_jsonl(file, [replace(PROBLEMS[0], columns={"picture": b"x"})])
    assert list(tmp_path.iterdir()) == []
    write_jsonl(file, PROBLEMS[:1])
    with pytest.raises(ValueError, match=r"mine\.jsonl holds other problems"):
        write_jsonl(file, PROBLEMS[1:])
    assert len(load(str(file))) == 1
