"""Searches for a text: which completions hold it, and its places in one."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasoner.runs.text_search import excerpt, hits

TEXT = "<think>Wait,\x00 the CAFÉ waiter\u202e waits 🎉 for <b>wait</b>.</think> wait"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("wait", ["Wait", "wait", "wait", "wait", "wait"]),
        ("the café W", ["the CAFÉ w"]),
        ("<B>", ["<b>"]),
        (".*", []),
        ("", []),
    ],
)
def test_hits_are_the_query_in_capital_or_small_letters(query, expected):
    assert [TEXT[start:end] for start, end in hits(TEXT, query)] == expected


LETTERS = "abAB 1_+\n\0<'é\u0301ÉñΣσς数🎉\u202e½.*[\\"


@settings(max_examples=300, deadline=None)
@given(text=st.text(LETTERS, max_size=40), query=st.text(LETTERS, min_size=1, max_size=3))
def test_a_completion_is_found_where_it_has_a_hit(text, query):
    assert pc.match_substring(pa.array([text]), query, ignore_case=True)[0].as_py() is bool(hits(text, query))


def test_a_missing_text_has_no_hits():
    assert hits(None, "b") == []


def test_hits_has_every_occurrence_of_a_repeated_word():
    assert len(hits("wait " * 200_000, "wait")) == 200_000


def test_excerpt_starts_before_the_first_hit_and_marks_every_hit():
    text = "word " * 100 + "then\n\tWait and wait " + "end " * 100
    pieces = excerpt(text, hits(text, "wait"), before=20, length=60)
    assert pieces[1::2] == ["Wait", "wait"]
    assert pieces[0] == "…word word then " and pieces[2] == " and " and pieces[4].endswith("…")
    assert len("".join(pieces)) <= 62 and "\n" not in "".join(pieces)


def test_excerpt_of_a_short_text_is_the_text():
    assert excerpt("wait a bit", [(0, 4)]) == ["", "wait", " a bit"]
    assert excerpt("wait", []) == [] and excerpt(None, []) == []
