"""Problems chosen by learnability: the estimate of pass rates, the draw by weights, and what a checkpoint keeps."""

from collections import Counter

import pytest

from data import Problem
from reasoner.rollouts.selection import PassRates
from reasoner.types import Prompt, RolloutGroup
from tests.fixtures.toys import score

G = 8


def prompt(name: str, subject: str) -> Prompt:
    return Prompt(Problem(name, "?", "1", subject=subject), "", "", (1,))


def group(prompt: Prompt, correct: int) -> RolloutGroup:
    return RolloutGroup(prompt, (), tuple(score(float(place < correct)) for place in range(G)))


PROMPTS = [prompt(f"{subject}/{n}", subject) for subject in ("solved", "open", "hopeless") for n in range(40)]
SEEN = [group(PROMPTS[n + place], correct) for place, correct in ((0, 8), (40, 4), (80, 0)) for n in range(10)]


def test_problems_whose_cell_is_solved_sometimes_weigh_most_before_they_were_asked():
    rates = PassRates()
    assert rates.weights([prompt.problem for prompt in PROMPTS]) == [0.25] * 120
    rates.add(SEEN)
    weights = dict(zip((p.problem.id for p in PROMPTS), rates.weights([p.problem for p in PROMPTS]), strict=True))
    # 80 completions of a cell and the prior of one right of two: 81/82, 41/82 and 1/82
    assert weights["solved/30"] == weights["hopeless/30"] == 0.02 > 81 / 82 / 82
    assert weights["open/30"] == 0.25


def test_a_problem_that_was_asked_is_weighed_by_its_own_completions_beside_its_cell():
    rates = PassRates()
    rates.add([group(PROMPTS[40], 8), group(PROMPTS[41], 0)])
    weights = rates.weights([prompt.problem for prompt in PROMPTS])
    assert weights[45] == 0.25  # the cell has 8 + 1 right of 16 + 2
    assert weights[40] == weights[41] == (8 + 8 / 2) / 16 * 0.25


def test_older_steps_count_less():
    rates = PassRates()
    rates.add([group(PROMPTS[40], 8)])
    assert rates.weights([PROMPTS[40].problem]) == [pytest.approx(0.0475)]  # cell 9 of 10, own (8 + 7.2) of 16
    for _ in range(40):
        rates.add([])
    assert rates.weights([PROMPTS[40].problem]) == [pytest.approx(0.25, abs=0.01)]


def test_choice_has_the_shares_of_the_weights_and_no_problem_twice():
    rates = PassRates()
    rates.add(SEEN)
    choices = [rates.choose(PROMPTS, 6, step=step, seed=0) for step in range(400)]
    assert all(len(set(indices)) == 6 for indices in choices)
    subjects = Counter(PROMPTS[index].problem.subject for indices in choices for index in indices)
    # 40 problems of weight 0.25 beside 80 of 0.02: 86 % of single draws, a little less without replacement
    assert 0.80 < subjects["open"] / subjects.total() < 0.88
    assert 0.8 < subjects["solved"] / subjects["hopeless"] < 1.25
    assert sorted(rates.choose(PROMPTS, 240, step=0, seed=0)) == sorted([*range(120), *range(120)])


def test_choice_depends_on_step_seed_and_rollouts_alone():
    rates, restored = PassRates(), PassRates()
    rates.add(SEEN)
    restored.restore({problem: list(counts) for problem, counts in rates.state().items()})
    choice = rates.choose(PROMPTS, 6, step=3, seed=1)
    assert choice == restored.choose(PROMPTS, 6, step=3, seed=1)
    assert choice != rates.choose(PROMPTS, 6, step=4, seed=1)
    assert choice != rates.choose(PROMPTS, 6, step=3, seed=2)
    restored.add([group(PROMPTS[41], 0)])
    assert restored.weights([p.problem for p in PROMPTS]) != rates.weights([p.problem for p in PROMPTS])
