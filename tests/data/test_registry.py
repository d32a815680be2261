import json
import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from data.problem import Problem
from data.registry import evaluation_spec, fingerprint, load
from data.table_rows import read_rows


def write_lines(folder: Path, name: str, *lines: Any) -> Path:
    path = folder / name
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines), "utf-8")
    return path


def test_generated_is_generated_train() -> None:
    assert load("generated", limit=20) == load("generated:train", limit=20)
    assert {problem.split for problem in load("generated:heldout", limit=20)} == {"heldout"}


def test_an_evaluation_uses_the_test_split_by_default_and_of_each_part_of_a_mixture() -> None:
    specs = ["gsm8k", "gsm8k:train", "generated", "aime24", "mine.jsonl"]
    assert [evaluation_spec(spec) for spec in specs] == [
        "gsm8k:test", "gsm8k:train", "generated:heldout", "aime24", "mine.jsonl"
    ]  # fmt: skip
    specs = [
        "openai/gsm8k?config=main&sample=9", "openai/gsm8k:train", "HuggingFaceH4/aime_2024", "org/set",
        "org/mine.jsonl",
    ]  # fmt: skip
    assert [evaluation_spec(spec) for spec in specs] == [
        "openai/gsm8k:test?config=main&sample=9", "openai/gsm8k:train", "HuggingFaceH4/aime_2024", "org/set:test",
        "org/mine.jsonl",
    ]  # fmt: skip
    assert evaluation_spec("gsm8k,math?sample=9") == "gsm8k:test,math:test?sample=9"
    mixture = evaluation_spec("generated=0.25,math:train=1.5,gym:gcd?names=[1,2]=3,a.jsonl=0.001")
    assert mixture == "generated:heldout=0.25,math:train=1.5,gym:gcd:heldout?names=[1,2]=3,a.jsonl=0.001"


def test_several_answers_in_one_row_are_joined_to_one_gold(tmp_path: Path) -> None:
    path = write_lines(tmp_path, "olympiad.jsonl", {"question": "roots?", "final_answer": ["$1$", " $-2$"]})
    assert load(str(path))[0].answer == "$1$, $-2$"


def test_list_of_answers_may_be_json_in_a_text(tmp_path: Path) -> None:
    texts = [r'["\\frac{1}{2}"]', '["1", "-2"]', "[1, 2)", '["1']  # the first two as in Skywork-OR1
    rows = [{"question": text, "reward_model": {"ground_truth": text}} for text in texts]
    golds = [problem.answer for problem in load(str(write_lines(tmp_path, "skywork.jsonl", *rows)))]
    assert golds == [r"\frac{1}{2}", "1, -2", *texts[2:]]


def test_limit_takes_the_first_problems() -> None:
    assert load("generated", limit=7) == load("generated", limit=20)[:7]
    with pytest.raises(ValueError, match="limit is 0"):
        load("generated", limit=0)


def test_a_jsonl_file_with_the_usual_columns_is_loaded(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path,
        "mine.jsonl",
        {"question": "1+1?", "answer": 2},
        "",
        {"id": "b", "question": " 2*2? ", "answer": "#### 4", "level": "Level 5", "subject": "Algebra"},
        {"question": "Make 6 from 2 and 3.", "answer": "2*3", "verifier": "countdown"},
    )
    assert load(str(path)) == [
        Problem("mine/file/0", "1+1?", "2", "mine", "file"),
        Problem("b", "2*2?", "4", "mine", "file", level=5, subject="Algebra"),
        Problem("mine/file/2", "Make 6 from 2 and 3.", "2*3", "mine", "file", verifier="countdown"),
    ]


def test_columns_can_be_mapped_and_a_solution_may_be_an_answer_in_a_few_words(tmp_path: Path) -> None:
    path = write_lines(tmp_path, "math.jsonl", {"q": "Half?", "worked": r"It is $\boxed{\frac12}$.", "answer": "no"})
    (problem,) = load(f"{path}?question=q&answer=worked")
    assert (problem.question, problem.answer) == ("Half?", r"\frac12")
    golds = ["all real numbers", r"$\left\{ \frac{\sqrt{2} + \operatorname{sgn} x}{\alpha\beta\gamma} \right\}$"]
    rows = [{"question": "?", "solution": gold} for gold in golds]
    assert [problem.answer for problem in load(str(write_lines(tmp_path, "s.jsonl", *rows)))] == golds
    prose = {"question": "?", "answer": "The bird that was on the roof saw the cat and flew away."}
    assert load(str(write_lines(tmp_path, "prose.jsonl", prose)))[0].answer == prose["answer"]


