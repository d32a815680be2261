from collections import Counter

import pytest

from data import sample_indices

SIZES = [(10, 10), (10, 3), (7, 4), (7, 5), (5, 4), (3, 1), (97, 32), (12, 8), (1, 1)]


@pytest.mark.parametrize(("num_problems", "count"), SIZES)
def test_every_epoch_has_every_problem_once_and_no_step_one_twice(num_problems: int, count: int) -> None:
    steps = num_problems * 6 // count + 2
    stream = [index for step in range(steps) for index in sample_indices(num_problems, step, count, seed=1)]
    for epoch in range(6):
        assert sorted(stream[epoch * num_problems : (epoch + 1) * num_problems]) == list(range(num_problems))
    for step in range(200):
        assert len(set(sample_indices(num_problems, step, count, seed=2))) == count


def test_a_step_larger_than_the_set_repeats_problems_evenly() -> None:
    assert set(Counter(sample_indices(4, 0, 12, seed=0)).values()) == {3}
    assert set(Counter(sample_indices(4, 3, 10, seed=0)).values()) <= {1, 2, 3, 4}


def test_a_step_does_not_depend_on_what_was_picked_before() -> None:  # trap 40: resume replays and skips nothing
    straight = [sample_indices(97, step, 32, seed=5) for step in range(60)]
    assert [sample_indices(97, step, 32, seed=5) for step in reversed(range(60))] == straight[::-1]
    assert sample_indices(97, 59, 32, seed=5) == straight[59]


def test_seeds_and_epochs_give_different_orders_and_late_steps_stay_cheap() -> None:
    assert sample_indices(50, 0, 50, seed=0) != sample_indices(50, 0, 50, seed=1)
    assert sample_indices(50, 0, 50, seed=0) != sample_indices(50, 1, 50, seed=0)
    assert len(sample_indices(1031, 100_000, 1024, seed=0)) == 1024  # 1,031 is a prime: the longest chain of epochs


def test_the_positions_of_a_problem_are_spread_evenly() -> None:
    firsts = Counter(sample_indices(7, step, 5, seed=3)[0] for step in range(1400))
    assert min(firsts.values()) > 150  # 200 expected


@pytest.mark.parametrize(("num_problems", "step", "count"), [(0, 0, 1), (5, -1, 1), (5, 0, 0)])
def test_impossible_requests_are_refused(num_problems: int, step: int, count: int) -> None:
    with pytest.raises(ValueError, match="problems at step"):
        sample_indices(num_problems, step, count, seed=0)
