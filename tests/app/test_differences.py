"""The difference between two texts: complete, and computed within a bound."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.differences import word_difference

LOOP = "So 3 + 4 = 7. Wait, let me check. "
OTHER_LOOP = "Wait, let me check that 3 + 4 = 7 again. So "
texts = st.text(alphabet="ab 1.+=\n\té<", max_size=60)


def assert_whole(pieces, a, b):
    for side, text in (("a", a), ("b", b)):
        assert "".join(piece for kind, piece in pieces if kind in ("same", side)) == text
    assert all(before[0] != after[0] for before, after in pairwise(pieces))


@pytest.mark.timeout(60)  # 150 s before there was a bound
@pytest.mark.parametrize("times", [500, 20_000])
def test_repetitive_texts_are_compared_within_the_bound(times):
    a, b = LOOP * times, OTHER_LOOP * times
    assert_whole(word_difference(a, b), a, b)


@pytest.mark.timeout(60)
def test_shared_beginning_and_end_are_same_whatever_the_bound():
    a, b = (LOOP * 2_000 + middle + OTHER_LOOP * 2_000 for middle in ("one ", "another thing "))
    pieces = word_difference(a, b)
    assert_whole(pieces, a, b)
    assert sum(len(text) for kind, text in pieces if kind != "same") < 40


@settings(deadline=None)
@given(a=texts, b=texts)
def test_pieces_join_to_both_texts_and_equal_texts_are_one(a, b):
    assert_whole(word_difference(a, b), a, b)
    assert word_difference(a, a) == ([("same", a)] if a else [])


def test_a_changed_word_is_the_only_difference():
    assert word_difference("the sum is 7, so", "the sum is 8, so") == [
        ("same", "the sum is"), ("a", " 7"), ("b", " 8"), ("same", ", so"),
    ]  # fmt: skip
