"""Searches for words: which completions match, and the places of the words in a text."""

import re

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from reasoner.runs.word_search import _plain, check, excerpt, hits, patterns

TEXT = "<think>Wait,\x00 the CAFÉ waiter\u202e waits 🎉 for <b>wait</b>.</think> wait"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("wait", ["Wait", "wait", "wait"]), ("wait*", ["Wait", "waiter", "waits", "wait", "wait"]),
        ('"waiter waits"', ["waiter\u202e waits"]), ("cafe", ["CAFÉ"]), ("<b>", ["b", "b"]), ("waits -wait", ["waits"]),
        ("cafe unicorn", ["CAFÉ"]), ("unicorn", []), ("-wait", []), ("", []),
    ],
)  # fmt: skip
def test_hits_are_the_wanted_words_of_the_query(query, expected):
    assert [TEXT[start:end] for start, end in hits(TEXT, query)] == expected


LETTERS = "abAB 1_+\n\0<'é\u0301Éñσς数🎉\u202e½"


@settings(max_examples=300, deadline=None)
@given(
    text=st.text(st.sampled_from(LETTERS), max_size=40), query=st.text(st.sampled_from('abAB1_+éσ数 *"'), max_size=8)
)
def test_a_completion_matches_a_search_where_it_has_a_hit_of_each_term(text, query):
    wanted = patterns(query)
    assume(wanted and all(is_wanted for _, is_wanted in wanted))
    has = [pc.match_substring_regex(pa.array([text]), pattern)[0].as_py() for pattern, _ in wanted]
    spans = hits(text, query)
    assert bool(spans) == any(has)
    words = re.findall(r"[^\W_]+", _plain(query))
    assert all(_plain(text[start:end]).startswith(tuple(words)) for start, end in spans)


@pytest.mark.parametrize(
    ("query", "is_match"),
    [
        ("wait", True), ("WAITER", True), ("wait unicorn", False), ("wait -unicorn", True), ("wait -cafe", False),
        ('"the cafe waiter"', True), ('"cafe the"', False), ("wai", False), ("wai*", True), (".*", None),
        ("a OR b; DROP TABLE", False),
    ],
)  # fmt: skip
def test_a_search_wants_every_term_and_is_never_the_syntax_of_patterns(query, is_match):
    if is_match is None:
        with pytest.raises(ValueError, match="nothing to search for"):
            check(query)
        return
    texts = pa.array([TEXT])
    assert all(pc.match_substring_regex(texts, one)[0].as_py() is wanted for one, wanted in patterns(query)) is is_match


def test_a_missing_text_has_no_hits_and_a_repeated_word_every_one():
    assert hits(None, "b") == []
    assert len(hits("wait " * 200_000, "wait")) == 200_000


def test_excerpt_starts_before_the_first_hit_and_marks_every_hit():
    text = "word " * 100 + "then\n\tWait and wait " + "end " * 100
    pieces = excerpt(text, hits(text, "wait"), before=20, length=60)
    assert pieces[1::2] == ["Wait", "wait"]
    assert pieces[0] == "…word word then " and pieces[2] == " and " and pieces[4].endswith("…")
    assert len("".join(pieces)) <= 62 and "\n" not in "".join(pieces)
    assert excerpt("wait a bit", [(0, 4)]) == ["", "wait", " a bit"]
    assert excerpt("wait", []) == [] and excerpt(None, []) == []
    long = f"a {'-' * 100_000} b"
    assert len("".join(excerpt(long, hits(long, '"a b"'), length=100))) <= 101
