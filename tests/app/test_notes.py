"""Stars and notes: kept beside the rollouts, whatever happens to the index."""

import json

import pytest

from app.notes import notes_of
from tests.app.library_of import asking, write_run


@pytest.fixture
def run(tmp_path):
    return write_run(tmp_path / "runs" / "a", steps=4, written=2)


@pytest.fixture
def asked(run):
    yield from asking(run.parents[1])


def listed(asked):
    return [(row["name"], row["star"], row["note"]) for row in asked("notes", run="a")["rows"]]


def test_a_star_and_a_note_are_kept_and_shown_the_latest_first(asked, run):
    assert listed(asked) == []
    asked("annotate", run="a", name="0.1.2", star=True)
    asked("annotate", run="a", name="1.0.3", note="look: “five”\nand <b>six</b>")
    assert listed(asked) == [("1.0.3", False, "look: “five”\nand <b>six</b>"), ("0.1.2", True, "")]
    shown = asked("rollout", run="a", name="0.1.2")
    assert shown["note"]["star"] and asked("rollout", run="a", name="0.1.1")["note"] is None
    row = asked("notes", run="a")["rows"][1]
    assert (row["verdict"], row["problem"]) == (shown["verdict"], shown["problem_id"])


def test_the_last_line_of_a_rollout_wins(asked, run):
    for note in ("first", "second"):
        asked("annotate", run="a", name="0.1.2", star=True, note=note)
    assert listed(asked) == [("0.1.2", True, "second")]
    asked("annotate", run="a", name="0.1.2")
    assert listed(asked) == [] and notes_of(run) == {}
    assert len((run / "notes.jsonl").read_text().splitlines()) == 3


def test_a_torn_last_line_is_left_out_and_spoils_no_later_one(asked, run):
    asked("annotate", run="a", name="0.0.0", note="whole")
    path = run / "notes.jsonl"
    path.write_text(path.read_text() + '{"rollout": "0.0.1", "star": tr')
    assert listed(asked) == [("0.0.0", False, "whole")]
    asked("annotate", run="a", name="0.0.2", note="after")
    assert listed(asked) == [("0.0.2", False, "after"), ("0.0.0", False, "whole")]


def test_notes_outlive_the_index(asked, run):
    asked("annotate", run="a", name="0.1.2", star=True, note="kept")
    for path in run.glob("index.sqlite*"):
        path.unlink()
    for again in asking(run.parents[1]):
        assert listed(again) == [("0.1.2", True, "kept")]
        assert again("rollout", run="a", name="0.1.2")["note"]["note"] == "kept"


def test_a_note_on_a_rollout_that_is_gone_is_shown_as_missing(asked, run):
    asked("annotate", run="a", name="1.2.3", note="once")
    path = run / "notes.jsonl"
    path.write_text(path.read_text().replace("1.2.3", "9.2.3"))
    (row,) = asked("notes", run="a")["rows"]
    assert row["is_missing"] and row["note"] == "once"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"name": "0.0.0", "note": "x" * 10_001}, "the note has 10,001 characters; at most 10,000 are kept"),
        ({"name": "9.0.0", "star": True}, "has no rollout 9.0.0"),
        ({"name": "../a", "star": True}, "'../a' is not the name of a rollout"),
        ({"name": "0.0.0", "run": "nobody"}, "no run 'nobody'"),
        ({"name": "0.0.0", "star": "yes"}, "star is 'yes'; it must be true or false"),
    ],
)
def test_what_cannot_be_kept_is_refused_and_nothing_is_written(asked, run, given, message):
    with pytest.raises(ValueError) as caught:
        asked("annotate", **{"run": "a"} | given)
    assert message in str(caught.value) and not (run / "notes.jsonl").exists()


def test_the_longest_note_is_kept(asked):
    asked("annotate", run="a", name="0.0.0", note="x" * 10_000)
    assert listed(asked) == [("0.0.0", False, "x" * 10_000)]


def test_half_a_character_in_a_note_can_be_sent_back(asked):
    """A lone surrogate, which JSON may hold and UTF-8 may not."""
    found = [asked("annotate", run="a", name="0.0.0", note="half \ud83d"), *asked("notes", run="a")["rows"]]
    for change in found:
        assert json.dumps(change, ensure_ascii=False).encode() and change["note"] == "half ?"
