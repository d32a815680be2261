"""The value that a sentence states, and sentences that state none."""

import pytest

from verifiers.answer_text import stated_value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("So that leaves 24-6 = 18 students remaining.", "18 students remaining"),
        ("There are 75 roses * 8 thorns/rose = 600 thorns", "600 thorns"),
        ("His change is $10 - $6 = $4.", "$4"),
        ("In total, Mary got 300 + 312 = 612 slices of cheese that were left.", None),
        ("He gets 430 chips because 10 x 43 = 430", None),
        ("The number of ways is 12.", "12"),
        ("The 4th odd prime is 11.", "11"),
        ("Since $a$ and $b$ are coprime, $a+b=468$.", "a+b=468"),
        (r"The answer is $\\min(x,1)$.".replace("\\\\", "\\"), r"\min(x,1)"),
        ("Therefore $x<3$ is the solution", "x<3"),
        ("n = 13 is the smallest such integer", "n = 13"),
        ("The solutions are x = 1 and x = 2.", "x = 1 and x = 2"),
        ("There are no real solutions.", "no real solutions"),
        ("Answer: 12", "12"),
        ("We get log x = 2.", "log x = 2"),
        ("The equation x^2 = 144 has two solutions", "x^2 = 144"),
        ("The answer is 12 or 13.", "12 or 13"),  # both values, which the grammar compares
    ],
)
def test_a_sentence_states_the_value_behind_its_last_equals_sign_or_verb_of_being(text: str, value: str | None) -> None:
    assert stated_value(text) == value


@pytest.mark.parametrize(
    "text",
    """I think it is 12; The answer may be 12; Not 12 but 13; It isn't 12; 12 or so; either 12 it is or 13; Is it 12?
    The answer should be 12; it would be 12; If x = 12 then it works; one solution is 12; unless it is 12
    my guess is 12; Suppose x = 12; x = 12 is extraneous; The lower bound is 12; another root is 12
    The minimum is 2, attained at x = 12; Its square is 144; The square of it is 144; 2x is 12
    The answer is 12 less than the total
    half of it = 12; The answer is 12 more than 5; 12 times as many are there; The perimeter is 468 and the area is 500
    The largest root is 12 and the smallest is 3; page 12; the first 12 terms; see equation (12); The hint: 12
    It takes 12 minutes; he exceeds 12; 6, that is 5; $1<m<2$, i.e. $1<m<3$""".replace("\n", ";").split(";"),
)
def test_doubt_denial_choice_and_two_candidates_state_nothing(text: str) -> None:
    assert stated_value(text.strip()) is None
