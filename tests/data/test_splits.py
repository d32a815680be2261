"""The facts of calculations, and their splits."""

from data.arithmetic import equation
from data.splits import SPLITS, fact, is_elementary, split_of_step


def test_every_form_of_a_fact_is_the_same_fact():
    forms = [equation(347, "*", 6), equation(6, "*", 347), equation(2082, "/", 6), equation(2082, "/", 347)]
    assert {fact(form) for form in forms} == {("*", 6, 347)}
    sums = [equation(347, "+", 286), equation(286, "+", 347), equation(633, "-", 286), equation(633, "-", 347)]
    assert {fact(form) for form in sums} == {("+", 286, 347)}


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
