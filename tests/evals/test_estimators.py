"""Estimators against exact values, brute force and laws."""

import json
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasoner.evals import estimators
from reasoner.evals.estimators import class_sizes, cons_at_k, estimate, is_tied, pass_at_k, vote_labels


@pytest.mark.parametrize(
    ("n", "c", "k", "expected"),
    [
        (16, 3, 1, Fraction(3, 16)), (16, 3, 4, Fraction(17, 28)), (16, 3, 8, Fraction(9, 10)),
        (16, 3, 13, Fraction(559, 560)), (16, 3, 14, 1), (16, 0, 4, 0), (10, 1, 5, Fraction(1, 2)),
        (4, 2, 2, Fraction(5, 6)), (64, 1, 16, Fraction(1, 4)),
    ],
)  # fmt: skip
def test_pass_at_k_is_unbiased(n, c, k, expected):  # trap 35
    assert pass_at_k(n, c, k) == expected


def test_k_above_the_number_of_samples_is_refused():
    with pytest.raises(ValueError, match=r"pass@5 .* 4"):
        pass_at_k(4, 1, 5)
    with pytest.raises(ValueError, match="cons@5"):
        cons_at_k(2, [1], 1, 5)


@pytest.mark.parametrize(
    ("right", "others", "abstained", "k", "expected"),
    [
        (3, [2], 0, 5, 1), (2, [2], 0, 4, Fraction(1, 2)), (2, [2], 0, 3, Fraction(1, 2)),
        (2, [2, 1], 0, 3, Fraction(13, 30)), (2, [2, 1], 0, 5, Fraction(1, 2)), (1, [1, 1, 1], 0, 4, Fraction(1, 4)),
        (1, [1, 1, 1], 0, 2, Fraction(1, 4)), (2, [1], 3, 2, Fraction(8, 15)), (1, [], 3, 1, Fraction(1, 4)),
        (1, [], 3, 4, 1), (4, [3, 1], 0, 4, Fraction(22, 35)), (3, [4, 1], 0, 4, Fraction(13, 35)),
        (3, [4, 1], 0, 8, 0), (6, [6, 3], 1, 16, Fraction(1, 2)), (6, [6, 3], 1, 8, Fraction(815, 1716)),
        (8, [5, 2], 1, 16, 1), (8, [5, 2], 1, 4, Fraction(881, 1365)), (0, [3, 1], 0, 4, 0), (0, [], 4, 4, 0),
    ],
)  # fmt: skip
def test_cons_at_k_is_the_exact_expectation(right, others, abstained, k, expected):  # trap 36
    assert cons_at_k(right, others, abstained, k) == expected


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 4), st.lists(st.integers(1, 2), max_size=2), st.integers(0, 2))
def test_cons_at_k_equals_brute_force(right, others, abstained):
    voters = ["r"] * right + [str(i) for i, size in enumerate(others) for _ in range(size)] + [None] * abstained
    for k in range(1, len(voters) + 1):
        total = Fraction(0)
        draws = list(combinations(voters, k))
        for draw in draws:
            counts = {v: draw.count(v) for v in draw if v is not None}
            if counts.get("r", 0) == max(counts.values(), default=0) > 0:
                total += Fraction(1, list(counts.values()).count(counts["r"]))
        assert cons_at_k(right, others, abstained, k) == total / len(draws)


def test_votes_are_counted_by_class_and_not_by_text():
    def same(pairs):
        return [{a, b} <= {"3", "3.0"} for a, b in pairs]

    answers = ["1/2", "0.5", "\\frac12", "3", "3", "3.0", "x", None]
    correct = [True, True, True, False, False, False, False, False]
    labels = vote_labels(answers, correct, same)
    assert labels == [0, 0, 0, 1, 1, 1, 2, None]
    assert vote_labels(answers[::-1], correct[::-1], same) == labels[::-1]
    assert class_sizes(labels) == (3, [3, 1], 1)
    assert estimators.vote_share(3, [3, 1], 1) == 3 / 8
    assert is_tied(3, [3, 1]) and not is_tied(0, []) and not is_tied(3, [2, 2])


def test_equal_answers_are_one_class_and_ties_are_split():
    """Strings would let 3 win with two votes over three spellings of one half."""

    def same(pairs):
        return [{a, b} <= {"3", "3.0"} or {a, b} <= {"1/2", "0.5", "\\frac12"} for a, b in pairs]

    answers = ["1/2", "0.5", "\\frac12", "3", "3", "3.0", "x"]
    for gold, expected in (({"1/2", "0.5", "\\frac12"}, Fraction(1, 2)), ({"3", "3.0"}, Fraction(1, 2))):
        labels = vote_labels(answers, [answer in gold for answer in answers], same)
        assert cons_at_k(*class_sizes(labels), 7) == expected
    for order in (["A", "A", "B", "B"], ["B", "B", "A", "A"]):  # first-seen rules give 1 and 0
        labels = vote_labels(order, [answer == "A" for answer in order], by_string)
        assert cons_at_k(*class_sizes(labels), 4) == Fraction(1, 2)


def test_macro_average_weighs_sets_equally():
    assert estimators.macro([estimate([1.0, 0.0]), estimate([1.0] * 10)])["value"] == pytest.approx(0.75)


