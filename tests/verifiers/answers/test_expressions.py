"""The grammar of expressions: values worked out by hand, and notation that is ambiguous."""

from fractions import Fraction

import pytest

from verifiers.answers.expressions import expression
from verifiers.answers.rationals import rational
from verifiers.answers.syntax import UnreadableError
from verifiers.answers.tokens import tokenize
from verifiers.answers.values import Node, is_numeral, is_undone, signs


def tree(text: str) -> Node:
    return expression(tokenize(text))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r"1\frac{1}{2}", "3/2"),
        ("-1 1/2", "-3/2"),
        ("3½", "7/2"),
        ("2^{-3}", "1/8"),
        ("-2^2", "-4"),
        ("2^2^3", "256"),
        ("10 - 2 - 3", "5"),
        ("12/2/3", "2"),
        ("C(10,3)", "120"),
        (r"\binom{5}{2}", "10"),
        (r"{10 \choose 3}", "120"),
        ("10!/(3!7!)", "120"),
        ("1.5e-3", "3/2000"),
        ("6.02 x 10^3", "6020"),
        (r"0.1\overline{6}", "1/6"),
        (r"\sqrt{49/4}", "7/2"),
        (r"\sqrt[3]{-8}", "-2"),
        ("(-8)^{1/3}", "-2"),
        (r"\log_2 8", "3"),
        (r"\left|2-5\right|", "3"),
        (r"\lfloor 7/2 \rfloor", "3"),
        ("25%", "1/4"),
        (r"{3 \over 8}", "3/8"),
        ("1 000 000", "1000000"),
        ("√16", "4"),
    ],
)
def test_rational_values_are_exact(text: str, value: str) -> None:
    assert rational(tree(text)) == Fraction(value)


@pytest.mark.parametrize("text", ["1/2x", r"\sin x/2", "2 3", "5 cm", "f(3)", "(1", "1)", "", "+", "x^", r"\frac{1}"])
def test_ambiguous_or_incomplete_notation_is_unreadable(text: str) -> None:
    with pytest.raises(UnreadableError):
        tree(text)


def test_signs_that_go_together_and_independent_ones() -> None:
    assert len(signs(tree(r"1\pm\sqrt2"))) == 2
    assert len(signs(tree(r"\pm 1 \mp \sqrt2"))) == 2
    assert len(signs(tree(r"\pm 1 \pm \sqrt2"))) == 4


@pytest.mark.parametrize("text", ["5", "-3/4", "1 1/2", "2.5", r"3\times 10^5", "25%", "90°"])
def test_a_written_number_is_a_numeral(text: str) -> None:
    assert is_numeral(tree(text)) and not is_undone(tree(text))


@pytest.mark.parametrize("text", ["2+3", r"2\cdot 3", "10/(1+1)", r"\frac{4-2}{3}"])
def test_arithmetic_is_undone(text: str) -> None:
    assert is_undone(tree(text)) and not is_numeral(tree(text))
