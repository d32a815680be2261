"""Estimators of an evaluation: pure functions from counts to exact or floating-point numbers.

N problems; problem i has n_i samples of which c_i are correct; s_i = c_i / n_i.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb, sqrt

_Z = 1.959963984540054  # 95 %


def check_k(name: str, k: int, samples: int) -> None:
    """Raise ValueError for a k that is not among 1 and the number of samples of a problem."""
    if not 1 <= k <= samples:
        raise ValueError(f"{name}{k} needs at least {k} samples of each problem, and there are {samples}")


def pass_at_k(n: int, c: int, k: int) -> Fraction:
    """Probability that k of n samples, drawn without replacement, include a correct one (Chen et al. 2021)."""
    check_k("pass@", k, n)
    return 1 - Fraction(comb(n - c, k), comb(n, k))


def cons_at_k(num_correct: int, others: Sequence[int], num_abstained: int, k: int) -> Fraction:
    """Exact probability that the correct class wins the vote of k samples drawn without replacement; ties are split.

    `num_correct` samples agree with the gold answer, `others` are the sizes of the classes of wrong answers, and
    `num_abstained` samples have no answer and do not vote. The method is polynomials in x (voters) and y (tied
    classes): the coefficient of x^(k-v) y^t counts the draws in which the correct class has v votes and t other classes
    have as many.
    """
    total = num_correct + sum(others) + num_abstained
    check_k("cons@", k, total)
    wins = Fraction(0)
    for votes in range(1, min(num_correct, k) + 1):
        ways = _draws_not_above(others, num_abstained, votes, k - votes)
        wins += comb(num_correct, votes) * sum(Fraction(count, tied + 1) for tied, count in enumerate(ways))
    return wins / comb(total, k)


def _draws_not_above(others: Sequence[int], num_abstained: int, votes: int, size: int) -> list[int]:
    """Number of draws of `size` other samples in which no other class has more than `votes`, by the number of classes
    that have exactly as many.
    """
    table = [[comb(num_abstained, x)] for x in range(size + 1)]  # table[samples drawn][tied classes]
    for members in others:
        extended = [[0] * (len(table[0]) + (members >= votes)) for _ in range(size + 1)]
        for num_drawn, by_tied in enumerate(table):
            for tied, count in enumerate(by_tied):
                for num_taken in range(min(members, votes, size - num_drawn) + 1):
                    extended[num_drawn + num_taken][tied + (num_taken == votes)] += count * comb(members, num_taken)
        table = extended
    return table[size]


def vote_labels(
    answers: Sequence[str | None], correct: Sequence[bool], same: Callable[[Sequence[tuple[str, str]]], Sequence[bool]]
) -> list[int | None]:
    """The class that each sample votes for: 0 is the correct one, others follow by size; None abstains.

    Samples that the verifier accepts are one class. The others are grouped by text; then each text, largest group
    first, joins the first class whose first text is the `same` answer (a function of several pairs at once), or starts
    a class of its own. The order of the samples does not matter, and no wrong class merges with the correct one.
    """
    votes = [None if ok else answer for answer, ok in zip(answers, correct, strict=True)]
    counts = Counter(answer for answer in votes if answer is not None)
    leaders: dict[str, str] = {}  # of each text
    sizes: Counter[str] = Counter()  # by leader
    for text, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        classes = list(sizes)
        matches = same([(leader, text) for leader in classes]) if classes else []
        leaders[text] = next((leader for leader, match in zip(classes, matches, strict=True) if match), text)
        sizes[leaders[text]] += count
    ranked = sorted(sizes, key=lambda leader: (-sizes[leader], leader))
    number = {leader: place for place, leader in enumerate(ranked, 1)}
    return [
        0 if ok else None if vote is None else number[leaders[vote]] for vote, ok in zip(votes, correct, strict=True)
    ]


def class_sizes(labels: Sequence[int | None]) -> tuple[int, list[int], int]:
    """Count the labels of one problem's samples as (num_correct, others, num_abstained), the arguments of cons_at_k."""
    counts = Counter(labels)
    num_abstained, num_correct = counts.pop(None, 0), counts.pop(0, 0)
    return num_correct, sorted(counts.values(), reverse=True), num_abstained


def vote_share(num_correct: int, others: Sequence[int], num_abstained: int) -> float:
    """The share of all samples that are in the largest class; 0 where none votes."""
    return max([num_correct, *others], default=0) / (num_correct + sum(others) + num_abstained)


def is_tied(num_correct: int, others: Sequence[int]) -> bool:
    """Whether two or more classes have the most votes."""
    sizes = sorted([num_correct, *others], reverse=True)
    return len(sizes) > 1 and sizes[0] == sizes[1] > 0


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over problems with its uncertainty."""

    value: float
    low: float  # 95 % Wilson interval with the effective number of problems
    high: float
    se: float  # standard error over other problems and other samples
    problems: int
    effective: float  # number of problems with one 0/1 score each that would be as informative

    def __str__(self) -> str:
        return f"{100 * self.value:5.1f} % [{100 * self.low:.1f}, {100 * self.high:.1f}]"


def estimate(scores: Sequence[float]) -> Estimate:
    """Mean of per-problem scores in [0, 1], with a Wilson interval that holds for few problems and near 0 and 1.

    The effective number of problems is p (1 - p) over the variance of the mean: N itself for 0/1 scores, more where
    the scores are averages over several samples.
    """
    return estimate_share(scores, [1] * len(scores))


def estimate_share(hits: Sequence[float], totals: Sequence[int]) -> Estimate:
    """Share of all items that are hits, from the hits and the items of each problem, at least one.

    The items of a problem depend on each other, so the interval is that of a ratio of sums over independent problems.
    """
    size, total = len(totals), sum(totals)
    if not total:
        raise ValueError("an estimate needs at least one problem")
    p = sum(hits) / total
    spread = sum((own - p * items) ** 2 for own, items in zip(hits, totals, strict=True))
    effective = p * (1 - p) * total**2 / spread if spread > 1e-12 else float(size)
    low, high = wilson(p, effective)
    se = sqrt(spread / (size - 1) / size) * (size / total) if size > 1 else 0.0
    return Estimate(p, low, high, se, size, effective)


def macro(estimates: Sequence[Estimate]) -> dict[str, float]:
    """The `value` of the unweighted mean over data sets, and the `low` and `high` of its 95 % interval, recovered from
    theirs (MOVER: Zou and Donner 2008): it has a width where all scores of a set are equal as well.
    """
    sets = len(estimates)
    value = sum(e.value for e in estimates) / sets
    below, above = (sqrt(sum((getattr(e, side) - e.value) ** 2 for e in estimates)) / sets for side in ("low", "high"))
    return {"value": value, "low": value - below, "high": value + above}


def wilson(p: float, n: float) -> tuple[float, float]:
    """95 % Wilson interval of a proportion p on n problems."""
    z2 = _Z * _Z
    centre = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = _Z / (1 + z2 / n) * sqrt(p * (1 - p) / n + z2 / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)


def se_run(n: Sequence[int], c: Sequence[int]) -> float:
    """Standard error of pass@1 for new samples of the same problems; every n_i must be above 1.

    sqrt(sum_i s_i (1 - s_i) / (n_i - 1)) / N
    """
    return sqrt(sum((ci / ni) * (1 - ci / ni) / (ni - 1) for ni, ci in zip(n, c, strict=True))) / len(n)
