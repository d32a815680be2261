"""The optional rewards: ranges and limits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data import Problem
from verifiers import RewardWeights, Score, Verdict, score_response
from verifiers.rewards import REWARDS
from verifiers.score import RewardInput


def reward_input(
    response: str = "", *, correct: bool = True, tokens: int = 0, question: str = "How many?"
) -> RewardInput:
    verdict = Verdict.CORRECT if correct else Verdict.WRONG
    problem = Problem("p/1", question, "42", "mine", "train")
    return RewardInput(response, problem, Score(0.0, {}, verdict, well_formed=True), tokens, 100)


@given(st.text(max_size=300), st.integers(0, 100), st.booleans())
def test_every_reward_stays_in_its_range(response: str, tokens: int, correct: bool) -> None:
    for row in REWARDS.values():
        assert row.low <= row.function(reward_input(response, correct=correct, tokens=tokens)) <= row.high


def test_length_prefers_short_right_answers_and_long_wrong_ones() -> None:
    function = REWARDS["length"].function
    right = [function(reward_input(tokens=n)) for n in (0, 25, 50, 75, 99)]
    wrong = [function(reward_input(correct=False, tokens=n)) for n in (0, 25, 50, 75, 99)]
    assert right == sorted(right, reverse=True) and wrong == sorted(wrong)
    assert (right[0], right[2], wrong[0]) == (1.0, pytest.approx(0.5), -1.0)
    assert function(reward_input(tokens=100)) == -1.0


def test_overlong_penalty_starts_at_four_fifths_of_the_limit() -> None:
    assert [REWARDS["overlong"].function(reward_input(tokens=n)) for n in (0, 80, 90, 100)] == [0.0, 0.0, -0.5, -1.0]


@pytest.mark.parametrize("name", ["length", "overlong"])
def test_length_rewards_are_refused_without_token_counts(name: str) -> None:
    with pytest.raises(ValueError, match="need the number of tokens"):
        score_response("<think>a</think><answer>42</answer>", "42", weights=RewardWeights(**{name: 1.0}))


def test_repetition_is_the_share_of_repeated_sequences() -> None:
    function = REWARDS["repetition"].function
    once = " ".join(map(str, range(30)))
    assert function(reward_input(once)) == 0.0
    assert function(reward_input("too short")) == 0.0
    assert function(reward_input(f"{once} {once}")) == pytest.approx(
        -11 / 41
    )  # 41 sequences of 20 words, 11 of them repeated
    assert function(reward_input("wait " * 1000)) < -0.99


def test_language_is_the_share_of_letters_in_the_script_of_the_question() -> None:
    function = REWARDS["language"].function
    assert function(reward_input("<think>We add 2.</think>")) == 1.0
    assert function(reward_input("<think>ab 你好</think> more")) == 0.5
    assert function(reward_input("<think>你好</think>", question="几个？")) == 1.0
    assert function(reward_input("<think>1+1</think>")) == 1.0


def test_steps_are_right_equations_less_wrong_ones_in_the_thought() -> None:
    function = REWARDS["steps"].function
    assert function(reward_input("<think>2+3=5, 5*2=10</think> 1+1=3")) == 1.0
    assert function(reward_input("<think>2+3=5, 5*2=11</think>")) == 0.0
    assert function(reward_input("<think>2+3=6</think>")) == -1.0
    assert function(reward_input("<think>so</think>")) == 0.0
    assert function(reward_input("<think>2+3=6" + ", 1+1=2" * 99 + ", 3+1=4, 1+3=4</think>")) == pytest.approx(1 / 3)
    assert function(reward_input("<think>5*1=5, 7+0=7</think>")) == 0.0


def test_a_reward_of_weight_zero_is_not_computed() -> None:
    assert set(score_response("x", "42").parts) == {"correct", "format"}
    weights = RewardWeights(steps=0.5, repetition=0.1)
    score = score_response("<think>2+3=5</think><answer>42</answer>", "42", weights=weights)
    assert score.parts == {"correct": 1.0, "format": 1.0, "repetition": 0.0, "steps": 1.0}
    assert score.reward == pytest.approx(1.7)
