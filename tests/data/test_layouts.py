"""The layouts in which data sets are published are read without code, and `data show` says what was understood."""

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import date, time
from pathlib import Path
from typing import Any

import pytest

from data import Problem, load
from data.preview import preview_table, shared_ending
from data.spec import parts
from reasoner.api.inputs import problems_in_memory
from reasoner.cli.main import main
from reasoner.rollouts.dataset import gold_fault

Rows = Sequence[Mapping[str, Any]]
OWN = [
    {"id": "a", "question": "What is 6 * 7?", "answer": "42", "solution": "6 * 7 = <<6*7=42>>42\n#### 42"},
    {"id": "b", "question": "What is half of 1?", "answer": "\\frac12", "solution": "It is $\\boxed{\\frac12}$."},
    {"id": "c", "question": "Größe, in \"cm\",\nof 1 m?", "answer": "100", "solution": "#### 100"},
]  # fmt: skip


def jsonl_of_solutions(folder: Path, rows: Rows) -> str:
    """GSM8K and MATH as they are published: the gold answer stands in the worked solution."""
    lines = [{"id": row["id"], "question": row["question"], "answer": row["solution"]} for row in rows]
    (folder / "solutions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return str(folder / "solutions.jsonl")


def json_of_problems(folder: Path, rows: Rows) -> str:
    lines = [{"unique_id": row["id"], "problem": row["question"], "final_answer": row["answer"]} for row in rows]
    (folder / "problems.json").write_text(json.dumps({"version": 1, "data": lines}), "utf-8")
    return str(folder / "problems.json")


def csv_of_other_columns(folder: Path, rows: Rows) -> str:
    with (folder / "table.csv").open("w", newline="", encoding="utf-8-sig") as file:
        table = csv.writer(file)
        table.writerow(["id", "Question text", "gold"])
        table.writerows([row["id"], row["question"], row["answer"]] for row in rows)
    return f"{folder / 'table.csv'}?question=Question text&answer=gold"


def parquet_of_verl(folder: Path, rows: Rows) -> str:
    import pyarrow as pa
    from pyarrow import parquet

    lines = [
        {
            "id": row["id"], "data_source": "openai/gsm8k", "prompt": [{"role": "user", "content": row["question"]}],
            "reward_model": {"style": "rule", "ground_truth": row["answer"]}, "extra_info": {"split": "train"},
        }
        for row in rows
    ]  # fmt: skip
    parquet.write_table(pa.Table.from_pylist(lines), folder / "verl.parquet")
    return str(folder / "verl.parquet")


def folder_of_conversations(folder: Path, rows: Rows) -> str:
    (folder / "chats").mkdir()
    for number, part in enumerate((rows[:1], rows[1:])):
        lines = [
            {"id": row["id"], "messages": [
                {"role": "system", "content": "You are helpful."},
                {"role": "user", "content": row["question"]},
                {"role": "assistant", "content": row["solution"]},
            ]}
            for row in part
        ]  # fmt: skip
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / "chats" / f"part-{number}.jsonl").write_text(text, "utf-8")
    (folder / "chats" / "README.md").write_text("no problems")
    return f"{folder / 'chats'}?system=drop"


LAYOUTS = (jsonl_of_solutions, json_of_problems, csv_of_other_columns, parquet_of_verl, folder_of_conversations)


def golds(problems: Sequence[Problem]) -> list[tuple[str, str, str]]:
    return [(problem.id, problem.question, problem.answer) for problem in problems]


@pytest.mark.parametrize("write", LAYOUTS)
def test_each_layout_gives_the_same_problems(tmp_path: Path, write: Callable[[Path, Rows], str]) -> None:
    assert golds(load(write(tmp_path, OWN))) == [(row["id"], row["question"], row["answer"]) for row in OWN]


def write_lines(folder: Path, *lines: Any) -> str:
    path = folder / "mine.jsonl"
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines), "utf-8")
    return str(path)


USER = {"role": "user", "content": "1+1?"}
SYSTEM = {"role": "system", "content": "Answer in French."}


