"""Second thoughts and words over a run: counted from the shards."""

import re
from collections import Counter

import pytest

from reasoner.runs import rollouts as store
from tests.app.library_of import (
    STEPS,
    TEXTS,
    grouped,
    open_run,
    until,
    write_step,
)  # fmt: skip


def test_second_thoughts_are_counted_as_the_rollouts_have_them(asked, rows, labels):
    found = asked("aha", run="whole", limit=500)
    assert found["studied"] == found["steps"] == STEPS
    assert found["totals"]["labels"] == Counter(label for own in labels.values() for label in own)
    for line, own in zip(found["timeline"], grouped(rows, "step").values(), strict=True):
        assert line["reflecting"] == sum(bool(labels[row["name"]]) for row in own) / len(own)
        tokens = sum(row["tokens"] for row in own)
        counts = Counter(label for row in own for label in labels[row["name"]])
        assert line["labels"] == {name: pytest.approx(1000 * counts[name] / tokens) for name in found["labels"]}
    assert {card["name"] for card in found["gallery"]} == {name for name, own in labels.items() if own}
    by_name = {row["name"]: row for row in rows}
    for card in found["gallery"]:
        text = by_name[card["name"]]["completion"]
        assert text[card["start"] : card["end"]] == card["excerpt"][1] and "".join(card["excerpt"]) in text
        assert (card["question"], card["gold"]) == (by_name[card["name"]]["question"], by_name[card["name"]]["gold"])
    mended = [r["name"] for r in rows if r["verdict"] == "correct" and set(labels[r["name"]]) - {"cue"}]
    assert found["first_correction"] == mended[0]


def test_pages_of_the_gallery_follow_one_another_and_a_label_picks_its_own(asked, labels):
    whole = [card["name"] for card in asked("aha", run="whole", limit=500)["gallery"]]
    pages = [asked("aha", run="whole", limit=9, offset=n)["gallery"] for n in range(0, len(whole), 9)]
    assert [card["name"] for page in pages for card in page] == whole
    found = asked("aha", run="whole", label="aha", limit=500)["gallery"]
    assert {card["name"] for card in found} == {name for name, own in labels.items() if "aha" in own} != set()
    with pytest.raises(ValueError, match="unknown label 'ahah'"):
        asked("aha", run="whole", label="ahah")


@pytest.mark.parametrize("text", TEXTS)
def test_words_are_counted_step_by_step(asked, rows, text):
    holds = [(row["step"], TEXTS[text](re.findall(r"\w+", row["completion"].lower()))) for row in rows]
    found = asked("words", run="whole", text=text)
    assert found["points"] == [
        {"step": step, "share": sum(h for s, h in holds if s == step) / 12} for step in range(STEPS)
    ]
    assert found["total"] == sum(has for _, has in holds)


def test_a_step_without_second_thoughts_does_not_keep_the_others_from_being_studied(fresh):
    runs, asked = fresh
    open_run(runs / "a", steps=2)
    for step in range(2):
        write_step(runs / "a", step)
    plain = [row | {"completion": "4"} for row in store.read(runs / "a", 0)]
    store.write_shard(store.shard(runs / "a", 0), plain)
    assert until(lambda: asked("aha", run="a")["studied"] == 2)
    found = asked("aha", run="a")
    assert found["timeline"][0]["reflecting"] == 0 < found["timeline"][1]["reflecting"]
