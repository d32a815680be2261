"""Comparisons of two models against exact values, brute force and laws."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasoner.evals.paired import difference, holm, mcnemar, sign_flip, t_quantile

A = [1, 1, 0.75, 0.5, 0, 0.25]
B = [0.5, 1, 0.25, 0.5, 0.25, 0]


def test_difference_equals_the_exact_case():
    result = difference(A, B)
    assert result.mean == pytest.approx(1 / 6)
    assert result.se == pytest.approx(0.1236033081)
    assert result.p == pytest.approx(24 / 64)
    assert (result.wins, result.ties, result.losses) == (3, 2, 1)
    half = 2.5705818 * 0.1236033081
    assert (result.low, result.high) == pytest.approx((1 / 6 - half, 1 / 6 + half))
    assert result.detectable == pytest.approx(2.8016 * 0.1236033081, rel=1e-4)


def test_one_sample_of_each_problem_is_compared_by_mcnemar():
    a = [1.0] * 7 + [0.0] * 2 + [1.0] * 5
    b = [0.0] * 7 + [1.0] * 2 + [1.0] * 5
    assert difference(a, b).p == pytest.approx(92 / 512) == mcnemar(7, 2) == mcnemar(2, 7)
    assert mcnemar(0, 0) == 1 and mcnemar(3, 3) == 1


@settings(deadline=None, max_examples=40)
@given(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.25, 1.0]), min_size=1, max_size=8))
def test_sign_flip_counts_zeros(d):
    patterns = list(product((1, -1), repeat=len(d)))
    hits = sum(abs(sum(s * x for s, x in zip(signs, d, strict=True))) >= abs(sum(d)) - 1e-9 for signs in patterns)
    assert sign_flip(d) == pytest.approx(hits / len(patterns))


def test_sign_flip_of_many_problems_is_deterministic():
    d = [0.1, -0.05, 0.2, 0.0, 0.15] * 8
    assert sign_flip(d) == sign_flip(d) < 0.001
    assert sign_flip([1.0, -1.0] * 15) == 1.0
    assert sign_flip([1.0] * 40) == pytest.approx(1 / 100_001)  # never 0


def test_holm_is_bonferroni_for_the_smallest_and_monotone():
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03}) == pytest.approx({"a": 0.03, "b": 0.06, "c": 0.06})
    assert holm({"a": 0.9, "b": 0.8}) == pytest.approx({"a": 1.0, "b": 1.0})
    assert holm({}) == {}


@pytest.mark.parametrize(("df", "expected"), [(1, 12.7062047), (2, 4.3026527), (9, 2.2621572), (149, 1.9760132)])
def test_t_quantile_equals_published_tables(df, expected):
    assert t_quantile(df) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(("a", "b"), [([1.0] * 3, [0.0] * 3), ([0.3, 0.4, 0.6], [0.1, 0.2, 0.4])])
def test_equal_differences_give_no_interval(a, b):
    result = difference(a, b)
    assert (result.low, result.high, result.se, result.detectable) == (None, None, 0, None)
    assert result.p == 0.25
    assert str(result) == f"{100 * (a[0] - b[0]):+.1f} (no interval)"


def test_sign_flips_of_equal_sizes_are_drawn_together(monkeypatch):
    num_drawn = []

    class Counting:
        """A generator that counts the numbers that are drawn from it; as many whatever the number of problems."""

        def __init__(self, seed):
            self.random = np.random.Generator(np.random.PCG64(seed))

        def __getattr__(self, name):
            def draw(*arguments):
                drawn = getattr(self.random, name)(*arguments)
                num_drawn.append(drawn.size)
                return drawn

            return draw

    monkeypatch.setattr(np.random, "default_rng", Counting)
    d = [1.0] * 5_100 + [-1.0] * 4_900 + [0.3 - 0.1] * 30 + [0.2] * 30 + [-0.2] * 60  # 0.3 - 0.1 is not quite 0.2
    normal = math.erfc(200 / math.sqrt(2 * (10_000 + 120 * 0.2**2)))
    assert sign_flip(d) == pytest.approx(normal, abs=0.004)
    assert sum(num_drawn) == 2 * 100_000


def test_equal_models_have_no_difference_and_one_problem_is_refused():
    result = difference(A, A)
    assert (result.mean, result.p) == (0, 1)
    with pytest.raises(ValueError, match=r"two problems.* 1"):
        difference([1.0], [0.0])
    with pytest.raises(ValueError):
        difference([1.0, 0.0], [0.0])
