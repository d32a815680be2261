from dataclasses import fields

import pytest

from verifiers import RewardWeights, Verdict, score_response
from verifiers.rewards import REWARDS

GOLD = "42"


def response(answer: str) -> str:
    return f"<think>Let me see.</think> <answer>{answer}</answer>"


@pytest.mark.parametrize(
    ("text", "verdict", "reward", "lenient"),
    [
        (response("42"), Verdict.CORRECT, 1.2, True),
        (response(r"\boxed{42}"), Verdict.CORRECT, 1.2, True),
        (response("41"), Verdict.WRONG, 0.2, False),
        (response("41") + " 42", Verdict.MALFORMED, 0.0, False),
        (response("42") + " I hope", Verdict.MALFORMED, 0.0, True),  # correct, but not well-formed: no reward
        (r"So \boxed{42}.", Verdict.MALFORMED, 0.0, True),
        ("It is 42", Verdict.MALFORMED, 0.0, True),
        ("<think>It is 42", Verdict.NO_ANSWER, 0.0, False),  # thought only
        ("<think>Hm", Verdict.NO_ANSWER, 0.0, False),
        ("", Verdict.NO_ANSWER, 0.0, False),
        (response(r"\boxed{}"), Verdict.NO_ANSWER, 0.2, False),
        (response("9" * 600), Verdict.REFUSED, 0.2, False),
        (response("40+2"), Verdict.WRONG, 0.2, False),
        (response("41 or 42"), Verdict.WRONG, 0.2, False),
    ],
)
def test_reward_and_verdict_of_a_response(text: str, verdict: Verdict, reward: float, lenient: bool) -> None:
    score = score_response(text, GOLD)
    assert (score.verdict, score.reward, score.lenient) == (verdict, pytest.approx(reward), lenient)
    assert score.parts == {"correct": float(verdict is Verdict.CORRECT), "format": float(score.well_formed)}


def test_the_reward_is_the_weighted_sum_of_the_parts() -> None:
    assert score_response(response("42"), GOLD, weights=RewardWeights(correct=2.0, format=0.5)).reward == 2.5
    assert score_response(response("42"), GOLD, weights=RewardWeights(correct=1.0, format=0.0)).reward == 1.0


def test_every_reward_has_a_weight() -> None:
    assert [field.name for field in fields(RewardWeights)] == [*REWARDS]


def test_a_malformed_response_has_no_answer_to_vote_with() -> None:
    assert score_response(r"\boxed{42}", GOLD).extracted is None
    assert score_response(response("42"), GOLD).extracted == "42"


def test_the_rule_of_the_problem_is_applied() -> None:
    assert score_response(response("7*3+25"), "25+3*7", "countdown").correct
    assert not score_response(response("46"), "25+3*7", "countdown").correct