@pytest.mark.parametrize(
    ("level", "number"),
    [
        (3, 3), (3.0, 3), ("Level 5", 5), (" 4 ", 4), ("3.0", 3), (3.5, None), ("Level ?", None), (None, None),
        (True, None),
    ],
)  # fmt: skip
def test_level_is_a_whole_number_in_any_spelling(tmp_path: Path, level: object, number: int | None) -> None:
    assert load(str(write_lines(tmp_path, "x.jsonl", {**GOOD, "level": level})))[0].level == number


def test_decimals_of_parquet_and_numbers_too_large_for_a_float_are_numbers(tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    rows = [{"question": "?", "answer": Decimal(text)} for text in ("1.50", "120000000.00")]
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "d.parquet")
    assert [problem.answer for problem in load(str(tmp_path / "d.parquet"))] == ["1.50", "120000000.00"]
    with pytest.raises(ValueError, match=r"row 0: .*Decimal\('NaN'\)"):
        list(read_rows([("row 0", {"question": "?", "answer": Decimal("NaN")})], source="s", split="file"))
    path = write_lines(tmp_path, "x.jsonl", {"question": "10^400?", "answer": 10**400})
    assert load(str(path))[0].answer == "1" + "0" * 400


@pytest.mark.parametrize(
    ("number", "gold"),
    [(0.1 + 0.2, "0.3"), (0.9 - 0.1, "0.8"), (1.1 * 3, "3.3"), (2 / 3, "0.6666666666666666"), (42.0, "42.0")],
)
def test_rounding_of_a_number_is_no_part_of_the_gold(tmp_path: Path, number: float, gold: str) -> None:
    assert load(str(write_lines(tmp_path, "x.jsonl", {"question": "?", "answer": number})))[0].answer == gold


