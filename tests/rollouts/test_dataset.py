"""Problems as prompts: those that cannot be graded or do not fit are dropped and reported."""

import pytest

from data import Problem
from reasoner.rollouts.dataset import filter_gradable, filter_prompts
from reasoner.rollouts.prompts import load_template
from tests.fixtures.tiny import tiny_tokenizer
from verifiers import grade


def problem(number: int, *, question: str = "1+1?", answer: str = "2", verifier: str = "maths") -> Problem:
    return Problem(f"mine/{number}", question, answer, "mine", "train", verifier=verifier)


GOOD = [problem(0), problem(1, answer=r"\frac12"), problem(2, answer="3+4", verifier="countdown")]
BAD = [problem(3, answer="9" * 600), problem(4, answer="x+", verifier="countdown"), problem(5, verifier="chess")]


def test_gradable_drops_and_names_ungradable_gold_answers(capsys):
    assert filter_gradable(GOOD + BAD) == GOOD
    message = capsys.readouterr().err
    assert message.startswith("dropped: 3 of 6 problems have a gold answer that cannot be graded: mine/3 (refused:")
    assert "mine/4" in message and "mine/5 (unknown verifier 'chess'" in message and message.count("\n") == 1
    assert filter_gradable(GOOD) == GOOD and capsys.readouterr().err == ""
    with pytest.raises(ValueError, match="3 of 3 problems"):
        filter_gradable(BAD)


def test_words_in_place_of_an_answer_are_no_gold_answers():
    golds = ["proof", "NaN", "notfound", "None", "2"]  # "none" may be an answer
    kept = filter_gradable([problem(number, answer=gold) for number, gold in enumerate(golds)])
    assert [each.answer for each in kept] == ["None", "2"]


def test_a_gold_answer_is_graded_once(monkeypatch):
    graded = []
    monkeypatch.setattr("reasoner.rollouts.dataset.grade", lambda *asked: graded.append(asked) or grade(*asked))
    for _ in range(2):
        assert filter_gradable([problem(0, answer="8/2718281")])
    assert len(graded) == 1


def test_askable_drops_long_questions_with_count(capsys):
    long = problem(9, question="and " * 200)
    prompts = filter_prompts([*GOOD, long], load_template("none"), tiny_tokenizer(), context=100, max_tokens=50)
    assert [prompt.problem for prompt in prompts] == GOOD
    assert capsys.readouterr().err == "dropped 1 of 4 prompts: longer than 50 tokens\n"
    with pytest.raises(ValueError, match=r"1 prompts .* 50 tokens"):
        filter_prompts([long], load_template("none"), tiny_tokenizer(), context=100, max_tokens=50)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"max_tokens": 100}, r"sampling\.max_tokens is 100; .* leaves no room"),
        ({"max_tokens": 50, "max_prompt_tokens": 3}, "longer than 3 tokens"),
    ],
)
def test_limits_that_leave_no_prompt_are_refused(limits, message):
    with pytest.raises(ValueError, match=message):
        filter_prompts(GOOD, load_template("none"), tiny_tokenizer(), context=100, **limits)
