"""Which problems can be asked: what cannot be graded or does not fit is left out, and said."""

import pytest

from data import Problem
from reasoner.rollouts.dataset import askable, gradable
from reasoner.rollouts.prompts import template
from tests.fixtures.tiny import tiny_tokenizer


def problem(number: int, *, question: str = "1+1?", answer: str = "2", rule: str = "maths") -> Problem:
    return Problem(f"mine/{number}", question, answer, "mine", "train", verifier=rule)


GOOD = [problem(0), problem(1, answer=r"\frac12"), problem(2, answer="3+4", rule="countdown")]
BAD = [problem(3, answer="9" * 600), problem(4, answer="x+", rule="countdown"), problem(5, rule="chess")]


def test_gold_answers_that_do_not_grade_as_correct_are_left_out_and_named(capsys):
    assert gradable(GOOD + BAD) == GOOD
    told = capsys.readouterr().err
    assert told.startswith("dropped: 3 of 6 problems have a gold answer that cannot be graded: mine/3 (refused:")
    assert "mine/4" in told and "mine/5 (unknown rule 'chess'" in told and told.count("\n") == 1


def test_all_good_is_silent(capsys):
    assert gradable(GOOD) == GOOD
    assert capsys.readouterr().err == ""


def test_nothing_left_is_refused():
    with pytest.raises(ValueError, match="3 of 3 problems have a gold answer that cannot be graded"):
        gradable(BAD)


def test_questions_that_do_not_fit_are_left_out_with_a_count(capsys):
    long = problem(9, question="and " * 200)
    asked = askable([*GOOD, long], template("none"), tiny_tokenizer(), context=100, max_tokens=50)
    assert [prompt.problem for prompt in asked] == GOOD
    assert capsys.readouterr().err == "dropped 1 of 4 questions: longer than 50 tokens\n"
    with pytest.raises(ValueError, match="every one of 1 questions is longer than 50 tokens"):
        askable([long], template("none"), tiny_tokenizer(), context=100, max_tokens=50)


def test_no_room_for_a_question_is_refused():
    with pytest.raises(ValueError, match=r"sampling\.max_tokens is 100; .* leaves no room"):
        askable(GOOD, template("none"), tiny_tokenizer(), context=100, max_tokens=100)


def test_a_limit_of_ones_own_holds_too():
    with pytest.raises(ValueError, match="longer than 3 tokens"):
        askable(GOOD, template("none"), tiny_tokenizer(), context=100, max_tokens=50, max_prompt_tokens=3)
