from fractions import Fraction

import pytest

from verifiers.normalise import numeral


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("42", Fraction(42)),
        ("-5", Fraction(-5)),
        ("1,234,567.50", Fraction(2469135, 2)),
        ("0.125", Fraction(1, 8)),
        ("007", Fraction(7)),
        ("9" * 400, Fraction(int("9" * 400))),
    ],
)
def test_plain_numbers_are_read_exactly(text: str, value: Fraction) -> None:
    assert numeral(text) == value


@pytest.mark.parametrize(
    "text",
    ["2+3", "--5", "1/2", "12,34", "1, 234", "1234,567", "5x", "x", "", "-", ".", "5.", ",123", "1e9", "12_8", "1.2.3",
     "٣", "9" * 501],
)  # fmt: skip
def test_other_texts_are_left_to_the_grammar(text: str) -> None:
    assert numeral(text) is None
