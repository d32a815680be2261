from fractions import Fraction

import pytest

from verifiers.number_words import changes_value, factor, in_words


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("zero", 0),
        ("twenty-one", 21),
        ("a hundred and five", 105),
        ("nineteen hundred", 1900),
        ("two hundred thousand and one", 200_001),
        ("one million two thousand", 1_002_000),
        ("one two three", None),
        ("five twenty", None),
        ("twenty twenty", None),
        ("nineteen eighty", None),
        ("two thousand million", None),
        ("two million thousand", None),
        ("zero five", None),
        ("five and", None),
        ("five apples", None),
        ("", None),
    ],
)
def test_words_spell_one_number_or_none(text: str, value: int | None) -> None:
    assert in_words(text) == value


@pytest.mark.parametrize(
    ("rest", "value", "left"),
    [
        (" thirds", Fraction(1, 3), ""),
        (r"\text{ thirds}", Fraction(1, 3), ""),
        (r"\text{ thirds of a cup}", Fraction(1, 3), r"\text{ of a cup}"),
        (" hundred thousand people", 100_000, " people"),
        ("million", 1_000_000, ""),
        (" third graders", 1, " third graders"),
        (" seconds", 1, " seconds"),
        ("", 1, ""),
    ],
)
def test_scales_and_fractions_are_multiplied_in(rest: str, value: Fraction, left: str) -> None:
    assert factor(rest, is_one=False) == (value, left)


def test_one_third_is_a_fraction_and_two_third_is_not() -> None:
    assert factor(" third", is_one=True) == (Fraction(1, 3), "")
    assert factor(" third", is_one=False) == (1, " third") and changes_value(" third")


@pytest.mark.parametrize("rest", [" cm", r"\text{ m/s}^{2}", r"\text{cm}^{-2}", r"\degree", " cm squared", " more men"])
def test_units_do_not_change_a_value(rest: str) -> None:
    assert not changes_value(rest)


@pytest.mark.parametrize(
    "rest", [" squared", " degrees below zero", " point five", " xy", r"\text{!}", r"\text{ - 3 cm}"]
)
def test_some_words_after_a_number_change_its_value(rest: str) -> None:
    assert changes_value(rest)
