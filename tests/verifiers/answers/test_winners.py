"""Who wins under which condition: the clauses of an answer, and two answers beside each other."""

import pytest

from verifiers.answers.equivalence import equal
from verifiers.answers.statements import read_tokens, tokens_of
from verifiers.answers.winners import Outcome, equal_outcomes, outcomes


def read(text: str) -> list[Outcome]:
    return outcomes(tokens_of(text), read_tokens)


def test_outcomes_name_the_winner_of_each_condition() -> None:
    said = read("Alice wins if n is even, otherwise Bob wins")
    assert [winner for winner, _ in said] == [("alice",), ("bob",)]
    assert said[0][1] is not None
    assert said[1][1] is None


@pytest.mark.parametrize(
    "text",
    [
        "Alice wins",  # no condition
        "n is even",
        "x = 1 if y = 2",  # no winner
        "Alice wins if n i[ even",  # brackets do not match
        "",
    ],
)
def test_outcomes_are_empty_for_other_answers(text: str) -> None:
    assert read(text) == []


@pytest.mark.parametrize(
    ("answer", "is_equal"),
    [
        ("Bob wins for odd n and Alice wins for even n", True),
        ("If n is even, Alice wins; if n is odd, Bob wins", True),
        ("Bob wins if n is odd, otherwise Alice wins", True),
        ("Alice wins for odd n and Bob wins for even n", False),
        ("Alice wins if n is even", False),
        ("Alice wins if n is even, otherwise Alice wins", False),
    ],
)
def test_equal_outcomes_compares_winners_by_condition(answer: str, *, is_equal: bool) -> None:
    gold = read("Alice wins if n is even; Bob wins if n is odd")
    assert equal_outcomes(gold, read(answer), equal) is is_equal
