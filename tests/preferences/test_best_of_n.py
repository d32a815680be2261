"""Best of n: against enumeration, and what it must do for scores that say nothing or everything."""

from itertools import combinations
from random import Random
from statistics import fmean

import pytest

from reasoner.preferences.best_of_n import Samples, best_of_n, curves, kl_of_best_of_n, selection_weights


def by_enumeration(scores, values, n):
    """The mean over all subsets; of equal best scores the mean."""
    chosen = []
    for subset in combinations(range(len(scores)), n):
        best = max(scores[i] for i in subset)
        chosen.append(fmean(values[i] for i in subset if scores[i] == best))
    return fmean(chosen)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 7])
@pytest.mark.parametrize("levels", [3, 100])
def test_the_estimator_is_the_mean_over_all_subsets(n, levels):
    random = Random(f"{n}/{levels}")
    scores = [random.randrange(levels) for _ in range(7)]
    values = [random.random() for _ in range(7)]
    assert best_of_n(scores, values, n) == pytest.approx(by_enumeration(scores, values, n))


def test_weights_are_a_distribution_and_ignore_the_order_of_samples():
    scores = [0.5, 2.0, 0.5, -1.0]
    weights = selection_weights(scores, 2)
    assert sum(weights) == pytest.approx(1)
    assert weights == selection_weights(scores[::-1], 2)[::-1]


def test_more_samples_than_there_are_is_refused():
    with pytest.raises(ValueError, match="best of 3"):
        selection_weights([1.0, 2.0], 3)


def problems(number=200, samples=16):
    random = Random(0)
    result = []
    for _ in range(number):
        utilities = tuple(random.gauss(0, 1) for _ in range(samples))
        result.append(
            Samples(
                scores=tuple(random.gauss(0, 1) for _ in range(samples)),
                correct=tuple(utility > 0 for utility in utilities),
                tokens=tuple(random.randrange(5, 50) for _ in range(samples)),
                utilities=utilities,
            )
        )
    return result


def test_random_scores_are_flat_and_utility_itself_is_monotone():
    by_selector = curves(problems())
    assert [point.n for point in by_selector["reward model"]] == [1, 2, 4, 8, 16]
    for point in by_selector["reward model"]:
        assert abs(point.utility) < 4 * point.utility_se
        assert point.correct.low < 0.5 < point.correct.high
    scores = [point.score for point in by_selector["reward model"]]
    utilities = [point.utility for point in by_selector["utility"]]
    assert scores == sorted(scores) and utilities == sorted(utilities)
    assert utilities[-1] == pytest.approx(1.766, abs=0.1)  # the expected maximum of 16 normal deviates


def test_selectors_without_utilities_leave_them_out():
    own = Samples((1.0, 2.0), (True, False), (3, 4))
    by_selector = curves([own])
    assert "utility" not in by_selector and by_selector["reward model"][0].utility is None
    assert by_selector["rule"][1].correct.value == 1.0
    assert by_selector["rule + 0.25 reward model"][1].tokens == 3


def test_kl_of_best_of_n():
    assert [round(kl_of_best_of_n(n), 2) for n in (1, 2, 4, 64)] == [0, 0.19, 0.64, 3.17]
