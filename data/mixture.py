"""Which problems each training step gets, of one set and of a mixture of sets with weights: a pure function of (seed,
step), so a resumed run neither repeats nor skips.

Letters: K parts with weights w_1 to w_K, which add up to 1 after division by their sum.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from itertools import chain, count, islice, pairwise
from random import Random

from data.problem import Problem
from data.spec import parts

_log = logging.getLogger(__name__)


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


def join_parts(
    parts: Mapping[str, Sequence[Problem]], weights: Sequence[Fraction | None], limit: int | None = None
) -> list[Problem]:
    """The problems of a mixture, part after part; with a limit, the first ones in the order of the weights (of the
    sizes without weights), so a smaller limit gives the first problems of a larger one. `source` of a problem is its
    part. An id that an earlier problem has gets the part's number, or the next one that is free.
    """
    ids: set[str] = set()
    named = [
        [replace(problem, source=name, id=_free_id(problem.id, number, ids)) for problem in part]
        for number, (name, part) in enumerate(parts.items(), start=1)
    ]
    if limit is None:
        return [problem for part in named for problem in part]
    proportions = [weight or Fraction(len(part)) for weight, part in zip(weights, named, strict=True)]
    problems = list(islice(_by_weight(named, proportions), limit))
    counts = Counter(problem.source for problem in problems)
    for name, share in zip(parts, part_counts(len(problems), proportions), strict=True):
        if counts[name] < share:
            _log.warning(f"{name} has {counts[name]:,} of the {share:,} problems that its weight asks for")
    return problems


def _free_id(name: str, number: int, ids: set[str]) -> str:
    """The id, with the first number from `number` on that makes it a new one where it is in `ids`; added to `ids`."""
    numbered = (f"{name}#{n}" for n in count(number))
    free = next(choice for choice in chain([name], numbered) if choice not in ids)
    ids.add(free)
    return free


def _by_weight(parts: Sequence[Sequence[Problem]], weights: Sequence[Fraction]) -> Iterator[Problem]:
    """All problems, each part in its order and with its share of every first n problems. A part without further
    problems leaves its places to the others.
    """
    queues = list(zip(map(deque, parts), weights, strict=True))
    while queues := [(queue, weight) for queue, weight in queues if queue]:
        for part, _ in _places(0, [weight for _, weight in queues]):
            queue = queues[part][0]
            yield queue.popleft()
            if not queue:
                break


@dataclass(frozen=True, slots=True)
class Mixture:
    """Sets of problems, one after the other in a list, and the weight of each."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    weights: tuple[Fraction, ...]

    def indices(self, step: int, count: int, seed: int) -> list[int]:
        """The indices, in the list of all problems, of the `count` problems of a step.

        The steps read one infinite stream of places. Every part has as many of the first n places as its weight says,
        to within K - 1, and reads its problems from a stream of epochs of its own. No step has a problem twice unless a
        part's share of it exceeds half the part.
        """
        starts = [sum(self.sizes[:part]) for part in range(len(self.sizes))]
        indices = []
        for part, num_before in islice(_places(step * count, self.weights), count):
            epoch, place = divmod(num_before, self.sizes[part])
            indices.append(starts[part] + _part_epoch(self.sizes[part], f"{seed}/{part}", epoch)[place])
        return indices

    def describe(self, num_problems: int) -> str:
        """The share of each part, and how often a run that samples `num_problems` reads it."""
        shares = [float(weight / sum(self.weights)) for weight in self.weights]
        return ", ".join(
            f"{share:.1%} {name} ({size:,} problems, {num_problems * share / size:.1f} epochs)"
            for name, size, share in zip(self.names, self.sizes, shares, strict=True)
        )


def mixture_of(spec: str, sources: Sequence[str]) -> Mixture | None:
    """The mixture that a spec names, of problems with these sources in order; None for a spec without weights.

    ValueError for a part of which no problem is left.
    """
    weights = {part.text: part.weight for part in parts(spec) if part.weight is not None}
    numbers = Counter(sources)
    if empty := [name for name in weights if not numbers[name]]:
        raise ValueError(f"no problem of {empty[0]!r} is left in the mixture {spec!r}")
    sizes = tuple(numbers[name] for name in weights)
    return Mixture(tuple(weights), sizes, tuple(weights.values())) if weights else None


def problem_order(spec: str, sources: Sequence[str]) -> Callable[[int, int, int], list[int]]:
    """The function of (step, count, seed) that gives the indices of a step's problems: of a mixture by its weights, of
    anything else sample_indices. `sources`: of the problems in order.
    """
    mixture = mixture_of(spec, sources)
    return partial(sample_indices, len(sources)) if mixture is None else mixture.indices


def _places(start: int, weights: Sequence[Fraction]) -> Iterator[tuple[int, int]]:
    """The part of each place from `start` on, and how many places before it the part has."""
    for before, after in pairwise(part_counts(place, weights) for place in count(start)):
        part = next(k for k, (a, b) in enumerate(zip(before, after, strict=True)) if b > a)
        yield part, before[part]


def part_counts(num_places: int, weights: Sequence[Fraction]) -> list[int]:
    """How many of the first `num_places` places each part has. They add up, and none falls when a place is added: the
    first part takes its share rounded down, the second one its share of the rest, and so on.
    """
    counts: list[int] = []
    rest, total = num_places, sum(weights, Fraction(0))
    for weight in weights[:-1]:
        counts.append(int(rest * weight / total) if total else 0)
        rest -= counts[-1]
        total -= weight
    return [*counts, rest]


@lru_cache(maxsize=64)
def _part_epoch(size: int, seed: str, epoch: int) -> tuple[int, ...]:
    """The order of one epoch of a part: a permutation of one half of its problems, then one of the other half. The
    halves are the same in every epoch, so the end of an epoch and the start of the next have no problem in common.
    """
    order = list(range(size))
    Random(f"{seed}/halves").shuffle(order)
    halves = order[: size // 2], order[size // 2 :]
    rng = Random(f"{seed}/{epoch}")
    for half in halves:
        rng.shuffle(half)
    return (*halves[0], *halves[1])
