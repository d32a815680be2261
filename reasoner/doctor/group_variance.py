"""Estimate the share of groups with non-zero variance for any group size, from a few sampled rewards of each problem.

A group gives a gradient when its G rewards are not all equal. A problem has n samples, n_v of them with reward v.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import comb, exp, lgamma

from reasoner.evals.estimators import Estimate, estimate

# Strengths of the prior, in samples: from "each problem all correct or all wrong" to "all problems equally hard".
_STRENGTHS = [2.0**power for power in range(-6, 11)]


def informative_share(rewards: Sequence[Sequence[float]], group: int) -> Estimate:
    """[problems][n] rewards, n from 1 -> the expected share of groups of that size whose rewards are not all equal.

    Uses mixed_chance for a problem with at least G samples, predicted_chance for any other.
    """
    values = sorted({reward for own in rewards for reward in own})
    table = [[Counter(own)[value] for value in values] for own in rewards]
    prior = _fit_prior(table) if min(map(len, rewards)) < group else []
    return estimate(
        [
            mixed_chance(counts, group) if sum(counts) >= group else predicted_chance(counts, prior, group)
            for counts in table
        ]
    )


def mixed_chance(counts: Sequence[int], group: int) -> float:
    """Probability that `group` of a problem's samples, drawn without replacement, are not all equal:
    1 - sum_v C(n_v, G) / C(n, G). An unbiased estimate of the probability for new samples; needs n >= G.
    """
    return 1 - sum(comb(count, group) for count in counts) / comb(sum(counts), group)


def predicted_chance(counts: Sequence[int], prior: Sequence[float], group: int) -> float:
    """The same probability for any G: its mean over the problem's rates under the posterior of a Dirichlet prior a_v.

    1 - sum_v prod_{i<G} (n_v + a_v + i) / (n + a + i)
    """
    whole = sum(counts) + sum(prior)
    return 1 - sum(exp(_rising(n + a, group) - _rising(whole, group)) for n, a in zip(counts, prior, strict=True))


def _fit_prior(table: Sequence[Sequence[int]]) -> list[float]:
    """Fit a Dirichlet prior to the counts by maximum likelihood: the pooled rates times a strength of _STRENGTHS.

    The strength must come from the data: a fixed prior such as Jeffreys' predicts unequal rewards in a group of 64 for
    one in five of the problems that were never solved in 16 samples.
    """
    pooled = [sum(column) for column in zip(*table, strict=True)]
    rates = [count / sum(pooled) for count in pooled]

    def likelihood(strength: float) -> float:
        return sum(
            sum(_rising(strength * rate, n) for rate, n in zip(rates, counts, strict=True) if n)
            - _rising(strength, sum(counts))
            for counts in table
        )

    strength = max(_STRENGTHS, key=likelihood)
    return [strength * rate for rate in rates]


def _rising(start: float, times: int) -> float:
    """Logarithm of the rising factorial start (start + 1) ... (start + times - 1)."""
    return lgamma(start + times) - lgamma(start)
