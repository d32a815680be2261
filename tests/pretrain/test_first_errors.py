"""bench/first_errors.py names the first error of a response in the form of the embedded base."""

from random import Random

import pytest

from bench.first_errors import Elementary, first_error, first_error_of_search
from data.families import FAMILIES, LEVELS, draw
from reasoner.pretrain.solutions import STYLES, Working

QUESTION = "What is 12 * 14 + 100?"
CASES = {
    "12*14=168. Check: 10*10=100, 10*4=40, 2*10=20, 2*4=8, 100+40=140, 140+20=170, 170+8=178. "
    "I had 1... Wait, 12*14=178. 178+100=278. Check: 178+100=278. I had 278. Good, 278.": "elementary step",
    "12*13=156. Check: 10*10=100, 10*3=30, 2*10=20, 2*3=6, 100+30=130, 130+20=150, 150+6=156. "
    "I had 156. Good, 156.": "operand not from the problem",
    "12*14=158. Check: 10*10=100, 10*4=40, 2*10=20, 2*4=8, 100+40=140, 140+20=160, 160+8=168. "
    "I had 158. Good, 158.": "comparison",
    "12*14=158. Check: 10*10=100, 10*4=40, 2*10=20, 2*4=8, 100+40=140, 140+20=160, 160+8=168. "
    "I had 1... Wait, 12*14=178.": "correction",
    "12*14=158. Check: 10*10=100, 10*4=40, 2*4=8, 100+40=140, 140+8=148. "
    "I had 1... Wait, 12*14=148.": "part of a check lost or wrong",
    "12*14=158. 158+100=258.": "step without a check",
    "12*14=168. Check: 10*10=100, 10*4=40, 2*10=20, 2*4=8, 100+40=140, 140+20=160, 160+8=168. "
    "I had 168. Good, 168.": "other steps than the problem needs",
    "About 300.": "no step",
}


@pytest.mark.parametrize("text", CASES, ids=CASES.values())
def test_the_first_error_has_its_name(text):
    assert first_error(f"<think> Let me work and check. {text} </think>", QUESTION, Elementary()) == CASES[text]


@pytest.mark.parametrize(
    ("difference", "num_wrong"),
    [
        ("2082-1800=1082-800=282", 0),
        ("2082-1800=1182-800=382", 1),
        ("2082-1800=1182-800=282", 2),
        ("2082-1800=1082-700=382", 1),
        ("2082-1800=1082-800=382", 1),
    ],
)
def test_every_link_of_a_difference_by_digits_is_read(difference, num_wrong):
    elementary = Elementary()
    text = f"2082/6=347. Check: 6*300=1800, {difference}, 6*40=240. I had 3... Wait, 2082/6=340."
    error = first_error(text, "Solve 6 * x = 2082 for x.", elementary)
    assert error == ("elementary step" if num_wrong else "part of a check lost or wrong")
    assert elementary.all == {"*": 2, "- one digit of a longer number": 1, "- a number of 1 significant digits": 1}
    assert elementary.wrong.total() == num_wrong


@pytest.mark.parametrize("working", [Working(), Working(one_digit=True)])
def test_a_checked_solution_with_a_careless_check_has_a_comparison_error_and_a_right_one_has_none(working):
    rng, names = Random(0), set()
    elementary = Elementary()
    for _ in range(1500):
        draft = draw(rng.choice([family for family in FAMILIES if family != "countdown"]), rng.choice(LEVELS), rng)
        thought, answer = STYLES["check"](draft, rng, working)
        error = first_error(f"<think> {thought} </think>", draft.question, elementary)
        names.add((error, answer == draft.answer))
    # Where the steps are right the caller knows that the answer is; a slip in a step without a check is not written.
    assert names == {("comparison", False), ("other steps than the problem needs", True)}
    assert sum(elementary.all.values()) > 5_000
    assert not sum(elementary.wrong.values())


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("18+5-7: 23, 16, want 16 yes.", "search left too early or without a candidate"),
        ("2*5*7: 10, 77, want no.", "value of a candidate"),
        ("18+5-7: 23, 15, want 16 yes.", "value of a candidate"),
        ("18+5-7: 23, , want 16 yes.", "value of a candidate"),
        ("18+5-7: 23, 16, want 1 no.", "comparison"),
    ],
)
def test_the_first_error_of_a_search_has_its_name(text, error):
    question = "Make 16 from 18, 7 and 5, each used once, with + and -."
    assert first_error_of_search(f"<think> Let me work and check. {text} </think>", question) == error
