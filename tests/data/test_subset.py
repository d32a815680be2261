"""Subsets of a problem set: the two sides of a division have no question in common and make up the whole."""

import json
from pathlib import Path

import pytest

from data.registry import check, evaluation_spec, hub_sources, load
from data.spec import Subset, parts


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of 40 problems, sorted by level; the last one asks the question of the first again."""
    rows = [{"question": f"What is {n} + 1?", "answer": str(n + 1), "level": 1 + n // 10} for n in range(39)]
    file = tmp_path / "sums.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in [*rows, rows[0]]))
    return file


@pytest.mark.parametrize("size", [1, 7, 20, 38])
def test_sample_and_rest_share_no_question_and_make_up_the_set(path: Path, size: int) -> None:
    sample, rest = (load(f"{path}?{option}={size}") for option in ("sample", "without_sample"))
    questions = [{problem.question for problem in side} for side in (sample, rest)]
    assert len(sample) == size and not questions[0] & questions[1]
    assert questions[0] | questions[1] == {problem.question for problem in load(str(path))}
    assert [problem.id for problem in rest] == [p.id for p in load(str(path)) if p.question not in questions[0]]


def test_sample_does_not_depend_on_the_order_of_the_rows_and_is_spread_over_them(path: Path) -> None:
    sample = load(f"{path}?sample=12")
    reverse = path.with_name("reverse.jsonl")
    reverse.write_text("\n".join(reversed(path.read_text().splitlines())))
    assert [p.question for p in load(f"{reverse}?sample=12")] == [p.question for p in sample]
    assert {problem.level for problem in sample} == {1, 2, 3, 4}
    assert load(f"{path}?sample=12", limit=5) == sample[:5] and load(f"{path}?sample=5") == sample[:5]


def test_question_that_is_only_set_otherwise_is_on_one_side(tmp_path: Path) -> None:
    texts = {
        "2+3": "5", "2  + 3": "5", "\\frac12 of 1,000": "500", "\\dfrac12\\, of 1000": "500", "2 - 3": "-1"
    }  # fmt: skip
    path = tmp_path / "x.jsonl"
    path.write_text("".join(json.dumps({"question": text, "answer": gold}) + "\n" for text, gold in texts.items()))
    for size in (1, 2):
        sides = (load(f"{path}?{option}={size}") for option in ("sample", "without_sample"))
        sample, rest = ({problem.answer for problem in side} for side in sides)
        assert len(sample) == size and not sample & rest


def test_options_of_a_table_and_weights_of_a_mixture_go_with_a_subset(path: Path) -> None:
    spec = f"{path}?question=question&sample=9&answer=answer"
    assert load(spec) == load(f"{path}?sample=9")
    assert parts(spec)[0].options == {"question": "question", "answer": "answer"}
    assert len(load(f"{path}?without_sample=30=0.5,generated?sample=10=0.5", limit=8)) == 8


def test_named_sets_are_divided_as_well() -> None:
    sample, rest = (load(f"one-step:heldout?{option}=50") for option in ("sample", "without_sample"))
    assert len(sample) == 50 and {p.id for p in sample + rest} == {p.id for p in load("one-step:heldout")}
    assert hub_sources("math?without_sample=200") == ["DigitalLearningGmbH/MATH-lighteval"]
    assert evaluation_spec("gsm8k?sample=9") == "gsm8k:test?sample=9"
    check("gsm8k?sample=9")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("sample=0", "has sample=0; write a whole number above 0"),
        ("sample=\u0663", "sample=\u0663"),  # 3 in Arabic digits
        ("sample=many", "has sample=many"),
        ("without_sample=", "has without_sample="),
        ("sample=3&without_sample=3", "several of sample, without_sample"),
        ("sample=39", "must be smaller than the set, which has 39 questions"),
    ],
)
def test_subset_that_cannot_be_taken_is_refused(path: Path, options: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check(f"{path}?{options}")


@pytest.mark.parametrize(
    ("spec", "query", "subset"),
    [
        ("gsm8k", "", None),
        ("gsm8k:train?sample=5", "", Subset(5)),
        ("a.csv?question=q&without_sample=5", "question=q", Subset(5, is_rest=True)),
        ("a.csv?question=sample", "question=sample", None),
    ],
)
def test_subset_is_split_from_the_options(spec: str, query: str, subset: Subset | None) -> None:
    (part,) = parts(spec)
    assert (part.query, part.subset) == (query, subset)


def test_rest_without_a_problem_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "same.jsonl"
    path.write_text('{"question": "1+1?", "answer": "2"}\n' * 5)
    with pytest.raises(ValueError, match=r"without_sample=2'.* has 1 questions"):
        load(f"{path}?without_sample=2")
