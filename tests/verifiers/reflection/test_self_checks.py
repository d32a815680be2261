"""Self-checks and what they catch, by the published rule."""

import json
import re
from fractions import Fraction
from pathlib import Path

import pytest

from verifiers.equations import equations, evaluate, plain
from verifiers.reflection import rates, reflect

MENDED = (
    "<think> Let me work and check. 347*6=2072. Check: 300*6=1800, 40*6=240, 7*6=42, 1800+240=2040, 2040+42=2082. "
    "I had 2072. Wait, 347*6=2082. 2082-158=1924. Check: 2082-100=1982, 1982-50=1932, 1932-8=1924. I had 1924. Good. "
    "</think> <answer> 1924 </answer>"
)


def test_a_corrected_wrong_claim_counts_as_caught():
    counts = reflect(MENDED)
    assert (counts.has_self_check, counts.has_wait) == (True, True)
    assert (counts.wrong_claims, counts.errors_caught, counts.false_alarms, counts.errors_in_checks) == (1, 1, 0, 0)


def test_a_right_claim_changed_for_a_wrong_one_is_a_false_alarm():
    counts = reflect("<think> 67*6=402. Check: 60*6=360, 7*6=52, 360+52=412. I had 402. Wait, 67*6=412. </think>")
    assert (counts.wrong_claims, counts.errors_caught, counts.false_alarms, counts.errors_in_checks) == (0, 0, 1, 1)


def test_a_search_that_misses_its_target_is_not_wrong_and_not_a_check():
    counts = reflect(
        "<think> Let me see. 25+3+7=35 no. 25-3+7=29 no. 25+3*7=46 yes. </think> <answer> 25+3*7 </answer>"
    )
    assert (counts.has_self_check, counts.wrong_claims) == (False, 0)


@pytest.mark.parametrize(
    ("ending", "caught"),
    [
        ("So 67*6 = 402.", 1),
        ("I had 472. Wait, it is 402.", 1),
        ("So it is 402, not 472.", 1),
        ("I had 472. Wait, it is 412.", 0),
        ("I had 472. Good.", 0),
        ("So 472.", 0),
        ("", 0),
    ],
)
def test_a_claim_is_caught_only_where_its_right_value_takes_its_place(ending, caught):
    counts = reflect(f"<think> 67*6=472. Let me verify: 60*6=360, 7*6=42, 360+42=402. {ending} </think>")
    assert (counts.has_self_check, counts.wrong_claims, counts.errors_caught) == (True, 1, caught)


def test_a_check_of_the_same_expression_counts_unless_it_accepts_the_error():
    assert reflect("<think> 7*6=44. Check: 7*6=42. So we go on. </think>").errors_caught == 1
    assert reflect("<think> 7*6=44. Check: 7*6=42. I had 44. Good. </think>").errors_caught == 0


def test_a_right_value_that_is_used_without_a_word_is_replaced_and_not_caught():
    waved = "<think> 67*6=472. Check: 60*6=360, 7*6=42, 360+42=402. I had 472. Good. "
    for rest, replaced in [
        ("402+8=410. </think>", 1),
        ("</think> <answer> 402 </answer>", 1),
        ("472+8=480. </think>", 0),
    ]:
        counts = reflect(waved + rest)
        assert (counts.wrong_claims, counts.errors_caught, counts.errors_replaced_silently) == (1, 0, replaced)
    assert reflect(MENDED).errors_replaced_silently == 0


def test_correcting_one_claim_does_not_correct_another():
    """A correct claim that is changed and restored is no catch, and does not make up for one that stays wrong."""
    counts = reflect("<think> 3*4=12. 5*5=26. Check: 2*2=4. So 3*4=13. 3*4=12. </think>")
    assert (counts.wrong_claims, counts.errors_caught, counts.false_alarms) == (1, 0, 0)


