"""Regular expressions over completions agree with Python's, and stay within their limits."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasoner.runs import regex_search
from reasoner.runs.filters import read_filter
from reasoner.runs.index import RolloutIndex
from reasoner.runs.regex_search import check_pattern, pattern_hits
from tests.app.library_of import write_run

PATTERNS = ["a+", "(?i)É.", r"\bb", "[^a]🎉?", "(?m)^a", "(?s)a.b", "a|ab", "(a)(b)?", "\x00"]


@settings(max_examples=200, deadline=None)
@given(text=st.text(st.sampled_from("abAB é\n🎉\0\ue000\ue001"), max_size=30), pattern=st.sampled_from(PATTERNS))
def test_hits_are_those_of_python(text, pattern):
    flags = re.ASCII if "\\b" in pattern else 0  # RE2 knows words of ASCII letters only
    assert pattern_hits(text, pattern) == [match.span() for match in re.finditer(pattern, text, flags)]


def test_hits_end_at_their_reach_after_the_first():
    assert pattern_hits("é" * 50 + "ab" * 9, "[ab]", reach=4) == [(50, 51), (51, 52), (52, 53), (53, 54)]
    assert pattern_hits("aaa", "a{2}") == [(0, 2)] and pattern_hits(None, "a") == pattern_hits("a", "b") == []


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(", "missing )"),
        ("a)(b", "unexpected )"),
        (r"\Qa", "missing )"),
        (r"(a)\1", "invalid escape"),
        ("((a{100}){100})", "invalid repetition size"),
        ("a*|b", "matches the empty text"),
        ("a" * 201, "201 characters; at most 200"),
        ("\ud800", "surrogates not allowed"),
    ],
)
def test_a_pattern_that_cannot_be_searched_is_refused(pattern, reason):
    with pytest.raises(ValueError, match=re.escape(reason)):
        check_pattern(pattern)


@pytest.fixture
def index(tmp_path):
    index = RolloutIndex(write_run(tmp_path / "run", steps=2, written=2))
    yield index
    index.close()


def test_matches_of_new_steps_are_found_after_a_refresh(index):
    where = read_filter({"regex": "answer", "correct": "no"})
    first = index.count(where)
    index.run_dir.joinpath("rollouts", "step-000001.parquet").unlink()
    assert index.count(where) == first  # until the index is refreshed
    index.refresh()
    assert 0 < index.count(where) < first
    (index.run_dir / "rollouts" / "step-000000.parquet").write_bytes(b"torn")
    assert RolloutIndex(index.run_dir, index.path).count(where) == 0  # its texts cannot be read


@pytest.mark.parametrize(
    ("limit", "value", "reason"),
    [("SECONDS", -1.0, "was stopped at step 0 after -1 s"), ("MAX_ROLLOUTS", 7, "at most 7 rollouts")],
)
def test_a_search_above_its_limits_is_refused(index, monkeypatch, limit, value, reason):
    monkeypatch.setattr(regex_search, limit, value)
    with pytest.raises(ValueError, match=reason):
        index.count(read_filter({"regex": "answer"}))
    assert index.count(read_filter({"text": "answer"})) > 0
