"""Reflection and words over a run, compared with counts over the shards."""

from collections import Counter

import pytest

from tests.app.library_of import STEPS, TEXTS, grouped, until


def test_reflection_page_counts_the_spans_of_the_rollouts(call, rows, labels):
    page = call("reflection", run="whole", limit=500)
    assert page["num_analyzed"] == page["num_steps"] == STEPS
    assert page["totals"]["labels"] == Counter(label for own in labels.values() for label in own)
    for line, own in zip(page["timeline"], grouped(rows, "step").values(), strict=True):
        assert line["reflecting"] == sum(bool(labels[row["name"]]) for row in own) / len(own)
        tokens = sum(row["tokens"] for row in own)
        counts = Counter(label for row in own for label in labels[row["name"]])
        assert line["labels"] == {name: pytest.approx(1000 * counts[name] / tokens) for name in page["labels"]}
    assert {card["name"] for card in page["gallery"]} == {name for name, own in labels.items() if own}
    by_name = {row["name"]: row for row in rows}
    for card in page["gallery"]:
        text = by_name[card["name"]]["completion"]
        assert text[card["start"] : card["end"]] == card["excerpt"][1] and "".join(card["excerpt"]) in text
        assert (card["question"], card["gold"]) == (by_name[card["name"]]["question"], by_name[card["name"]]["gold"])
    self_corrected = [r["name"] for r in rows if r["verdict"] == "correct" and set(labels[r["name"]]) - {"cue"}]
    assert page["first_correction"] == self_corrected[0]


@pytest.mark.parametrize("text", TEXTS)
def test_words_are_counted_step_by_step(call, rows, text):
    holds = [(row["step"], text.lower() in row["completion"].lower()) for row in rows]
    page = call("words", run="whole", text=text)
    shares = [sum(has for at, has in holds if at == step) / 12 for step in range(STEPS)]
    assert page["points"] == [{"step": step, "share": share} for step, share in enumerate(shares)]
    assert page["total"] == sum(has for _, has in holds)


@pytest.mark.parametrize("query", ["reflection", "failures"])
def test_a_page_that_asks_for_news_gets_the_numbers_of_steps_alone(call, query):
    assert until(lambda: call(query, run="whole")["num_analyzed"] == STEPS)
    assert call(query, run="whole", limit=0) == {"num_analyzed": STEPS, "num_steps": STEPS}