def test_the_question_is_the_user_s_last_turn_and_few_shot_turns_are_left_out(tmp_path: Path) -> None:
    shots = [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "\\boxed{4}"}]
    (problem,) = load(write_lines(tmp_path, {"prompt": [*shots, USER], "ground_truth": 2}))
    assert (problem.question, problem.answer) == ("1+1?", "2")


def test_question_of_verl_is_the_one_without_an_instruction(tmp_path: Path) -> None:
    prompt = [SYSTEM, {"role": "user", "content": '1+1? Output the final answer after "####".'}]
    row = {"prompt": prompt, "reward_model": {"ground_truth": "2"}, "extra_info": {"question": "1+1?"}}
    assert load(write_lines(tmp_path, row))[0].question == "1+1?"
    assert load(write_lines(tmp_path, row) + "?question=prompt&system=drop")[0].question == prompt[1]["content"]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"messages": [SYSTEM, USER], "answer": "2"}, r"has a system turn \('Answer in French.*system=drop"),
        ({"messages": [SYSTEM], "answer": "2"}, "no turn of the user"),
        ({"messages": [{"role": "user", "content": [{"type": "image"}]}], "answer": "2"}, "it must be a text"),
        ({"messages": [USER, {"role": "assistant", "content": "I think it is two."}]}, "no column 'answer'"),
        ({"messages": [{"role": None, "content": "1+1?"}], "answer": "2"}, "no turn of the user"),
        ({"messages": [], "answer": "2"}, r"the question is \[\]"),
        ({"question": "?", "reward_model": {"style": "rule"}}, "no column 'answer'"),
    ],
)
def test_conversation_that_cannot_be_read_is_refused_with_its_line(tmp_path: Path, row: Any, message: str) -> None:
    path = write_lines(tmp_path, {"question": "1+1?", "answer": "2"}, row)
    with pytest.raises(ValueError, match=f"mine.jsonl, line 2: .*{message}"):
        load(path)


def test_csv_row_with_too_few_values_and_folder_without_readable_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"known are \.jsonl"):
        load(str(tmp_path))
    (tmp_path / "x.csv").write_text("question,answer\n1+1?,2\n2+2?\n")
    with pytest.raises(ValueError, match=r"x\.csv, row 2 .*2 values"):
        load(str(tmp_path / "x.csv"))


FAULTY = (
    {"question": "1+1?", "answer": "It is \\boxed{2}", "hint": "two"}, {"question": "1+2?"}, "not json",
    {"question": "1+3?", "answer": "#### 4"}, {"question": "Make 6.", "answer": "six", "verifier": "countdown"},
    {"question": "1+5?", "answer": 6}, {"question": " ", "answer": "7"},
)  # fmt: skip


def test_rows_that_cannot_be_used_are_skipped_where_the_spec_says_so(tmp_path: Path) -> None:
    path = write_lines(tmp_path, *FAULTY)
    assert [problem.answer for problem in load(f"{path}?faulty=skip")] == ["2", "4", "six", "6"]
    with pytest.raises(ValueError, match=r"line 2: no column 'answer'.*\?faulty=skip"):
        load(path)


def test_rows_that_are_skipped_are_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    load(write_lines(tmp_path, *FAULTY) + "?faulty=skip")
    assert [record.getMessage().partition(": 3 rows")[1] for record in caplog.records] == [": 3 rows"]


REPEATED = [{"question": "1+1?", "answer": 2, "extra_info": {"index": number}} for number in range(3)]


