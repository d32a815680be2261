"""Self-checks and what they catch, by the published rule."""

from fractions import Fraction

import pytest

from reasoner.aha import evaluate, rates, reflect

MENDED = (
    "<think> Let me work and check. 347*6=2072. Check: 300*6=1800, 40*6=240, 7*6=42, 1800+240=2040, 2040+42=2082. I had 2072. "
    "Wait, 347*6=2082. 2082-158=1924. Check: 2082-100=1982, 1982-50=1932, 1932-8=1924. I had 1924. Good. </think> "
    "<answer> 1924 </answer>"
)


def test_a_wrong_claim_that_is_mended_counts_as_caught():
    found = reflect(MENDED)
    assert (found.checks, found.waits) == (True, True)
    assert (found.wrong_claims, found.caught, found.false_alarms, found.wrong_in_checks) == (1, 1, 0, 0)


def test_a_check_that_says_good_to_another_value_catches_nothing():
    found = reflect(
        "<think> 67*6=472. Check: 60*6=360, 7*6=42, 360+42=402. I had 472. Good. </think> <answer> 402 </answer>"
    )
    assert (found.checks, found.wrong_claims, found.caught) == (True, 1, 0)


def test_a_right_claim_changed_for_a_wrong_one_is_a_false_alarm():
    found = reflect("<think> 67*6=402. Check: 60*6=360, 7*6=52, 360+52=412. I had 402. Wait, 67*6=412. </think>")
    assert (found.wrong_claims, found.caught, found.false_alarms, found.wrong_in_checks) == (0, 0, 1, 1)


def test_a_search_that_misses_its_target_is_not_wrong_and_not_a_check():
    found = reflect("<think> Let me see. 25+3+7=35 no. 25-3+7=29 no. 25+3*7=46 yes. </think> <answer> 25+3*7 </answer>")
    assert (found.checks, found.wrong_claims) == (False, 0)


def test_announcing_a_check_is_not_checking():
    assert not reflect("<think> Let me work and check. 347*6=2082. </think>").checks
    assert not reflect("<think> I will check that the waiter waits. </think>").checks
    assert not reflect("<think> He pays by check for $20. </think>").checks


def test_words_after_the_think_block_do_not_count():
    assert not reflect("<think> 2+2=4. </think> <answer> Check: 2+2=4 </answer>").checks


@pytest.mark.parametrize(
    ("expression", "value"),
    [("25+3*7", 46), ("2082/6", 347), ("7/2", Fraction(7, 2)), ("10-4-3", 3), ("1/0", None), ("2+", None)],
)
def test_values_are_exact(expression, value):
    assert evaluate(expression) == value


def test_rates_add_up_over_responses():
    found = rates([MENDED, "<think> About 900. </think> <answer> 900 </answer>"])
    assert (found.checks, found.waits, found.wrong_claims, found.caught_share) == (0.5, 0.5, 1, 1.0)
    assert rates([]).caught_share is None
