"""Places of a search's words: those of the index's own tokenizer, whatever stands in the text."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasoner.index.hits import excerpt, hits

TEXT = "<think>Wait,\x00 the CAFÉ waiter\u202e waits 🎉 for <b>wait</b>.</think> wait"


@pytest.mark.parametrize(
    ("query", "found"),
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
def test_hits_are_the_words_that_the_query_wants(query, found):
    assert [TEXT[start:end] for start, end in hits([TEXT], query)[0]] == found


def test_hits_of_several_texts_keep_their_order_and_a_missing_text_has_none():
    assert hits(["a b", None, "c", "b b"], "b") == [[(2, 3)], [], [], [(0, 1), (2, 3)]]


@settings(deadline=None)
@given(text=st.text(st.sampled_from("ab 1+\n\0<🎉"), max_size=60), word=st.sampled_from(["a", "ab", "b1", "1"]))
def test_hits_of_a_word_are_those_of_a_regular_expression(text, word):
    expected = [match.span() for match in re.finditer(rf"(?<!\w){word}(?!\w)", text)]
    assert hits([text], word) == [expected]


def test_excerpt_begins_shortly_before_the_first_hit_and_has_every_hit_in_it():
    text = "word " * 100 + "then\n\tWait and wait " + "end " * 100
    pieces = excerpt(text, hits([text], "wait")[0], before=20, length=60)
    assert pieces[1::2] == ["Wait", "wait"]
    assert pieces[0] == "…word word then " and pieces[2] == " and " and pieces[4].endswith("…")
    assert len("".join(pieces)) <= 62 and "\n" not in "".join(pieces)


def test_excerpt_of_a_short_text_is_the_text():
    assert excerpt("wait a bit", [(0, 4)]) == ["", "wait", " a bit"]
    assert excerpt("wait", []) == [] and excerpt(None, []) == []


def test_excerpt_has_a_bound_even_where_a_hit_has_none():
    text = f"a {'-' * 100_000} b"
    assert len("".join(excerpt(text, hits([text], '"a b"')[0], length=100))) <= 101
