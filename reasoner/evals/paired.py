"""The difference of two models on the same problems, with interval and p-value. Pure functions.

d_i = a_i - b_i, the difference on problem i of scores in [0, 1] (Miller 2024, "Adding error bars to evals").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb, sqrt

import numpy as np

_EXACT = 20  # number of problems up to which all patterns of signs are enumerated
_DRAWS = 100_000
_POWER = 2.801585218112969  # detectable difference in standard errors: the sum of the normal 97.5 % and 80 % quantiles
_TOLERANCE = 1e-9  # within which two sums are equal except for rounding


@dataclass(frozen=True, slots=True)
class Difference:
    """A minus B over N problems."""

    mean: float
    low: float  # 95 % t-interval
    high: float
    se: float
    p: float  # two-sided: exact McNemar for one sample of each problem on both sides, else sign flips
    problems: int
    wins: int
    ties: int
    losses: int

    def __str__(self) -> str:
        """In percentage points."""
        return f"{100 * self.mean:+.1f} [{100 * self.low:+.1f}, {100 * self.high:+.1f}]"

    @property
    def detectable(self) -> float:
        """The true difference that N such problems would detect with a power of 80 %."""
        return _POWER * self.se

    @property
    def is_shown(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low > 0 or self.high < 0


def difference(a: Sequence[float], b: Sequence[float]) -> Difference:
    """Estimate the difference of scores `a` minus `b`, one of each per problem.

    ValueError for fewer than two problems, and for sequences of different lengths.
    """
    d = [x - y for x, y in zip(a, b, strict=True)]
    size = len(d)
    if size < 2:
        raise ValueError(f"a comparison needs at least two problems, and there are {size}")
    mean = sum(d) / size
    se = sqrt(sum((x - mean) ** 2 for x in d) / (size - 1) / size)
    half = t_quantile(size - 1) * se
    wins, losses = sum(x > _TOLERANCE for x in d), sum(x < -_TOLERANCE for x in d)
    is_binary = {*a, *b} <= {0.0, 1.0}
    p = mcnemar(wins, losses) if is_binary else sign_flip(d)
    return Difference(mean, mean - half, mean + half, se, p, size, wins, size - wins - losses, losses)


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

    All patterns of signs up to 20 problems; else 100,000 with a fixed seed, (1 + hits) / (1 + draws).
    """
    values = np.asarray([x for x in d if x != 0.0])  # a zero has no sign to flip: it doubles hits and patterns alike
    total = abs(values.sum()) - _TOLERANCE
    if len(values) <= _EXACT:
        sums = np.zeros(1)  # of every pattern of signs
        for value in values:
            sums = np.concatenate([sums + value, sums - value])
        return float(np.mean(np.abs(sums) >= total))
    random = np.random.default_rng(0)
    hits = sum(
        int(np.sum(np.abs(random.choice((1.0, -1.0), (1000, len(values))) @ values) >= total))
        for _ in range(_DRAWS // 1000)
    )
    return (1 + hits) / (1 + _DRAWS)


def holm(p: Mapping[str, float]) -> dict[str, float]:
    """p-values adjusted for several comparisons (Holm 1979)."""
    adjusted: dict[str, float] = {}
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
