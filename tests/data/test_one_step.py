"""One-step problems: those of the measured run, with right answers, and no calculation in two splits."""

import re
from itertools import product

import pytest

from data.one_step import SPLITS, problems, split_of
from data.registry import evaluation_spec, fingerprint, load
from verifiers import grade

ROWS = {split: problems(split) for split in SPLITS}
COMPUTE = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__}


def operation(problem):
    """(left operand, operator, right operand), from the id."""
    left, operator, right = re.fullmatch(r"\w+/(\d+)([-+*])(\d+)", problem.id).groups()
    return int(left), operator, int(right)


def calculation(problem):
    """What a model could remember: a difference, or a sum or product in any order."""
    left, operator, right = operation(problem)
    return operator, *((left, right) if operator == "-" else sorted((left, right)))


@pytest.mark.parametrize(
    ("split", "count", "digest"),
    [
        ("train", 2126, "29b0920d8e3b258caa15695ae5775c2604915372127f945b88205e3a45766852"),
        ("validation", 60, "d60760599248f7855ff1c9ca71ee89833375bdcb6bf82fc3f761a1bed1cfe0a1"),
        ("heldout", 437, "84ca9489b1c511492d875b8c674fae555ed896fb60977ba6f5c5fd15c48e6b2d"),
    ],
)
def test_problems_are_those_of_the_measured_run(split, count, digest):  # docs/RESULTS.md: its stored fingerprints
    assert (len(ROWS[split]), fingerprint(ROWS[split])) == (count, digest)
    assert {row.split for row in ROWS[split]} == {split}


def test_no_calculation_is_in_two_splits():
    splits = {split: {calculation(problem) for problem in rows} for split, rows in ROWS.items()}
    assert not splits["train"] & splits["validation"] and not splits["train"] & splits["heldout"]
    assert not splits["validation"] & splits["heldout"]


def test_split_does_not_depend_on_the_order_of_operands():
    for low, high in product(range(11, 60, 7), range(60, 100, 7)):
        assert split_of("+", low, high) == split_of("+", high, low) == split_of("-", low + high, high)
        assert split_of("*", low, high) == split_of("*", high, low)


def test_every_gold_answer_is_the_value_of_its_question_and_grades_as_correct():
    for problem in (row for rows in ROWS.values() for row in rows):
        left, operator, right = operation(problem)
        assert int(problem.answer) == COMPUTE[operator](left, right) > 0
        assert sorted(map(int, re.findall(r"\d+", problem.question))) == sorted((left, right))
        assert grade(problem.answer, problem.answer)


def test_every_operator_is_asked_as_a_calculation_and_in_words():
    for rows in ROWS.values():
        kinds = {f"{kind} {operator}" for kind in ("calculation", "word problem") for operator in COMPUTE}
        assert {row.subject for row in rows} == kinds
        assert len({row.id for row in rows}) == len(rows)


def test_name_loads_the_training_problems_and_an_evaluation_the_held_out_ones():
    assert load("one-step", limit=5) == ROWS["train"][:5] and evaluation_spec("one-step") == "one-step:heldout"
    with pytest.raises(ValueError, match=r"'test'.* train, validation, heldout"):
        load("one-step:test")
