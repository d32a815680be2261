"""Steps and their solution by place value."""

from random import Random

import pytest

from data.arithmetic import equation, work
from data.families import FAMILIES, LEVELS
from data.splits import is_elementary


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


def test_a_division_subtracts_one_significant_digit_at_a_time_where_that_is_asked_for():
    divided = "6*300=1800, 2082-1800=1082-800=282, 6*40=240, 282-240=82-40=42, 6*7=42, 300+40=340, 340+7=347"
    assert ", ".join(map(str, work(equation(2082, "/", 6), one_digit=True))) == divided
    assert work(equation(347, "*", 6), one_digit=True) == work(equation(347, "*", 6))
    assert work(equation(500, "+", 7), one_digit=True) == []


def test_work_ends_in_the_value_of_the_step_and_uses_only_elementary_steps():
    rng = Random(0)
    for _ in range(3000):
        question = FAMILIES[rng.choice(list(FAMILIES))](rng.choice(LEVELS), rng)
        for step in question.steps:
            parts = work(step)
            if parts:
                assert parts[-1].value == step.value
            assert all(is_elementary(part) for part in parts), (step, parts)