def test_macro_average_has_an_interval_where_no_problem_is_solved():
    average = estimators.macro([estimate([0.0] * 30)] * 2)
    assert average == pytest.approx({"value": 0, "low": 0, "high": 0.1135133932 / 2**0.5})
    one = estimate([1.0] * 9 + [0.0] * 21)
    assert estimators.macro([one]) == pytest.approx({name: getattr(one, name) for name in ("value", "low", "high")})


def test_estimate_equals_values_worked_out_by_hand():
    estimated = estimate([1.0, 0.75, 0.0, 0.25, 0.5])
    assert estimated.value == 0.5
    assert estimated.se == pytest.approx(0.1767766953)
    assert (estimated.low, estimated.high) == pytest.approx((0.2365930905, 0.7634069095))
    assert estimators.se_run([4] * 5, [4, 3, 0, 1, 2]) == pytest.approx(0.0912870929)
    nine = estimate([1.0] * 9 + [0.0] * 21)
    assert nine.se == pytest.approx(0.0850962943)
    assert (nine.low, nine.high) == pytest.approx((0.1666474827, 0.4787578746))
    assert estimators.estimate_share([1] * 9 + [0] * 21, [1] * 30) == nine  # Wilson's own, of a pair a problem
    assert estimators.wilson(0.0, 30) == pytest.approx((0, 0.1135133932))
    mixed = estimate([1.0] * 6 + [0.5] * 6 + [0.0] * 18)
    assert mixed.se == pytest.approx(0.0742781353)
    assert (mixed.low, mixed.high) == pytest.approx((0.1800000569, 0.4555554599))


GRADED = Path(__file__).parents[3] / "shared/graded_outputs"
real = pytest.mark.skipif(not GRADED.exists(), reason="the graded outputs are not here")


@real
def test_estimators_equal_the_exact_shared_cases():
    cases = json.loads((GRADED / "estimator_cases.json").read_text())
    for case in cases["pass_at_k"]:
        assert pass_at_k(case["n"], case["c"], case["k"]) == Fraction(case["exact"])
    for case in cases["pass_at_k_wrong_with_replacement"]:
        assert float(pass_at_k(case["n"], case["c"], case["k"])) > case["value"] + 0.02  # trap 35
    for case in cases["cons_at_k"]:
        sizes = list(case["class_sizes"])
        right = 0 if case["correct_class"] is None else sizes.pop(case["correct_class"])
        assert cons_at_k(right, sizes, case["no_answer"], case["k"]) == Fraction(case["exact"]), case
    for case in cases["intervals"]:
        estimated = estimate([c / case["n"] for c in case["correct"]])
        assert estimated.value == pytest.approx(case["mean"])
        assert estimated.se == pytest.approx(case["se_over_problems"])
        assert (estimated.low, estimated.high) == pytest.approx(case["wilson95"], abs=1e-9)
        assert estimated.effective == pytest.approx(case["n_eff"])
        if case["n"] > 1:
            assert estimators.se_run([case["n"]] * len(case["correct"]), case["correct"]) == pytest.approx(
                case["se_same_problems"]
            )


def by_string(pairs):
    return [False] * len(pairs)


def figures_of(file, k):
    """(pass@k, cons@k) of a file of labelled samples; wrong answers are compared as strings."""
    rows = [json.loads(line) for line in (GRADED / file).open()]
    passes = [pass_at_k(len(row["labels"]), sum(row["labels"]), k) for row in rows]
    votes = [vote_labels([answer or None for answer in row["preds"]], row["labels"], by_string) for row in rows]
    cons = [cons_at_k(*class_sizes(labels), k) for labels in votes]
    return Fraction(sum(passes), len(rows)), Fraction(sum(cons), len(rows))


@real
@pytest.mark.parametrize(
    ("file", "k", "expected"),
    [
        ("qwen25math_math100x8.jsonl", 1, (Fraction(91, 100), Fraction(91, 100))),
        ("qwen25math_math100x8.jsonl", 2, (Fraction(653, 700), Fraction(91, 100))),
        ("qwen25math_math100x8.jsonl", 4, (Fraction(951, 1000), Fraction(25763, 28000))),
        ("qwen25math_math100x8.jsonl", 8, (Fraction(96, 100), Fraction(925, 1000))),
        ("nemo_math7x3.jsonl", 3, (Fraction(6, 7), Fraction(16, 21))),  # NeMo-Skills publishes 85.714286 and 76.190476
        ("nemo_gpqa4x4.jsonl", 4, (Fraction(3, 4), Fraction(1, 2))),
        ("nemo_math50x3.jsonl", 3, (Fraction(9, 10), Fraction(64, 75))),
    ],
)
def test_estimators_reproduce_published_figures(file, k, expected):
    assert figures_of(file, k) == expected


@real
def test_estimators_agree_for_every_k_of_real_samples():
    for file, by_k in json.loads((GRADED / "estimator_cases.json").read_text())["files"].items():
        for k, case in by_k.items():
            if k.isdigit():
                exact = Fraction(case["pass_exact"]), Fraction(case["cons_exact"])
                assert figures_of(file, int(k)) == exact, (file, k)


def test_estimate_of_no_problem_is_refused():
    with pytest.raises(ValueError, match="at least one problem"):
        estimate([])
