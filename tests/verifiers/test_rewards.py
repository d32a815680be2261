from dataclasses import fields

import pytest

from data import Problem
from verifiers import RewardWeights, Verdict, score_response
from verifiers.rewards import REWARDS, total

PROBLEM = Problem("p", "6*7?", "42", "test", "test")


def response(answer: str) -> str:
    return f"<think>Let me see.</think> <answer>{answer}</answer>"


@pytest.mark.parametrize(
    ("text", "verdict", "reward", "lenient"),
    [
        (response("42"), Verdict.CORRECT, 1.2, True),
        (response(r"\boxed{42}"), Verdict.CORRECT, 1.2, True),
        (response("41"), Verdict.WRONG, 0.2, False),
        (response("41") + " 42", Verdict.MALFORMED, 0.0, False),
        (response("42") + " I hope", Verdict.MALFORMED, 0.0, True),  # right, but not in the form: earns nothing
        (r"So \boxed{42}.", Verdict.MALFORMED, 0.0, True),
        ("<think>It is 42", Verdict.MALFORMED, 0.0, True),
        ("<think>Hm", Verdict.NO_ANSWER, 0.0, False),
        ("", Verdict.NO_ANSWER, 0.0, False),
        (response(r"\boxed{}"), Verdict.NO_ANSWER, 0.2, False),
        (response("9" * 600), Verdict.REFUSED, 0.2, False),
        (response("40+2"), Verdict.WRONG, 0.2, False),
        (response("41 or 42"), Verdict.WRONG, 0.2, False),
    ],
)
def test_what_a_response_earns(text: str, verdict: Verdict, reward: float, lenient: bool) -> None:
    score = score_response(text, PROBLEM)
    assert (score.verdict, score.total, score.lenient) == (verdict, pytest.approx(reward), lenient)
    assert score.parts == {"correct": float(verdict is Verdict.CORRECT), "format": float(score.well_formed)}


def test_the_total_is_the_weighted_sum_of_the_parts() -> None:
    assert total({"correct": 1.0, "format": 1.0}, RewardWeights(correct=2.0, format=0.5)) == 2.5
    assert score_response(response("42"), PROBLEM, RewardWeights(correct=1.0, format=0.0)).total == 1.0


def test_every_reward_has_a_weight() -> None:
    assert [field.name for field in fields(RewardWeights)] == list(REWARDS)


def test_a_malformed_response_has_no_answer_to_vote_with() -> None:
    assert score_response(r"\boxed{42}", PROBLEM).extracted is None
    assert score_response(response("42"), PROBLEM).extracted == "42"


def test_the_rule_of_the_problem_judges() -> None:
    countdown = Problem("c", "Make 46 of 25, 3 and 7.", "25+3*7", "test", "test", verifier="countdown")
    assert score_response(response("7*3+25"), countdown).correct
    assert not score_response(response("46"), countdown).correct


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown rule 'chess'; known are maths, countdown"):
        score_response(response("42"), Problem("p", "?", "42", "test", "test", verifier="chess"))