def test_rows_that_repeat_question_and_answer_are_one_problem(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write_lines(tmp_path, *REPEATED, {"question": "1+1?", "answer": "3"}, {"question": "2+2?", "answer": "4"})
    assert [(problem.id, problem.answer) for problem in load(path)] == [
        ("mine/file/0", "2"), ("mine/file/3", "3"), ("mine/file/4", "4"),
    ]  # fmt: skip
    assert "2 rows" in caplog.text
    assert [problem.answer for problem in load(path, limit=2)] == ["2", "3"]
    for rows in (REPEATED, [{"id": None, **row} for row in REPEATED], [{"id": "", **row} for row in REPEATED]):
        assert [problem.id for problem in problems_in_memory(rows, source="mine")] == ["mine/file/0"]
    preview = preview_table(parts(path)[0], gold_fault)
    assert next(iter(preview.lines())) == "rows: 5, problems: 3, left out: 2"


def test_show_divides_a_set_as_a_run_does(tmp_path: Path) -> None:
    rows = ({"question": f"1+{n}?", "answer": "proof" if n % 2 else str(n)} for n in range(9))
    path = write_lines(tmp_path, *rows)
    for size in range(1, 8):
        assert main(["data", "show", f"{path}?sample={size}", "-n", "9", "--json", str(tmp_path / "shown.json")]) == 0
        shown = [row["question"] for row in json.loads((tmp_path / "shown.json").read_text())]
        assert shown == [one.question for one in load(f"{path}?sample={size}") if not gold_fault(one)]


def test_rows_with_ids_of_their_own_are_problems_of_their_own(tmp_path: Path) -> None:
    assert len(load(write_lines(tmp_path, *({"id": number, **row} for number, row in enumerate(REPEATED))))) == 3


def test_preview_counts_columns_and_what_is_left_out(tmp_path: Path) -> None:
    path = write_lines(tmp_path, *FAULTY)
    preview = preview_table(parts(path)[0], gold_fault)
    assert preview.mapping["question"] == {"question": 3} and preview.table_columns["hint"] == 1
    assert [fault.where.split(", ")[1] for fault in preview.faults] == ["line 2", "line 3", "line 7"]
    assert [fault.where.split(", ")[1] for fault in preview.bad_golds] == ["line 5"]
    assert [problem.answer for problem in preview.problems] == ["2", "4", "6"]
    assert next(iter(preview.lines())) == "rows: 7, problems: 3, left out: 4"


def test_data_show_says_how_a_conversation_was_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    verl = parquet_of_verl(tmp_path, OWN)
    assert main(["data", "show", verl, "-n", "1"]) == 0
    output = capsys.readouterr().out
    assert "question is read from prompt" in output and "answer is read from reward_model.ground_truth" in output
    assert "rows: 3, problems: 3, left out: 0" in output and "-> 42" in output and "half" not in output


def test_data_show_writes_dates_and_bytes_of_a_parquet_file_as_texts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    row = {"question": "1+1?", "answer": "2", "day": date(2026, 1, 2), "raw": b"x", "n": {"at": [time(3, 4)]}}
    parquet.write_table(pa.Table.from_pylist([row]), tmp_path / "day.parquet")
    assert main(["data", "show", str(tmp_path / "day.parquet"), "--json", "-"]) == 0
    (problem,) = json.loads(capsys.readouterr().out)
    assert problem["columns"] == {"day": "2026-01-02", "raw": "b'x'", "n": {"at": ["03:04:00"]}}


@pytest.mark.parametrize("lines", [[], [{"question": "1+1?"}]], ids=["no rows", "no usable row"])
def test_data_show_of_a_file_without_problems_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], lines: list[Any]
) -> None:
    path = write_lines(tmp_path, *lines)
    assert main(["data", "show", path]) == 2
    printed = capsys.readouterr()
    assert f"left out: {len(lines)}" in printed.out and path in printed.err


@pytest.mark.parametrize(
    ("questions", "ending"),
    [
        (["1+1?\n\nPut it after \"Answer:\".", "Is 2 < 3?\n\nPut it after \"Answer:\"."], 'Put it after "Answer:".'),
        (["Find a, as a fraction in lowest terms", "Find b, as a fraction in lowest terms"],
         "as a fraction in lowest terms"),
        (["How many are left?", "How many of them are left?"], ""),
        (["What is the sum of 1 and 1?"] * 2, ""),
        ([], ""),
    ],
)  # fmt: skip
def test_instruction_that_all_questions_end_with_is_found(questions: list[str], ending: str) -> None:
    assert shared_ending(questions) == ending
