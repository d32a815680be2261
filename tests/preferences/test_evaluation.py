"""The report on a reward model, against numbers worked out by hand and models of known quality."""

from itertools import combinations
from math import exp, log
from random import Random

import pytest

from reasoner.preferences.dataset import Comparison, Pair, ScoredText
from reasoner.preferences.evaluation import auc, calibration, evaluate_scores, log_loss


def noisy_comparisons(number=300, size=6, seed=0):
    """(comparisons of completions whose labels follow hidden values by Bradley-Terry, these values). Right answers are
    those of a value above 0.
    """
    random, result, hidden = Random(seed), [], []
    for problem in range(number):
        values = [random.gauss(0, 1.5) for _ in range(size)]
        texts = tuple(
            ScoredText((1,) * random.randrange(3, 30), value > 0, "stop" if value > -2 else "length")
            for value in values
        )
        pairs = []
        for i, j in combinations(range(size), 2):
            p = 1 / (1 + exp(values[j] - values[i]))
            pairs.append(Pair(i, j) if random.random() < p else Pair(j, i))
        result.append(Comparison(str(problem), (5,), texts, tuple(pairs)))
        hidden.append(values)
    return result, hidden


COMPARISONS, HIDDEN = noisy_comparisons()


def scores_by(function):
    return [[function(text) for text in one.completions] for one in COMPARISONS]


def test_the_values_behind_the_labels_are_calibrated_and_ordered():
    report = evaluate_scores(COMPARISONS, [[value / 2 for value in own] for own in HIDDEN], std=2.0)
    assert report.correct_auc == 1.0 and report.nll < 0.5
    for own in report.calibration:
        assert own.said == pytest.approx(own.was, abs=0.04)
    assert report.score_by_finish["length"][0] < report.score_by_finish["stop"][0]


def test_scores_that_say_nothing_are_at_chance():
    random = Random(1)
    report = evaluate_scores(COMPARISONS, scores_by(lambda _: random.gauss(0, 1)), std=1.0)
    assert report.accuracy.low < 0.5 < report.accuracy.high
    assert abs(report.length_correlation) < 0.1
    flat = evaluate_scores(COMPARISONS, scores_by(lambda _: 0.0), std=1.0)
    assert flat.accuracy.value == 0.5 and flat.nll == pytest.approx(log(2)) and flat.length_correlation is None


def test_baselines_do_not_depend_on_the_scores():
    first, second = (evaluate_scores(COMPARISONS, scores_by(lambda _, n=n: n), std=1.0) for n in (0.0, 1.0))
    assert first.shorter == second.shorter and first.rule == second.rule
    assert first.shorter.low < 0.5 < first.shorter.high  # lengths are random here
    assert first.rule.value > 0.65


def test_files_that_say_less_give_less():
    one = Comparison("a", (5,), (ScoredText((1, 2)), ScoredText((3,))), (Pair(0, 1),))
    report = evaluate_scores([one], [[1.0, 0.0]], std=3.0)
    assert report.accuracy.value == 1.0 and report.nll == pytest.approx(log(1 + exp(-3)))
    assert report.rule is report.correct_auc is None and not report.score_by_finish
    assert report.shorter.value == 0.0


def test_no_pair_is_refused():
    with pytest.raises(ValueError, match="no pair"):
        evaluate_scores([], [], std=1.0)


@pytest.mark.parametrize(
    ("scores", "labels", "expected"),
    [
        ([1, 2, 3, 4], [False, False, True, True], 1.0),
        ([1, 2, 3, 4], [True, False, True, False], 0.25),
        ([1, 1, 1], [True, False, False], 0.5),
        ([1, 2], [True, True], None),
    ],
)
def test_auc(scores, labels, expected):
    assert auc(scores, labels) == expected


def test_calibration_counts_pairs_by_what_was_said():
    near, far = log(0.55 / 0.45), log(0.95 / 0.05)
    first, last = calibration([near, -near, near, far])
    assert (first.said, first.was, first.pairs) == (pytest.approx(0.55), pytest.approx(2 / 3), 3)
    assert (last.said, last.was, last.pairs) == (pytest.approx(0.95), 1.0, 1)


@pytest.mark.parametrize("value", [-800.0, -1.0, 0.0, 2.0, 800.0])
def test_log_loss_is_stable(value):
    assert log_loss(value) == pytest.approx(log(1 + exp(-value)) if abs(value) < 30 else max(0.0, -value))
