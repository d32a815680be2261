"""Countdown questions can be solved by a search through their candidates."""

from random import Random

from data.families import FAMILIES, HARD_LEVELS, LEVELS, candidates


def test_countdown_targets_are_reached_by_a_candidate_and_never_by_the_plain_sum():
    rng = Random(1)
    for _ in range(500):
        question = FAMILIES["countdown"](rng.choice(LEVELS + HARD_LEVELS), rng)
        values = dict(candidates(question.level, question.numbers))
        assert values[question.answer] == question.target > 0
        assert question.target != sum(question.numbers)
        assert all(eval(expression) == value for expression, value in values.items())
