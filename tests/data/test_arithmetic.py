"""Steps, their solution by place value, and the splits of facts."""

from random import Random

import pytest

from data.arithmetic import SPLITS, equation, fact, is_elementary, split_of_step, work
from data.families import FAMILIES, LEVELS, candidates, draw


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (equation(347, "+", 286), "347+200=547, 547+80=627, 627+6=633"),
        (equation(633, "-", 286), "633-200=433, 433-80=353, 353-6=347"),
        (equation(347, "*", 6), "300*6=1800, 40*6=240, 7*6=42, 1800+240=2040, 2040+42=2082"),
        (equation(2082, "/", 6), "6*300=1800, 2082-1800=282, 6*40=240, 282-240=42, 6*7=42, 300+40=340, 340+7=347"),
        (equation(12, "*", 14), "10*10=100, 10*4=40, 2*10=20, 2*4=8, 100+40=140, 140+20=160, 160+8=168"),
        (equation(40, "*", 6), ""),
        (equation(500, "+", 7), ""),
    ],
)
def test_work_splits_numbers_by_place_value(step, expected):
    assert ", ".join(map(str, work(step))) == expected


def test_equivalent_equations_have_the_same_fact():
    forms = [equation(347, "*", 6), equation(6, "*", 347), equation(2082, "/", 6), equation(2082, "/", 347)]
    assert {fact(form) for form in forms} == {("*", 6, 347)}
    sums = [equation(347, "+", 286), equation(286, "+", 347), equation(633, "-", 286), equation(633, "-", 347)]
    assert {fact(form) for form in sums} == {("+", 286, 347)}


def test_work_ends_in_the_value_of_the_step_and_uses_only_elementary_steps():
    rng = Random(0)
    for _ in range(3000):
        question = draw(rng.choice(list(FAMILIES)), rng.choice(LEVELS), rng)
        for step in question.steps:
            parts = work(step)
            if parts:
                assert parts[-1].value == step.value
            assert all(is_elementary(part) for part in parts), (step, parts)


def test_steps_are_distributed_over_the_splits_by_their_shares():
    counts = dict.fromkeys(SPLITS, 0)
    total = 0
    for a in range(101, 1000, 7):
        for b in range(2, 10):
            step = equation(a, "*", b)
            if not is_elementary(step):
                counts[split_of_step(step)] += 1
                total += 1
    lower = 0
    for split, upper in SPLITS.items():
        assert abs(100 * counts[split] / total - (upper - lower)) < 6, counts
        lower = upper


def test_countdown_targets_are_reached_by_a_candidate_and_never_by_the_plain_sum():
    rng = Random(1)
    for _ in range(500):
        question = draw("countdown", rng.choice(LEVELS), rng)
        values = dict(candidates(question.level, question.numbers))
        assert values[question.answer] == question.target > 0
        assert question.target != sum(question.numbers)
        assert all(eval(expression) == value for expression, value in values.items())
