"""The difference of two models on the same problems, with interval and p-value. Pure functions.

d_i = a_i - b_i, the difference on problem i of scores in [0, 1] (Miller 2024, "Adding error bars to evals").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from math import comb, sqrt
from typing import TypeVar

import numpy as np

Key = TypeVar("Key")  # of a comparison

_EXACT = 20  # number of problems up to which all patterns of signs are enumerated
_DRAWS = 100_000
_POWER = 2.801585218112969  # detectable difference in standard errors: the sum of the normal 97.5 % and 80 % quantiles
_DECIMALS = 12  # to which differences are rounded to tell their sizes
_TOLERANCE = 1e-9  # within which two sums are equal except for rounding


@dataclass(frozen=True, slots=True)
class Difference:
    """A minus B over N problems."""

    mean: float
    low: float | None  # 95 % t-interval; None where all differences are equal: they say nothing of the spread
    high: float | None
    se: float  # 0 where all differences are equal
    problems: int
    wins: int
    ties: int
    losses: int

    def __str__(self) -> str:
        """In percentage points."""
        if self.low is None or self.high is None:
            return f"{100 * self.mean:+.1f} (no interval)"
        return f"{100 * self.mean:+.1f} [{100 * self.low:+.1f}, {100 * self.high:+.1f}]"


@dataclass(frozen=True, slots=True)
class PairedTest(Difference):
    """A minus B over N problems, with a p-value."""

    p: float  # two-sided: exact McNemar for one sample of each problem on both sides, else sign flips

    @property
    def detectable(self) -> float | None:
        """The true difference that N such problems would detect with a power of 80 %; None where se is 0."""
        return _POWER * self.se if self.se else None


def difference(a: Sequence[float], b: Sequence[float]) -> PairedTest:
    """Estimate and test the difference of scores `a` minus `b`, one of each per problem.

    ValueError for fewer than two problems, and for sequences of different lengths.
    """
    one = paired_difference(a, b)
    is_binary = {*a, *b} <= {0.0, 1.0}
    p = mcnemar(one.wins, one.losses) if is_binary else sign_flip([x - y for x, y in zip(a, b, strict=True)])
    return PairedTest(**asdict(one), p=p)


def paired_difference(a: Sequence[float], b: Sequence[float]) -> Difference:
    """Estimate the difference as `difference` does, without a test."""
    d = [x - y for x, y in zip(a, b, strict=True)]
    size = len(d)
    if size < 2:
        raise ValueError(f"a comparison needs at least two problems, and there are {size}")
    mean = sum(d) / size
    wins, losses = sum(x > _TOLERANCE for x in d), sum(x < -_TOLERANCE for x in d)
    counts = (size, wins, size - wins - losses, losses)
    if max(d) - min(d) <= _TOLERANCE:
        return Difference(mean, None, None, 0.0, *counts)
    se = sqrt(sum((x - mean) ** 2 for x in d) / (size - 1) / size)
    half = t_quantile(size - 1) * se
    return Difference(mean, mean - half, mean + half, se, *counts)


def format_p(p: float) -> str:
    """Format a p-value."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def mcnemar(wins: int, losses: int) -> float:
    """Exact two-sided p-value of the numbers of problems that only A, and that only B, answers correctly."""
    num_flipped = wins + losses
    if num_flipped == 0:
        return 1.0
    tail = sum(comb(num_flipped, k) for k in range(min(wins, losses) + 1))
    return min(1.0, float(Fraction(2 * tail, 2**num_flipped)))


def sign_flip(d: Sequence[float]) -> float:
    """Two-sided p-value of a sign-flip test: how often the sum is as far from 0 under random signs of the differences.

    All patterns of signs up to 20 problems; else 100,000 with a fixed seed, (1 + hits) / (1 + draws). Of m differences
    of one size the number of positive signs is drawn, which is binomial: as many draws as there are sizes.
    """
    values = np.asarray([x for x in d if x != 0.0])  # a zero has no sign to flip: it doubles hits and patterns alike
    if len(values) <= _EXACT:
        sums = np.zeros(1)  # of every pattern of signs
        for value in values:
            sums = np.concatenate([sums + value, sums - value])
        return float(np.mean(np.abs(sums) >= abs(values.sum()) - _TOLERANCE))
    values = values.round(_DECIMALS)  # 3/8 - 1/8 and 1/4 are one size
    sizes, counts = np.unique(np.abs(values), return_counts=True)
    random = np.random.default_rng(0)
    sums = np.zeros(_DRAWS)
    for size, count in zip(sizes, counts, strict=True):
        sums += size * (2 * random.binomial(count, 0.5, _DRAWS) - count)
    hits = int(np.sum(np.abs(sums) >= abs(values.sum()) - _TOLERANCE))
    return (1 + hits) / (1 + _DRAWS)


def holm(p: Mapping[Key, float]) -> dict[Key, float]:
    """p-values adjusted for several comparisons (Holm 1979)."""
    adjusted: dict[Key, float] = {}
    running = 0.0
    for rank, (name, value) in enumerate(sorted(p.items(), key=lambda item: item[1])):
        running = max(running, min(1.0, value * (len(p) - rank)))
        adjusted[name] = running
    return {name: adjusted[name] for name in p}


def t_quantile(df: int) -> float:
    """The 97.5 % quantile of Student's t distribution with `df` degrees of freedom."""
    from mpmath import betainc, findroot

    def outside(t: float) -> float:
        return betainc(df / 2, 0.5, 0, df / (df + t * t), regularized=True) - 0.05  # type: ignore[no-any-return]

    return float(findroot(outside, (1.9, 13.0), solver="anderson"))
