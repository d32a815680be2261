"""The chance that a group has rewards that differ, from few samples."""

from itertools import combinations
from random import Random

import pytest

from reasoner.doctor.group_variance import informative_share, mixed_chance, predicted_chance


@pytest.mark.parametrize("rewards", [[0, 0, 0, 1, 1, 0.2], [0, 0, 0, 0, 0, 1], [1, 1, 1, 1, 1, 1], [0, 1, 2, 3, 4, 5]])
@pytest.mark.parametrize("group", [2, 3, 5, 6])
def test_the_chance_of_a_mixed_group_is_the_share_of_all_subsets_that_are_mixed(rewards, group):
    subsets = list(combinations(rewards, group))
    counted = sum(len(set(subset)) > 1 for subset in subsets) / len(subsets)
    assert informative_share([rewards], group).value == pytest.approx(counted)


def test_beyond_the_samples_the_chance_is_the_mean_over_the_posterior():
    """3 of 8 right under a Beta(0.5, 2): the integral of 1 - p^20 - (1 - p)^20 over Beta(3.5, 7)."""
    points = [(i + 0.5) / 200_000 for i in range(200_000)]
    weights = [p**2.5 * (1 - p) ** 6 for p in points]
    mean = sum(w * (1 - p**20 - (1 - p) ** 20) for p, w in zip(points, weights, strict=True)) / sum(weights)
    assert predicted_chance([3, 5], [0.5, 2.0], 20) == pytest.approx(mean, abs=1e-6)
    assert predicted_chance([3, 5], [3e6, 5e6], 4) == pytest.approx(1 - (3 / 8) ** 4 - (5 / 8) ** 4, abs=1e-5)


@pytest.mark.parametrize("alike", [0.3, 2.0, 30.0])
def test_few_samples_predict_large_groups(alike):
    """400 problems whose rates come from a Beta with a mean of 0.1, seen in 16 samples each: groups of 64."""
    random = Random(0)
    rates = [random.betavariate(0.1 * alike, 0.9 * alike) for _ in range(400)]
    seen = [[float(random.random() < rate) for _ in range(16)] for rate in rates]
    truth = sum(1 - p**64 - (1 - p) ** 64 for p in rates) / len(rates)
    share = informative_share(seen, 64)
    assert share.value == pytest.approx(truth, abs=0.05)
    assert informative_share(seen, 4).value == pytest.approx(
        sum(1 - p**4 - (1 - p) ** 4 for p in rates) / len(rates), abs=0.05
    )


def test_equal_samples_predict_no_informative_groups():
    assert informative_share([[0.0] * 4] * 8, 64).value == 0
    assert mixed_chance([0, 16], 4) == 0
