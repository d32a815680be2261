"""One gradient on one, two and three ranks, in float64, where a wrong denominator cannot hide behind rounding."""

import numpy as np
import pytest
import torch

from reasoner.distributed.world import ALONE
from tests.distributed.programs import GROUPS, gradients
from tests.fixtures.ranks import run_ranks

# All are in test_sharding.py, nightly; one rank's compiled layers: tests/models/test_compiled_layers.py.
CORNERS = ("reinforce", "ppo", "grpo")  # each aggregation of the loss
OTHERS = (
    "trpo", "grpo_process", "penalty in the reward", "minibatches and epochs", "micro-batches of few tokens",
    "critic on the policy's backbone", "reference that follows", "critic's minibatches", "KL of a response",
    "teacher with prompts of its own", "adaptive penalty",
)  # fmt: skip
ROWS = [*((name, groups) for name in CORNERS for groups in GROUPS), *((name, GROUPS[0]) for name in OTHERS)]


def gradients_alone(rows):
    """What one process with one thread has, by row."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    results = dict(zip(rows, gradients(ALONE, rows), strict=True))
    torch.set_num_threads(threads)
    return results


@pytest.fixture(scope="module")
def alone():
    return gradients_alone(ROWS)


@pytest.fixture(scope="module")
def two_ranks():
    zero, one = run_ranks(2, gradients, ROWS)
    assert isinstance(zero, list) and isinstance(one, list), (zero, one)
    return dict(zip(ROWS, zip(zero, one, strict=True), strict=True))


def assert_same(found, expected):
    """Gradients and weights within 1e-12, relative in the L2 norm; no gradient where there was none; equal metrics."""
    (arrays, metrics), (expected_arrays, expected_metrics) = found, expected
    assert len(arrays) == len(expected_arrays)
    for array, wanted in zip(arrays, expected_arrays, strict=True):
        assert np.array_equal(np.isnan(array), np.isnan(wanted))
        difference = np.linalg.norm(np.nan_to_num(array - wanted))
        assert difference <= 1e-12 * np.linalg.norm(np.nan_to_num(wanted))
    assert metrics == pytest.approx(expected_metrics, rel=1e-5, abs=1e-7)  # sums in float32


@pytest.mark.parametrize(("case", "groups"), ROWS)
def test_two_ranks_have_the_gradient_of_one(alone, two_ranks, case, groups):
    zero, one = two_ranks[case, groups]
    assert_same(zero, alone[case, groups])
    for own, other in zip(zero[0], one[0], strict=True):  # weights that part never come together again
        assert np.array_equal(own, other, equal_nan=True)
    assert zero[1] == one[1]


def test_three_ranks_have_the_gradient_of_one(alone):
    rows = [("grpo", groups) for groups in GROUPS]
    for own in run_ranks(3, gradients, rows):
        for row, result in zip(rows, own, strict=True):
            assert_same(result, alone[row])
