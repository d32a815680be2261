"""Hits of a search in a text agree with the tokenizer of the index."""

import re
import sqlite3
from contextlib import closing
from itertools import accumulate

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from reasoner.runs.word_search import excerpt, hits, match, terms

TEXT = "<think>Wait,\x00 the CAFÉ waiter\u202e waits 🎉 for <b>wait</b>.</think> wait"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("wait", ["Wait", "wait", "wait"]),
        ("wait*", ["Wait", "waiter", "waits", "wait", "wait"]),
        ('"waiter waits"', ["waiter\u202e waits"]),
        ("cafe", ["CAFÉ"]),
        ("<b>", ["b", "b"]),
        ("waits -wait", ["waits"]),
        ("cafe unicorn", ["CAFÉ"]),
        ("unicorn", []),
        ("-wait", []),
        ("", []),
    ],
)
def test_hits_are_the_wanted_words_of_the_query(query, expected):
    assert [TEXT[start:end] for start, end in hits(TEXT, query)] == expected


def highlighted(text, query):
    """What FTS5 itself marks; its highlight() ends at a NUL, which its tokenizer takes for a blank."""
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute("CREATE VIRTUAL TABLE texts USING fts5 (text, tokenize='unicode61')")
        db.execute("INSERT INTO texts VALUES (?)", [text.replace("\0", " ")])
        row = db.execute(
            "SELECT highlight(texts, 0, '⟦', '⟧') FROM texts WHERE texts MATCH ?", [match(query)]
        ).fetchone()
    pieces = re.split("[⟦⟧]", row[0] if row else text)
    ends = list(accumulate(map(len, pieces)))
    return [(ends[n - 1], ends[n]) for n in range(1, len(pieces), 2)]


LETTERS = "abAB 1_+\n\0<'é\u0301Éñσς数🎉\u202e½"


@settings(max_examples=300, deadline=None)
@given(
    text=st.text(st.sampled_from(LETTERS), max_size=40),
    query=st.text(st.sampled_from('abAB1_+é\u0301σ数 *"'), max_size=8),
)
def test_hits_agree_with_fts5(text, query):
    assume(len(terms(query)[0]) == 1 and not terms(query)[1])  # of several words the index wants all
    assert hits(text, query) == highlighted(text, query)


def test_a_missing_text_has_no_hits():
    assert hits(None, "b") == []


def test_hits_has_every_occurrence_of_a_repeated_word():
    """Without an end in sight for FTS5's highlight(), which copies the text for each hit."""
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


def test_excerpt_is_bounded_for_a_long_hit():
    text = f"a {'-' * 100_000} b"
    assert len("".join(excerpt(text, hits(text, '"a b"'), length=100))) <= 101