def test_parquet_with_two_columns_of_one_name_is_refused(tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.table([["1+1?"], ["2"], ["3"]], names=["question", "answer", "answer"])
    parquet.write_table(table, tmp_path / "d.parquet")
    with pytest.raises(ValueError, match="'answer'"):
        load(str(tmp_path / "d.parquet"))


@pytest.mark.parametrize("name", ["x.jsonl", "x.jsonl?faulty=skip", "x.json", "x.csv"])
def test_byte_order_mark_loses_no_row(tmp_path: Path, name: str) -> None:
    texts = {
        "x.jsonl": '{"question": "1+1?", "answer": "2"}\n{"question": "2+1?", "answer": "3"}\n',
        "x.json": '[{"question": "1+1?", "answer": "2"}, {"question": "2+1?", "answer": "3"}]',
        "x.csv": "question,answer\n1+1?,2\n2+1?,3\n",
    }
    (tmp_path / name.partition("?")[0]).write_text(texts[name.partition("?")[0]], encoding="utf-8-sig")
    assert [problem.answer for problem in load(str(tmp_path / name))] == ["2", "3"]


def test_lines_of_json_in_a_json_file_are_rows(tmp_path: Path) -> None:
    path = write_lines(tmp_path, "lines.json", {"question": "1+1?", "answer": 2}, {"question": "2+1?", "answer": 3})
    assert [problem.answer for problem in load(str(path))] == ["2", "3"]


GOOD = {"question": "1+1?", "answer": "2"}
FAULTS = [
    (("\n",), "the file holds no problems"),
    ((GOOD, "{'question': 1}"), "line 2: not valid JSON"),
    ((GOOD, '{"question": "?", "answer": ' + "9" * 5000 + "}"), "line 2: not JSON that can be read"),
    ((GOOD, "[1, 2]"), "line 2: expected a JSON object, got list"),
    ((GOOD, {"question": "1+1?"}), "line 2: no column 'answer' or 'final_answer' or 'ground_truth'"),
    ((GOOD, {"question": "1+1?", "answer": "  "}), "line 2: the answer is blank"),
    ((GOOD, {"question": "1+1?", "answer": [2]}), r"line 2: the answer is \[2\]"),
    ((GOOD, {"question": "1+1?", "answer": "####  "}), "line 2: no final answer"),
    (({"question": "?", "solution": "Since 6 * 7 = 42, the value of the sum is 42."},), "the column 'solution' has"),
    ((GOOD, '{"question": "1+1?", "answer": -1e999}'), "line 2: the answer is -inf; a number must be finite"),
    ((GOOD, {"question": True, "answer": 1}), "line 2: the question is True; it must be a text or a number"),
    ((GOOD, r'{"question": "1/2?", "answer": "\frac{1}{2}"}'), "line 2: the answer has .* a backslash of LaTeX"),
    (({**GOOD, "id": "a"}, {**GOOD, "id": "a"}), "line 2: id 'a' was used before"),
]


@pytest.mark.parametrize(("lines", "message"), FAULTS)
def test_a_faulty_file_is_one_error_that_names_file_and_line(tmp_path: Path, lines: tuple, message: str) -> None:
    path = write_lines(tmp_path, "faulty.jsonl", *lines)  # trap 39: a gold that cannot be used is refused at load
    with pytest.raises(ValueError, match=message) as caught:
        load(str(path))
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        (b"\xff\xfe\x00", "x.jsonl", "not a UTF-8 text"),
        (b"PAR0", "x.parquet", "not a parquet file"),
        (b"", "x.xlsx", ".xlsx"),
        (b"\xff,b\n", "x.csv", "not a UTF-8 text"),
        (b'question,answer\n"1', "x.csv", "not CSV that can be read"),
        (b'{"rows": []}', "x.json", "expected a JSON array"),
        (b"question,answer,answer\n1+1?,2,3\n", "x.csv", "several columns are named 'answer'"),
        (b"[1", "x.json", "not JSON that can be read"),
        (b"", "x.jsonl.gz", "unknown kind of file '.gz'"),
    ],
)
def test_files_of_another_kind_are_refused(tmp_path: Path, content: bytes, name: str, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=re.escape(message)):
        load(str(tmp_path / name))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("gsm8", "did you mean 'gsm8k'"),
        ("", "known are generated:train"),
        ("generated:corpus", "no split 'corpus'; it has train, validation, heldout"),
        ("math500:train", "no split 'train'; it has test"),
        ("no/such/file.jsonl", "there is no such file"),
    ],
)
def test_unknown_names_are_refused_with_the_known_ones(spec: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        load(spec)


@pytest.mark.parametrize("mapping", ["question", "question=", "colour=x"])
def test_a_mapping_that_maps_nothing_is_refused(tmp_path: Path, mapping: str) -> None:
    path = write_lines(tmp_path, "x.jsonl", GOOD)
    with pytest.raises(ValueError, match=r"cannot read the options|has colour=x; its options are .*, question"):
        load(f"{path}?{mapping}")


def test_the_fingerprint_depends_on_the_problems_and_their_order() -> None:
    first, second = load("generated", limit=2)
    same = fingerprint([first, second])
    assert same == fingerprint(iter([first, second])) and len(same) == 64
    others = [[second, first], [first], [replace(first, answer="0"), second], [replace(first, verifier="x"), second]]
    assert same not in map(fingerprint, others)


def test_the_fingerprint_of_what_is_trained_on_depends_on_the_columns_of_reward_functions(tmp_path: Path) -> None:
    one, other = (load(str(write_lines(tmp_path, "x.jsonl", {**GOOD, "hint": hint}))) for hint in "23")
    assert fingerprint(one) == fingerprint(other)
    assert fingerprint(one, with_columns=True) != fingerprint(other, with_columns=True)


def test_half_of_a_surrogate_pair_has_a_fingerprint(tmp_path: Path) -> None:
    path = write_lines(tmp_path, "x.jsonl", *({**GOOD, "question": f"1+{text}"} for text in ("\udc00", "\udc01", "2")))
    assert len({fingerprint([problem]) for problem in load(str(path))}) == 3
    assert len(load(f"{path}?sample=2")) == 2


def test_a_failed_download_names_the_alternative(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ValueError, match=r"cannot get 'gsm8k'.*PATH\.jsonl or PATH\.parquet") as caught:
        load("gsm8k")
    assert "\n" not in str(caught.value)


def test_hub_rows_of_each_set_become_problems() -> None:
    rows = {
        "gsm8k": {"question": "How many?", "answer": "2+2=<<2+2=4>>4\n#### 4"},
        "math": {"problem": "Half?", "level": "Level 2", "type": "Algebra", "solution": r"So $\boxed{\frac12}$."},
        "math500": {
            "problem": "Half?", "solution": "...", "answer": r"\frac12", "level": 2, "unique_id": "test/a/1.json",
        },
    }  # fmt: skip
    golds = {"gsm8k": "4", "math": r"\frac12", "math500": r"\frac12"}
    for name, row in rows.items():
        (reading,) = read_rows([("row 0", row)], source=name, split="test")
        assert reading.problem.answer == golds[name]
