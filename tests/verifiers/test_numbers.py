from fractions import Fraction

import pytest

from verifiers.normalise import canonical
from verifiers.numbers import Numeral, equal, numeral, without_unit


def read(text: str) -> Numeral | None:
    return numeral(canonical(text))


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("-5", Fraction(-5), ""),
        ("1,234,567.50", Fraction(2469135, 2), ""),
        (r"-\frac{3}{4}", Fraction(-3, 4), ""),
        (r"-1\frac{1}{2}", Fraction(-3, 2), ""),
        (r"0.3\overline{12}", Fraction(103, 330), ""),  # 0.3121212... = 309/990
        (r"6.02\times 10^{-2}", Fraction(301, 5000), ""),
        (r"\$-5", Fraction(-5), "dollar"),
        ("€5", Fraction(5), "euro"),
        ("5 cubic feet", Fraction(5), "ft3"),
        (r"5\text{ m/s}", Fraction(5), "m/s"),
        ("2.5 thousand", Fraction(2500), ""),
        ("3 hours", Fraction(3), "h"),
        ("(7)", Fraction(7), ""),
        ("-(7)", Fraction(-7), ""),
        ("9" * 400, Fraction(int("9" * 400)), ""),
    ],
)
def test_numbers_are_read_exactly(text: str, value: Fraction, unit: str) -> None:
    assert read(text) == Numeral(value, unit)


@pytest.mark.parametrize(
    "text",
    ["2+3", "2*3", "--5", "1/0", "12,34", "1, 234", "5x", "5m", "x", "", "3 or 4", "5 not 6", "5 plus 3", "1e9999",
     "12_8", "1.2.3", "5 divided by 2", r"\frac{1}{0}", "1/2/3", "10^5"],
)  # fmt: skip
def test_other_texts_are_not_numbers(text: str) -> None:
    assert read(text) is None


@pytest.mark.parametrize(
    ("gold", "answer", "is_equal"),
    [
        ("25%", "25", True),
        ("25%", "0.25", True),
        ("25%", "25%", True),
        ("0.25", "25%", True),
        ("25", "25%", True),
        ("25", "0.25", False),
        ("0.25", "25", False),
        ("5 cm", "5", True),
        ("5", "5 cm", True),
        ("5 cm", "5 centimetres", True),
        ("5 cm", "5 mm", False),
        ("5 cm", "6", False),
    ],
)
def test_units_may_be_missing_but_not_differ(gold: str, answer: str, is_equal: bool) -> None:
    left, right = read(gold), read(answer)
    assert left is not None and right is not None
    assert equal(left, right) is is_equal


@pytest.mark.parametrize(
    ("text", "rest", "unit"),
    [
        (r"12\pi \text{ cm}^2", r"12\pi", "cm2"),
        (r"3\sqrt{2} inches", r"3\sqrt{2}", "in"),
        (r"\$3x", "3x", "dollar"),
        (r"\pi r^2 h", r"\pi r^{2}h", ""),
        ("1-y^2", "1-y^{2}", ""),
        (r"2\pi rh", r"2\pi rh", ""),
    ],
)
def test_units_are_distinguished_from_variables(text: str, rest: str, unit: str) -> None:
    value, name = without_unit(canonical(text))
    assert (value.strip(), name) == (rest, unit)
