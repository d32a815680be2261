"""Which problems a step asks: a pure function of (seed, step), so that a resumed run neither repeats nor skips any."""

from __future__ import annotations

from functools import lru_cache
from random import Random


def pick(num_problems: int, step: int, count: int, seed: int) -> list[int]:
    """The indices of the `count` problems of a step.

    The steps read one endless stream, epoch after epoch, each a seeded permutation of all problems: every problem comes
    once an epoch. Where a step reaches over the end of an epoch, the next one begins with problems that this step has
    not had yet, so that no step asks a problem twice unless it asks for more than there are.
    """
    if num_problems < 1 or count < 1 or step < 0:
        raise ValueError(
            f"pick {count} of {num_problems} problems at step {step}: count and problems from 1, step from 0"
        )
    places = range(step * count, (step + 1) * count)
    return [_epoch(num_problems, count, seed, place // num_problems)[place % num_problems] for place in places]


@lru_cache(maxsize=8)
def _epoch(num_problems: int, count: int, seed: int, epoch: int) -> tuple[int, ...]:
    """The order of one epoch. It depends on the one before only where that one ends within a step."""
    first = epoch
    while count <= num_problems and _borrowed(num_problems, count, first):
        first -= 1  # ends at the last epoch that begins with a step: at most `count` epochs back, and 0 is one
    order = _shuffled(num_problems, seed, first)
    for number in range(first + 1, epoch + 1):
        borrowed = _borrowed(num_problems, count, number)
        asked = set(order[borrowed - count :])
        drawn = _shuffled(num_problems, seed, number)
        head = [index for index in drawn if index not in asked][:borrowed]
        in_head = set(head)
        order = (*head, *(index for index in drawn if index not in in_head))
    return order


def _borrowed(num_problems: int, count: int, epoch: int) -> int:
    """How many problems at the start of an epoch belong to a step that began in the epoch before."""
    return -epoch * num_problems % count


def _shuffled(num_problems: int, seed: int, epoch: int) -> tuple[int, ...]:
    order = list(range(num_problems))
    Random(f"{seed}/{epoch}").shuffle(order)
    return tuple(order)
