"""Best of n: the sample with the highest score of n. What a policy gains, or loses, that follows a score too far.

The estimators are exact expectations over all subsets of n of a problem's N samples, so that no sample is wasted and
all n share the same samples (unbiased for n <= N). Equal scores are drawn among with equal probability.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import comb, log, sqrt
from statistics import fmean, stdev

from reasoner.evals.estimators import Estimate, estimate


@dataclass(frozen=True, slots=True)
class Samples:
    """The N scored samples of a problem."""

    scores: tuple[float, ...]  # of the reward model
    correct: tuple[bool, ...]
    tokens: tuple[int, ...]
    well_formed: tuple[bool, ...] = ()
    utilities: tuple[float, ...] = ()  # empty where they are not known


def selection_weights(scores: Sequence[float], n: int) -> list[float]:
    """Probability of each of N samples to be the best of n that are drawn without replacement; the sum is 1.

    The sample with k others below it is the best of C(k, n - 1) subsets of C(N, n). ValueError for n > N.
    """
    total = len(scores)
    if not 1 <= n <= total:
        raise ValueError(f"best of {n} needs at least {n} samples of each problem, and there are {total}")
    order = sorted(range(total), key=lambda index: scores[index])
    weights, rank = [0.0] * total, 0
    for _, equal in groupby(order, key=lambda index: scores[index]):
        members = list(equal)
        share = (comb(rank + len(members), n) - comb(rank, n)) / comb(total, n) / len(members)
        rank += len(members)
        for index in members:
            weights[index] = share
    return weights


def best_of_n(scores: Sequence[float], values: Sequence[float], n: int) -> float:
    """Expected value of the sample with the highest score of n."""
    return sum(weight * value for weight, value in zip(selection_weights(scores, n), values, strict=True))


def kl_of_best_of_n(n: int) -> float:
    """KL(best of n || policy) in nats, log n - (n - 1)/n: exact for scores without ties, else an upper bound."""
    return log(n) - (n - 1) / n


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """Means over problems of what is chosen as the best of n."""

    n: int
    kl: float  # nats
    score: float  # of the reward model
    utility: float | None
    utility_se: float | None  # standard error over problems
    correct: Estimate
    tokens: float


# What chooses the best of n. The weight 0.25 is that of a learned reward beside the rule in RL.
SELECTORS: dict[str, Callable[[Samples], Sequence[float]]] = {
    "reward model": lambda own: own.scores,
    "rule": lambda own: _rule(own),
    "rule + 0.25 reward model": lambda own: [
        rule + 0.25 * score for rule, score in zip(_rule(own), own.scores, strict=True)
    ],
    "utility": lambda own: own.utilities,
}


def _rule(own: Samples) -> list[float]:
    """The default reward of RL: 1 for a right answer and 0.2 for the form, where that is known."""
    forms = own.well_formed or (False,) * len(own.correct)
    return [correct + 0.2 * form for correct, form in zip(own.correct, forms, strict=True)]


def curves(problems: Sequence[Samples]) -> Mapping[str, list[CurvePoint]]:
    """The curve of each selector over n = 1, 2, 4, ... up to the fewest samples of a problem."""
    has_utility = all(own.utilities for own in problems)
    fewest = min(len(own.scores) for own in problems)
    sizes = [2**power for power in range(fewest.bit_length())]
    names = [name for name in SELECTORS if name != "utility" or has_utility]
    return {name: [_point(problems, SELECTORS[name], n, has_utility) for n in sizes] for name in names}


def _point(
    problems: Sequence[Samples], selector: Callable[[Samples], Sequence[float]], n: int, has_utility: bool
) -> CurvePoint:
    weights = [selection_weights(selector(own), n) for own in problems]

    def means(values: Callable[[Samples], Sequence[float]]) -> list[float]:
        return [
            sum(w * v for w, v in zip(own, values(p), strict=True)) for own, p in zip(weights, problems, strict=True)
        ]

    utilities = means(lambda own: own.utilities) if has_utility else None
    return CurvePoint(
        n=n,
        kl=kl_of_best_of_n(n),
        score=fmean(means(lambda own: own.scores)),
        utility=None if utilities is None else fmean(utilities),
        utility_se=stdev(utilities) / sqrt(len(utilities)) if utilities and len(utilities) > 1 else None,
        correct=estimate(means(lambda own: own.correct)),
        tokens=fmean(means(lambda own: own.tokens)),
    )
