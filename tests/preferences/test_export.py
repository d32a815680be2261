"""Preference pairs of rollouts: judges, noise of known size, and what is left out."""

from math import exp

import pytest

from reasoner.evals.estimators import wilson
from reasoner.preferences.dataset import COLUMNS, comparisons_of
from reasoner.preferences.judges import ExportCounts, Judge, load_judge, preference_probability, preference_rows
from reasoner.sft.examples import text_reader
from tests.fixtures.tiny import tiny_tokenizer


def rollout(sample, text, *, correct=True, tokens=3, group=0, step=0):
    return {
        "step": step,
        "group": group,
        "sample": sample,
        "problem_id": f"sums/{group}",
        "question": "?",
        "gold": "1",
        "extracted": "1",
        "prompt": "Q:<think>",
        "prompt_token_ids": [5, 6],
        "completion": f"<think>{text}",
        "token_ids": [10 + sample] * tokens,
        "verdict": "correct" if correct else "wrong",
        "well_formed": True,
        "finish": "stop",
        "reward": 1.0,
    }


def by_sample(noise):
    return Judge("by sample", lambda rows: [row["sample"] / 2 for row in rows], noise)


def export(rollouts, judge, seed=0):
    counts = ExportCounts()
    return list(preference_rows(rollouts, judge, seed=seed, counts=counts, prefill="<think>")), counts


def test_the_rule_prefers_right_answers_then_short_ones():
    rows, counts = export(
        [rollout(0, "long", tokens=9), rollout(1, "wrong", correct=False, tokens=1), rollout(2, "short")],
        load_judge("rule", noise=None),
    )
    assert [(row["chosen"], row["rejected"]) for row in rows] == [
        ("long", "wrong"),
        ("short", "long"),
        ("short", "wrong"),
    ]
    assert all(row["u_chosen"] is None and row["p"] == 1.0 for row in rows)
    assert rows[0]["correct_chosen"] and not rows[0]["correct_rejected"]
    assert counts.won_by_better == counts.pairs == 3


def test_rollouts_without_token_ids_are_compared_as_texts():
    rollouts = [rollout(i, text) | {"token_ids": None, "prompt_token_ids": None} for i, text in enumerate(("7", "56"))]
    rows, _ = export(rollouts, load_judge("rule", noise=None))
    assert [(row["chosen"], row["rejected"], row["chosen_ids"]) for row in rows] == [("7", "56", None)]
    encode = text_reader(tiny_tokenizer(), ("</answer>",))
    (one,) = comparisons_of([("a row", row) for row in rows], encode)
    assert len(one.completions) == 2


def test_identical_texts_and_equal_utilities_are_left_out_and_counted():
    judge = Judge("by length", lambda rows: [float(len(row["token_ids"])) for row in rows], 1.0)
    rows, counts = export(
        [rollout(0, "a"), rollout(1, "a", tokens=5), rollout(2, "b"), rollout(3, "c", tokens=4)], judge
    )
    assert (counts.same_text, counts.same_utility, counts.pairs, counts.groups) == (1, 1, 4, 1)
    assert len(rows) == 4


def test_labels_follow_the_noise_that_the_file_states():
    rollouts = [rollout(i, f"text {i}", group=group) for group in range(150) for i in range(4)]
    rows, counts = export(rollouts, by_sample(1.0))
    for row in rows:
        assert row["p"] == pytest.approx(1 / (1 + exp(row["u_rejected"] - row["u_chosen"])))
    low, high = wilson(counts.won_by_better / counts.pairs, counts.pairs)
    assert low < counts.expected_by_better / counts.pairs < high
    assert 0.6 < counts.won_by_better / counts.pairs < 0.8


def test_a_label_depends_on_the_seed_and_its_own_pair_alone():
    rollouts = [rollout(i, f"text {i}", group=group) for group in range(9) for i in range(4)]
    labels = {(row["group"], row["chosen"], row["rejected"]) for row in export(rollouts, by_sample(1.0))[0]}
    later = export([row for row in rollouts if row["group"] > 4], by_sample(1.0))[0]
    assert {(row["group"], row["chosen"], row["rejected"]) for row in later} <= labels
    assert {
        (row["group"], row["chosen"], row["rejected"]) for row in export(rollouts, by_sample(1.0), seed=1)[0]
    } != labels


def test_without_noise_the_higher_utility_always_wins():
    rows, _ = export([rollout(i, f"text {i}") for i in range(5)], by_sample(0.0))
    assert all(row["u_chosen"] > row["u_rejected"] and row["p"] == 1.0 for row in rows)


def test_rows_have_the_documented_columns_and_read_back():
    rows, _ = export([rollout(i, f"text {i}") for i in range(3)], by_sample(0.0))
    assert all(row.keys() <= COLUMNS.keys() for row in rows)
    texts = [row | {"prompt": None} for row in rows]  # its ids are not those of its text in this tokenizer
    (one,) = comparisons_of([("a row", row) for row in texts], text_reader(tiny_tokenizer()))
    assert one.prompt_ids == (5, 6) and len(one.completions) == 3 and len(one.pairs) == 3
    assert {text.utility for text in one.completions} == {0.0, 0.5, 1.0}
    assert rows[0]["prompt"].endswith("<think>") and not rows[0]["chosen"].startswith("<think>")


def test_a_utility_function_is_read_from_a_file(tmp_path):
    path = tmp_path / "taste.py"
    path.write_text(
        "def brief(completion_ids, correct):\n    return [c - len(i) for c, i in zip(correct, completion_ids)]\n"
    )
    judge = load_judge(f"utility:{path}:brief", noise=0.25)
    assert judge.utilities([rollout(0, "a"), rollout(1, "b", correct=False)]) == [-2.0, -3.0]
    assert judge.noise == 0.25 and judge.is_known


@pytest.mark.parametrize(
    ("spec", "noise", "message"),
    [
        ("taste", None, "unknown judge 'taste'"),
        ("rule", 1.0, "the rule has none"),
        ("utility:nowhere.py:f", None, "'nowhere.py:f': FileNotFoundError"),
        ("utility:f", None, "unknown judge"),
        ("rule", -1.0, "--noise is -1.0; it must be at least 0"),
    ],
)
def test_unusable_judges_are_refused(spec, noise, message):
    with pytest.raises(ValueError, match=message):
        load_judge(spec, noise=noise)


@pytest.mark.parametrize(
    ("difference", "noise", "expected"),
    [(0.0, 1.0, 0.5), (1.0, 0.0, 1.0), (-1.0, 0.0, 0.0), (0.0, 0.0, 0.5), (2.0, 2.0, 0.7310585786), (-9e4, 1.0, 0.0)],
)
def test_preference_probability(difference, noise, expected):
    assert preference_probability(difference, noise) == pytest.approx(expected)
