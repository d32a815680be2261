"""Prompts to ranks by their tokens."""

import random

import pytest

from reasoner.rl.passes import owners


@pytest.mark.parametrize(
    ("sizes", "num_ranks", "expected"),
    [
        ([], 2, []),
        ([5], 3, [0]),
        ([1, 1, 1, 1], 2, [0, 1, 0, 1]),
        ([3, 9, 3, 4], 2, [1, 0, 1, 1]),  # 9 | 4 3 3
        ([7, 5, 4, 3, 1], 2, [0, 1, 1, 0, 1]),  # 7 3 | 5 4 1
        ([0, 0, 6], 2, [1, 1, 0]),
        ([4, 4, 4], 1, [0, 0, 0]),
    ],
)
def test_largest_item_goes_to_the_rank_with_the_least(sizes, num_ranks, expected):
    assert owners(sizes, num_ranks) == expected


def test_loads_differ_by_at_most_the_largest_item():
    draw = random.Random(3)
    for _ in range(200):
        sizes = [draw.randrange(1, 1000) for _ in range(draw.randrange(1, 40))]
        num_ranks = draw.randrange(1, 9)
        place = owners(sizes, num_ranks)
        loads = [sum(size for size, rank in zip(sizes, place, strict=True) if rank == own) for own in range(num_ranks)]
        assert max(loads) - min(loads) <= max(sizes)
