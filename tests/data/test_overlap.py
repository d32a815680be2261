"""Evaluation problems that stand in a training set are found, and questions of one form with other numbers are not."""

import json
import random
import re
from dataclasses import replace
from pathlib import Path

import pytest

from data import Problem, load
from data.overlap import find_overlaps, words_of
from reasoner.cli.main import main
from reasoner.evals.contamination import contamination_line, contamination_of_model
from reasoner.runs.run_start import open_run

BENCHMARKS = Path(__file__).parents[3] / "shared" / "benchmarks"
QUESTION = "A train travels 1,200 miles in 3 hours. At the same rate, how many hours would it take to travel 400 miles?"


def problem(question: str, name: str = "p") -> Problem:
    return Problem(name, question, "1")


@pytest.mark.parametrize(
    ("question", "other"),
    [
        (r"What is $\frac{1}{2} + 3$?", r"what is \dfrac{1}{2}  + 3"),
        ("Pay $1,000 for it.", "Pay 1000 for it"),
        (r"Let $\left( x-1 \right)$ be", "let (x-1) be"),
    ],
)
def test_layout_is_no_difference(question: str, other: str) -> None:
    assert words_of(question) == words_of(other)


def test_operators_are_words() -> None:
    assert words_of("21 - 5") != words_of("21 + 5") and words_of("best-selling") == ("best", "selling")


@pytest.mark.parametrize(
    ("training", "kind"),
    [
        (QUESTION.upper(), "exact"),
        (f"{QUESTION} Let's think step by step.", "near"),
        (QUESTION.replace("A train", "The train of the company"), "near"),
        (QUESTION.replace("400", "401"), None),  # the same form with another number
        (QUESTION.replace("400", "3"), None),  # all of its numbers, but not as often
        ("A train travels 1,200 miles in 3 hours and 400 seconds.", None),
    ],
)
def test_copy_is_exact_or_near_and_other_numbers_are_another_problem(training: str, kind: str | None) -> None:
    overlaps = find_overlaps([problem("What is 1 + 1?"), problem(training, "t")], [problem(QUESTION)])
    assert ["exact" if one.is_exact else "near" for one in overlaps] == ([kind] if kind else [])
    assert all(one.training.id == "t" for one in overlaps)


def test_the_most_similar_training_problem_is_named_and_short_questions_are_compared_exactly() -> None:
    others = {"near": f"{QUESTION} Say it now.", "exact": QUESTION, "late": f"{QUESTION} So."}
    (overlap,) = find_overlaps([problem(text, name) for name, text in others.items()], [problem(QUESTION)])
    assert overlap.training.id == "exact" and overlap.share == 1.0
    assert find_overlaps([problem("Compute 12 + 5 now.")], [problem("Compute 12 + 5.")]) == []
    assert len(find_overlaps([problem("compute 12 + 5")], [problem("Compute 12 + 5.")])) == 1


@pytest.mark.slow  # that they share none: test_generated.py
def test_generated_splits_share_no_problem_and_few_have_the_same_numbers() -> None:
    assert find_overlaps(load("one-step"), load("one-step:heldout")) == []
    overlaps = find_overlaps(load("generated"), load("generated:heldout"))
    assert len(overlaps) < 10 and {one.evaluation.subject for one in overlaps} <= {"countdown", "equations"}
    assert not any(one.is_exact for one in overlaps)


def write(path: Path, *questions: str) -> Path:
    path.write_text("".join(json.dumps({"question": one, "answer": "1"}) + "\n" for one in questions), "utf-8")
    return path


def test_contaminated_pair_is_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    training = write(tmp_path / "train.jsonl", "What is 1 + 1?", QUESTION + " Explain.")
    evaluation = write(tmp_path / "eval.jsonl", "What is 3 + 4?", QUESTION)
    assert main(["data", "contamination", str(training), str(evaluation)]) == 0
    output = capsys.readouterr().out
    assert "1 of 2 stand in the training set (1 near)" in output
    assert "eval/file/1 and train/file/1: near" in output and "training:   A train" in output


def test_evaluation_of_a_run_tells_of_its_training_problems(tmp_path: Path) -> None:
    training = write(tmp_path / "train.jsonl", QUESTION)
    checkpoint = tmp_path / "run" / "checkpoints" / "step-000001"
    checkpoint.mkdir(parents=True)
    open_run(tmp_path / "run", {"data.train": str(training), "sft.data": ""}, {}, resuming=False)
    sets = {"mine": [problem(QUESTION), problem("What is 2 + 2?")]}
    line = contamination_of_model(checkpoint, sets)
    assert line == f"contamination by {training}: mine: 1 of 2 stand in the training set (1 exact)"
    training.unlink()
    assert "cannot be checked: " in contamination_of_model(checkpoint, sets)
    assert contamination_of_model(tmp_path, sets) == ""  # no run's model


def test_line_of_a_run_names_its_sets() -> None:
    sets = {"validation": [problem(QUESTION)], "heldout": [], "other": [problem("What is 2 + 2?")]}
    line = contamination_line([problem(QUESTION)], sets)
    assert line == "validation: 1 of 1 stand in the training set (1 exact); other: none of 1 is a training problem"


@pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="needs the benchmark files")
def test_benchmarks_have_the_overlaps_that_are_known() -> None:
    sets = {path.stem: load(str(path)) for path in BENCHMARKS.glob("*.jsonl")}
    amc = find_overlaps(sets["amc22_23"], sets["amc23"])
    assert len(amc) == 40 and all(one.is_exact for one in amc)
    for name in ("aime24", "aime25", "amc23"):  # stock phrases alone
        assert find_overlaps(sets["math_train_2000"], sets[name]) == []
    assert len(find_overlaps(sets["math_train_2000"], sets["math500"])) <= 4  # of one figure or one form


@pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="needs the benchmark files")
def test_most_copies_with_every_twentieth_word_changed_are_found() -> None:
    problems, rng = load(str(BENCHMARKS / "math500.jsonl")), random.Random(0)

    def reword(question: str) -> str:
        words = question.split()
        return " ".join("thing" if not re.search(r"\d", w) and rng.random() < 0.05 else w for w in words)

    copies = [replace(one, question=reword(one.question)) for one in problems]
    assert len(find_overlaps(copies, problems)) > 0.9 * len(problems)
