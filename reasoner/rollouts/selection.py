"""Choosing a step's problems by learnability: those that the policy solves sometimes are asked more often.

A group in which all completions are right, or none, has no group-normalised advantage. The variance p(1-p) of a reward
of 0 or 1 is the expected size of the signal (Foster and Foerster 2025, "Learning to Reason at the Frontier of
Learnability"). p is estimated from the run's own rollouts: most problems are asked once or never, so a problem's
estimate starts from that of its cell, the problems of the same source, subject and level.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from random import Random

from data import Problem
from reasoner.types import Prompt, RolloutGroup
from verifiers import Verdict

Cell = tuple[str, str | None, int | None]
Counts = list[float]  # [completions, correct ones], older steps counted less

_FADE = 0.9  # factor of all counts a step: the policy that gave them has changed since
_PRIOR = 8.0  # completions that the rate of the cell counts for
_LEAST = 0.02  # lowest weight: a problem that looks hopeless or solved is still asked now and then


class PassRates:
    """The policy's pass rates on the training problems, as its rollouts so far show them."""

    def __init__(self) -> None:
        self._counts: dict[str, Counts] = {}  # by problem

    def add(self, groups: Iterable[RolloutGroup]) -> None:
        for counts in self._counts.values():
            counts[:] = [_FADE * number for number in counts]
        for group in groups:
            counts = self._counts.setdefault(group.prompt.problem.id, [0.0, 0.0])
            counts[0] += len(group.scores)
            counts[1] += sum(score.verdict is Verdict.CORRECT for score in group.scores)

    def weights(self, problems: Sequence[Problem]) -> list[float]:
        """The weight p(1-p) of each problem, at least 0.02; 0.25 for all before the first step."""
        cells: defaultdict[Cell, Counts] = defaultdict(lambda: [2.0, 1.0])
        for problem in problems:
            for place, number in enumerate(self._counts.get(problem.id, ())):
                cells[_cell(problem)][place] += number
        weights = []
        for problem in problems:
            completions, correct = self._counts.get(problem.id, (0.0, 0.0))
            of_cell, correct_of_cell = cells[_cell(problem)]
            rate = (correct + _PRIOR * correct_of_cell / of_cell) / (completions + _PRIOR)
            weights.append(max(_LEAST, rate * (1 - rate)))
        return weights

    def choose(self, prompts: Sequence[Prompt], count: int, *, step: int, seed: int) -> list[int]:
        """The indices of `count` prompts, drawn by their weights without replacement: a function of the rollouts so
        far, the step and the seed. All prompts, some again, where `count` exceeds their number.
        """
        random = Random(f"{seed}/{step}/selection")
        weights = self.weights([prompt.problem for prompt in prompts])
        # The largest keys of log(u)/weight are such a sample (Efraimidis and Spirakis 2006).
        keys = [math.log(1.0 - random.random()) / weight for weight in weights]
        order = sorted(range(len(prompts)), key=keys.__getitem__, reverse=True)
        return [order[place % len(order)] for place in range(count)]

    def state(self) -> Mapping[str, Counts]:
        """The counts by problem, for a checkpoint."""
        return self._counts

    def restore(self, state: Mapping[str, Counts]) -> None:
        """Load what state() returned."""
        self._counts = {problem: list(counts) for problem, counts in state.items()}


def _cell(problem: Problem) -> Cell:
    return problem.source, problem.subject, problem.level
