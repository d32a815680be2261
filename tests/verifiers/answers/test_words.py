import pytest

from verifiers.answers.words import changes_value, in_words


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
    "rest", ["", "cm", "cm squared", "squared units", "more men", "third graders", "negative numbers"]
)
def test_units_and_nouns_do_not_change_a_value(rest: str) -> None:
    assert not changes_value(rest.split())


@pytest.mark.parametrize(
    "rest", ["squared", "third", "third cup", "degrees below zero", "below the zero", "point five", "xy", "out of ten"]
)
def test_some_words_after_a_number_change_its_value(rest: str) -> None:
    assert changes_value(rest.split())
