"""Stars and notes: stored beside the rollouts."""

import json

import pytest

from app.notes import notes_of
from reasoner.runs.json_files import checked_line
from tests.app.library_of import asking, write_run


@pytest.fixture
def run(tmp_path):
    return write_run(tmp_path / "runs" / "a", steps=4, written=2)


@pytest.fixture
def call(run):
    yield from asking(run.parents[1])


def listed(call):
    return [(row["name"], row["star"], row["note"]) for row in call("notes", run="a")["rows"]]


def test_stars_and_notes_are_stored_and_listed_latest_first(call, run):
    assert listed(call) == []
    call("annotate", run="a", name="0.1.2", star=True)
    call("annotate", run="a", name="1.0.3", note="look: “five”\nand <b>six</b>")
    for asked in (call, *asking(run.parents[1])):  # also another dashboard
        assert listed(asked) == [("1.0.3", False, "look: “five”\nand <b>six</b>"), ("0.1.2", True, "")]
    shown = call("rollout", run="a", name="0.1.2")
    assert shown["note"]["star"] and call("rollout", run="a", name="0.1.1")["note"] is None
    row = call("notes", run="a")["rows"][1]
    assert (row["verdict"], row["problem"]) == (shown["verdict"], shown["problem_id"])


def test_the_last_line_of_a_rollout_wins(call, run):
    for note in ("first", "second"):
        call("annotate", run="a", name="0.1.2", star=True, note=note)
    assert listed(call) == [("0.1.2", True, "second")]
    call("annotate", run="a", name="0.1.2")
    assert listed(call) == [] and notes_of(run) == {}
    assert len((run / "notes.jsonl").read_text().splitlines()) == 3


def test_a_torn_note_line_is_left_out_and_later_ones_are_read(call, run):
    call("annotate", run="a", name="0.0.0", note="whole")
    path = run / "notes.jsonl"
    path.write_text(path.read_text() + '{"rollout": "0.0.1", "star": tr')
    assert listed(call) == [("0.0.0", False, "whole")]
    call("annotate", run="a", name="0.0.2", note="after")
    assert listed(call) == [("0.0.2", False, "after"), ("0.0.0", False, "whole")]


def test_a_note_on_a_rollout_that_is_gone_is_shown_as_missing(call, run):
    call("annotate", run="a", name="1.2.3", note="once")
    path = run / "notes.jsonl"
    line = json.loads(path.read_text().replace("1.2.3", "9.2.3"))
    path.write_bytes(checked_line({name: value for name, value in line.items() if name != "crc32"}))
    (row,) = call("notes", run="a")["rows"]
    assert row["is_missing"] and row["note"] == "once"


def test_the_longest_note_is_kept_and_a_lone_surrogate_is_replaced(call):
    """JSON may hold one, and UTF-8 may not."""
    call("annotate", run="a", name="0.0.0", note="x" * 10_000)
    assert listed(call) == [("0.0.0", False, "x" * 10_000)]
    changes = [call("annotate", run="a", name="0.0.0", note="half \ud83d"), *call("notes", run="a")["rows"]]
    for change in changes:
        assert json.dumps(change, ensure_ascii=False).encode() and change["note"] == "half ?"
