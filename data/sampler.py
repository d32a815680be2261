"""The problems of each training step: a pure function of (seed, step), so a resumed run neither repeats nor skips."""

from __future__ import annotations

from functools import lru_cache
from random import Random


def sample_indices(num_problems: int, step: int, count: int, seed: int) -> list[int]:
    """The indices of the `count` problems of a step.

    The steps read one infinite stream of epochs, each a seeded permutation of all problems: every problem occurs once
    per epoch. If a step crosses the end of an epoch, the next epoch begins with problems that the step does not have
    yet, so no step has a problem twice unless `count` exceeds `num_problems`. ValueError for arguments out of range.
    """
    if num_problems < 1 or count < 1 or step < 0:
        raise ValueError(
            f"pick {count} of {num_problems} problems at step {step}: count and problems from 1, step from 0"
        )
    places = range(step * count, (step + 1) * count)
    return [_epoch(num_problems, count, seed, place // num_problems)[place % num_problems] for place in places]


@lru_cache(maxsize=8)
def _epoch(num_problems: int, count: int, seed: int, epoch: int) -> tuple[int, ...]:
    """The order of one epoch. It depends on the epoch before only if that one ends within a step."""
    first = epoch
    while count <= num_problems and _num_borrowed(num_problems, count, first):
        first -= 1  # ends at the last epoch that begins with a step: at most `count` epochs back, and 0 is one
    order = _permutation(num_problems, seed, first)
    for number in range(first + 1, epoch + 1):
        num_borrowed = _num_borrowed(num_problems, count, number)
        in_this_step = set(order[num_borrowed - count :])
        permutation = _permutation(num_problems, seed, number)
        head = [index for index in permutation if index not in in_this_step][:num_borrowed]
        in_head = set(head)
        order = (*head, *(index for index in permutation if index not in in_head))
    return order


def _num_borrowed(num_problems: int, count: int, epoch: int) -> int:
    """The number of problems at the start of an epoch that belong to a step of the epoch before."""
    return -epoch * num_problems % count


def _permutation(num_problems: int, seed: int, epoch: int) -> tuple[int, ...]:
    order = list(range(num_problems))
    Random(f"{seed}/{epoch}").shuffle(order)
    return tuple(order)