def stated(text):
    return [(e.expression, e.value_text, e.is_correct) for e in equations(plain(text))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(12+3)*2 = 30", [("(12+3)*2", "30", True)]),
        ("(so 3+4=8)", [("3+4", "8", False)]),
        ("(3+4=7)", [("3+4", "7", True)]),
        ("2.5*4=10", [("2.5*4", "10", True)]),
        ("0.1+0.2=0.3 and 0.1+0.2=0.31", [("0.1+0.2", "0.3", True), ("0.1+0.2", "0.31", False)]),
        ("10/3=3.33, 10/3=3.34, 10/3=3", [("10/3", "3.33", True), ("10/3", "3.34", True), ("10/3", "3", False)]),
        ("2/3=0.67, 2/3=0.66, 2/3=0.65", [("2/3", "0.67", True), ("2/3", "0.66", True), ("2/3", "0.65", False)]),
        ("1,200 + 300 = 1,500.", [("1200+300", "1500", True)]),
        (
            "\\(3 \\times 4 = 12\\) and 6 ÷ 2 = 3 and 3 x 5 = 15",
            [("3*4", "12", True), ("6/2", "3", True), ("3*5", "15", True)],
        ),
        ("$5*3 = $15", [("5*3", "15", True)]),
        ("- 3+4=7\n- **5+6=11**", [("3+4", "7", True), ("5+6", "11", True)]),
        ("5-8=-3", [("5-8", "-3", True)]),
        ("3+4=7=7", [("3+4", "7", True)]),
    ],
)
def test_equations_are_read_in_the_spellings_of_many_models(text, expected):
    assert stated(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "2+3=10-5", "x - 3 + 4 = 8", "2x + 3 = 9", "3*30 = 30 + m", "1/10=10%", "158 * 1 1/2 = 237",
        "650 000/2 = 325 000", "17/3 = 5 and 2/3", "63/5 = 12 remainder 3", "2^3+1 = 9", "5/0 = 5", "3 = 3",
    ],
)  # fmt: skip
def test_a_piece_of_something_longer_is_not_an_equation(text):
    assert stated(text) == []


@pytest.mark.parametrize(
    "hostile", ["1" * 20_000, "1+" * 10_000, "(1+" * 6_000, "1+1=2 " + "check " * 10_000, "- " * 10_000]
)
def test_hostile_text_has_no_self_checks(hostile):
    assert not reflect(hostile).has_self_check


SOLUTIONS = Path(__file__).parents[4] / "shared/benchmarks/gsm8k_train_2000.jsonl"


@pytest.mark.skipif(not SOLUTIONS.exists(), reason="the real solutions are not here")
def test_human_solutions_have_correct_equations_and_no_checks():
    """Of the 5,223 equations in all 2,000 solutions, 12 are wrong or misread, and two solutions check themselves."""
    texts = [re.sub(r"<<.*?>>", "", json.loads(line)["solution"]) for line in SOLUTIONS.open()][:500]
    stated_equations = [equation for text in texts for equation in equations(plain(text))]
    assert len(stated_equations) > 1_200
    assert sum(not equation.is_correct for equation in stated_equations) <= 5
    assert rates([*map(reflect, texts)]).self_check_rate == 0


def test_announcing_a_check_is_not_checking():
    assert not reflect("<think> Let me work and check. 347*6=2082. </think>").has_self_check
    waiter = reflect("<think> 2+2=4. I will check that the waiter waits. </think>")
    assert (waiter.has_self_check, waiter.has_wait) == (False, False)
    assert not reflect("<think> He pays by check for $20. </think>").has_self_check


def test_words_after_the_think_block_do_not_count():
    assert not reflect("<think> 2+2=4. </think> <answer> Check: 2+2=4 </answer>").has_self_check


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("25+3*7", 46), ("2082/6", 347), ("7/2", Fraction(7, 2)), ("10-4-3", 3), ("2*(3+4)", 14), ("1/0", None),
        ("2+", None), ("(2", None),
    ],
)  # fmt: skip
def test_values_are_exact(expression, value):
    assert evaluate(expression) == value


def test_rates_add_up_over_responses():
    totals = rates([*map(reflect, [MENDED, "<think> About 900. </think> <answer> 900 </answer>"])])
    assert (totals.self_check_rate, totals.wait_rate, totals.wrong_claims, totals.errors_caught_share) == (
        0.5,
        0.5,
        1,
        1.0,
    )
    assert rates([]).errors_caught_share is None


@pytest.mark.timeout(60)
def test_a_hundred_thousand_wrong_claims_are_read_in_one_pass():
    """Searching the rest of the text for each claim took minutes."""
    counts = reflect("1+1=2. Check: 2+2=4. " + "".join(f"wait, {i}+1={i}. check " for i in range(100_000)))
    assert counts.wrong_claims > 5_000 and counts.errors_caught == 0
