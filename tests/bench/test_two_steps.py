"""The prompt and the problems of two calculations: no calculation of a held-out problem is shown or trained on."""

import random
import re
from pathlib import Path

import pytest

from bench import two_steps
from data.arithmetic import equation
from data.one_step import SPLITS, split_of


def test_calculations_of_the_prompt_are_those_of_training():
    shown = re.findall(r"(\d+) ([-+*]) (\d+) = (\d+)", Path(two_steps.__file__).with_suffix(".toml").read_text())
    assert len(shown) == 6
    for a, operator, b, value in shown:
        assert split_of(operator, int(a), int(b)) == "train"
        assert equation(int(a), operator, int(b)).value == int(value)


@pytest.mark.parametrize("split", SPLITS)
def test_both_calculations_of_a_problem_are_of_its_split(split):
    draw = random.Random(1)
    for _ in range(300):
        row = two_steps.problem(draw, split)
        formula = re.fullmatch(r"What is (\d+) ([-+*]) (\d+) ([-+]) (\d+)\?", row["question"])
        if formula is None:
            continue
        first, second = formula[2], formula[4]
        a, b, c = (int(formula[group]) for group in (1, 3, 5))
        between = equation(a, first, b).value
        assert {split_of(first, a, b), split_of(second, between, c)} == {split}
        assert row["answer"] == str(equation(between, second, c).value)
