"""How good a reward model is on comparisons: pure functions of its scores, and the report as text and as values.

A pair's log odds are reward_std x (score of the chosen completion - score of the rejected one); the model says that
the chosen one is preferred with probability sigmoid(log odds). Intervals are over problems, whose pairs are not
independent.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log1p
from statistics import StatisticsError, correlation, fmean

from reasoner.evals.estimators import Estimate, estimate_share
from reasoner.evals.tables import align_rows, percent
from reasoner.preferences.dataset import Comparison, Pair, ScoredText

BINS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)  # of the calibration table, lower bounds included


@dataclass(frozen=True, slots=True)
class ScoredPair:
    """A pair of held-out completions with the model's judgement."""

    problem_id: str
    pair: Pair
    chosen: ScoredText
    rejected: ScoredText
    log_odds: float


@dataclass(frozen=True, slots=True)
class Bin:
    """Pairs whose probability, as the model says it for the completion that it prefers, lies between two bounds."""

    said: float  # mean probability
    was: float  # share of the pairs in which that completion was chosen
    pairs: int


@dataclass(frozen=True, slots=True)
class RewardModelReport:
    """Figures of a reward model on comparisons. Those that need what a file does not hold are None or empty."""

    problems: int
    pairs: int
    accuracy: Estimate  # share of the labels that the model's order agrees with
    nll: float  # nats per label
    calibration: tuple[Bin, ...]
    shorter: Estimate  # accuracy of preferring the shorter completion
    rule: Estimate | None  # of preferring a right answer, then the shorter one
    correct_auc: float | None  # probability that a right answer scores above a wrong one, of any problem
    length_correlation: float | None  # Pearson, of score and tokens
    mean_score: float
    score_by_finish: Mapping[str, tuple[float, int]]  # finish -> (mean score, completions)


def evaluate_scores(
    comparisons: Sequence[Comparison], scores: Sequence[Sequence[float]], *, std: float
) -> RewardModelReport:
    """The report on comparisons, from the scores of each one's completions. `std`: the model's reward_std."""
    pairs = [
        ScoredPair(
            one.problem_id,
            pair,
            one.completions[pair.chosen],
            one.completions[pair.rejected],
            std * (own[pair.chosen] - own[pair.rejected]),
        )
        for one, own in zip(comparisons, scores, strict=True)
        for pair in one.pairs
    ]
    if not pairs:
        raise ValueError("there is no pair to evaluate on")
    texts = [text for one in comparisons for text in one.completions]
    flat = [score for own in scores for score in own]
    is_judged = all(text.correct is not None for text in texts)
    return RewardModelReport(
        problems=len({one.problem_id for one in pairs}),
        pairs=len(pairs),
        accuracy=accuracy(pairs, lambda one: one.log_odds),
        nll=fmean(log_loss(one.log_odds) for one in pairs),
        calibration=calibration([one.log_odds for one in pairs]),
        shorter=accuracy(pairs, _shorter),
        rule=accuracy(pairs, _rule) if is_judged else None,
        correct_auc=auc(flat, [bool(text.correct) for text in texts]) if is_judged else None,
        length_correlation=_correlation(flat, [len(text.token_ids) for text in texts]),
        mean_score=fmean(flat),
        score_by_finish=_by_finish(flat, texts),
    )


def accuracy(pairs: Sequence[ScoredPair], order: Callable[[ScoredPair], float]) -> Estimate:
    """Share of the pairs for which `order` is above 0, with an interval over problems; 0 counts half."""
    by_problem: dict[str, list[float]] = {}
    for one in pairs:
        value = order(one)
        by_problem.setdefault(one.problem_id, []).append(0.5 + 0.5 * (value > 0) - 0.5 * (value < 0))
    return estimate_share(list(map(sum, by_problem.values())), list(map(len, by_problem.values())))


def log_loss(log_odds: float) -> float:
    """-log sigmoid(log odds), in nats."""
    return log1p(exp(-abs(log_odds))) - min(log_odds, 0.0)


def calibration(log_odds: Sequence[float]) -> tuple[Bin, ...]:
    """What the model says of the completion that it prefers, against what was, by bins of BINS; empty ones left out."""
    said_and_was: list[list[tuple[float, float]]] = [[] for _ in BINS[1:]]
    for value in log_odds:
        said = 1 / (1 + exp(-abs(value)))
        place = sum(said >= bound for bound in BINS[1:-1])
        said_and_was[place].append((said, 1.0 if value > 0 else 0.5 if value == 0 else 0.0))
    return tuple(
        Bin(fmean(said for said, _ in own), fmean(was for _, was in own), len(own)) for own in said_and_was if own
    )


def auc(scores: Sequence[float], labels: Sequence[bool]) -> float | None:
    """Probability that a completion with the label scores above one without; ties count half. None without both."""
    positives = [score for score, label in zip(scores, labels, strict=True) if label]
    negatives = sorted(score for score, label in zip(scores, labels, strict=True) if not label)
    if not positives or not negatives:
        return None
    wins = sum(bisect_left(negatives, score) + bisect_right(negatives, score) for score in positives) / 2
    return wins / len(positives) / len(negatives)


def _shorter(one: ScoredPair) -> float:
    return len(one.rejected.token_ids) - len(one.chosen.token_ids)


def _rule(one: ScoredPair) -> float:
    by_verdict = float(bool(one.chosen.correct)) - float(bool(one.rejected.correct))
    return by_verdict or _shorter(one)


def _by_finish(scores: Sequence[float], texts: Sequence[ScoredText]) -> dict[str, tuple[float, int]]:
    groups: dict[str, list[float]] = {}
    for score, text in zip(scores, texts, strict=True):
        if text.finish is not None:
            groups.setdefault(text.finish, []).append(score)
    return {finish: (fmean(own), len(own)) for finish, own in sorted(groups.items())}


def _correlation(scores: Sequence[float], tokens: Sequence[int]) -> float | None:
    """None where the scores or the lengths are all equal."""
    try:
        return correlation(scores, tokens)
    except StatisticsError:
        return None


def report_text(report: RewardModelReport) -> str:
    """The report as lines of text: accuracy beside its baselines, calibration, what scores go with."""
    lines = [f"{report.pairs:,} pairs of {report.problems:,} problems", *align_rows(_accuracy_rows(report)), ""]
    lines += align_rows(
        [["says", "was", "pairs"], *([percent(b.said), percent(b.was), f"{b.pairs:,}"] for b in report.calibration)]
    )
    return "\n".join([*lines, "", *_relations(report)])


def _accuracy_rows(report: RewardModelReport) -> list[list[str]]:
    rows = [["", "labels (95 % CI)", "NLL"], ["reward model", str(report.accuracy), f"{report.nll:.3f}"]]
    rows.append(["shorter wins", str(report.shorter), ""])
    if report.rule is not None:
        rows.append(["rule: right, then shorter", str(report.rule), ""])
    return rows


def _relations(report: RewardModelReport) -> list[str]:
    lines = []
    if report.correct_auc is not None:
        lines.append(f"AUC for correct answers: {report.correct_auc:.3f}")
    if report.length_correlation is not None:
        lines.append(f"correlation of score and length: {report.length_correlation:+.2f}")
    finishes = [f"{name} {mean:+.2f} ({number:,})" for name, (mean, number) in report.score_by_finish.items()]
    lines.append(f"mean score: {report.mean_score:+.2f}" + (f"; by finish {', '.join(finishes)}" if finishes else ""))
    return lines
