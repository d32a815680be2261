from fractions import Fraction

import pytest

from verifiers.countdown import equivalent, evaluate, same

GOLD = "25+3*7"  # 46 of 25, 3 and 7


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ("25+3*7", "correct"),
        ("7*3 + 25", "correct"),
        ("(25)+(3*7)", "correct"),
        ("25 + 3 * 7 = 46", "correct"),
        ("-3*7", "wrong"),
        ("-(0-25)", "wrong"),
        (r"$25 + 3 \times 7$", "correct"),
        (r"\boxed{25 + 3 \cdot 7}", "correct"),
        ("25 + 3×7.", "correct"),
        ("25+21", "wrong"),
        ("46", "wrong"),
        ("25+3*7+0", "wrong"),
        ("25+3*7*1", "wrong"),
        ("25+3+3+7+7+1", "wrong"),
        ("25*3-7", "wrong"),
        ("25+7*3-3+3", "wrong"),
        ("25 + 3*7 = 47", "unparsable"),
        ("25 + 3*7 = 40+6", "unparsable"),
        ("25 + 3*7 = 46 = 46", "unparsable"),
        ("25+3*7 or 46", "unparsable"),
        ("25+3(7)", "unparsable"),
        ("25+3**7", "unparsable"),
        ("25//3+7", "unparsable"),
        ("25+/3", "unparsable"),
        ("25+(3*7", "unparsable"),
        ("25/(7-7)+3", "unparsable"),
        ("2_5+3*7", "unparsable"),
        ("25.0+3*7", "unparsable"),
        ("", "unparsable"),
        ("__import__('os').system('true')", "unparsable"),
        ("٢٥+3*7", "unparsable"),
        ("(" * 100 + "25" + ")" * 100 + "+3*7", "unparsable"),
        ("9" * 50, "refused"),
        ("1+" * 5000 + "1", "refused"),
    ],
)
def test_answers_to_a_countdown(answer: str, verdict: str) -> None:
    assert equivalent(GOLD, answer).verdict == verdict


def test_values_are_exact() -> None:
    assert evaluate("1/3+1/3+1/3").value == 1
    assert evaluate("-2*3+4/8").value == Fraction(-11, 2)
    assert evaluate("8-3-2").value == 3 and evaluate("24/4/2").value == 3
    assert evaluate("2*(3+4)*(5-1)").numbers == (1, 2, 3, 4, 5)


def test_a_number_used_twice_in_the_gold_must_be_used_twice() -> None:
    assert equivalent("5*5+2", "2+5*5").verdict == "correct"
    assert equivalent("5*5+2", "5*2+2+5+5*2").verdict == "wrong"


def test_expressions_of_equal_value_share_a_vote() -> None:
    assert same("25-3", "11*2") and same("11*2", "25-3")
    assert not same("25-3", "25+3")
    assert same("no idea ", " no idea") and not same("no idea", "25")


def test_a_gold_that_is_not_an_expression_raises() -> None:
    with pytest.raises(ValueError, match="is not part of an expression"):
        equivalent("forty-six", "46")
