"""Preference pairs of rollouts: their order, and what is left out."""

from reasoner.preferences.dataset import comparisons_of
from reasoner.preferences.rollout_pairs import PairCounts, preference_rows, schema
from reasoner.sft.examples import text_reader
from tests.fixtures.tiny import tiny_tokenizer


def rollout(sample, text, *, correct=True, tokens=3, group=0, step=0):
    return {
        "step": step,
        "group": group,
        "problem_id": f"sums/{group}",
        "prompt": "Q:<think>",
        "prompt_token_ids": [5, 6],
        "completion": f"<think>{text}",
        "token_ids": [10 + sample] * tokens,
        "verdict": "correct" if correct else "wrong",
        "finish": "stop",
    }


def export(rollouts):
    counts = PairCounts()
    return list(preference_rows(rollouts, counts, prefill="<think>")), counts


def test_right_answers_are_preferred_then_short_ones():
    rollouts = [rollout(0, "long", tokens=9), rollout(1, "no", correct=False, tokens=1), rollout(2, "short")]
    rows, counts = export(rollouts)
    assert [(row["chosen"], row["rejected"]) for row in rows] == [("long", "no"), ("short", "long"), ("short", "no")]
    assert rows[0]["correct_chosen"] and not rows[0]["correct_rejected"]
    assert counts.pairs == 3


def test_rollouts_without_token_ids_are_compared_as_texts():
    rollouts = [rollout(i, text) | {"token_ids": None, "prompt_token_ids": None} for i, text in enumerate(("7", "56"))]
    rows, _ = export(rollouts)
    assert [(row["chosen"], row["rejected"], row["chosen_ids"]) for row in rows] == [("7", "56", None)]
    encode = text_reader(tiny_tokenizer(), ("</answer>",))
    (one,) = comparisons_of([("a row", row) for row in rows], encode)
    assert len(one.completions) == 2


def test_identical_texts_and_undecided_pairs_are_left_out_and_counted():
    rows, counts = export([rollout(0, "a"), rollout(1, "a", tokens=5), rollout(2, "b"), rollout(3, "c", tokens=4)])
    assert (counts.same_text, counts.undecided, counts.pairs, counts.groups) == (1, 1, 4, 1)
    assert len(rows) == 4


def test_an_answer_that_was_not_judged_is_no_wrong_one():
    """Imported rollouts without verdicts would be pairs by length alone."""
    unjudged = [rollout(place, text, tokens=place) | {"verdict": "refused"} for place, text in ((1, "a"), (2, "b"))]
    rows, counts = export([*unjudged, rollout(3, "c")])
    assert rows == [] and counts.undecided == 3


def test_rows_have_the_documented_columns_and_read_back():
    rows, _ = export([rollout(i, f"text {i}", tokens=3 + i) for i in range(3)])
    assert all(row.keys() == {*schema().names} for row in rows)
    texts = [row | {"prompt": None} for row in rows]  # its ids are not those of its text in this tokenizer
    (one,) = comparisons_of([("a row", row) for row in texts], text_reader(tiny_tokenizer()))
    assert one.prompt_ids == (5, 6) and len(one.completions) == 3 and len(one.pairs) == 3
    assert all(text.correct for text in one.completions)
    assert rows[0]["prompt"].endswith("<think>") and not rows[0]["chosen"].startswith("<think>")
