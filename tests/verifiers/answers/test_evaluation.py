"""The test for zero: identities of radicals and roots of unity, and differences too small for a fixed precision."""

import pytest

from tests.verifiers.answers.test_expressions import tree
from verifiers.answers.evaluation import is_zero, separation_bits, sign
from verifiers.answers.rationals import NoValueError, TooLargeError
from verifiers.answers.values import subtract

IDENTITIES = [
    (r"\sqrt{2}+\sqrt{3}", r"\sqrt{5+2\sqrt{6}}"),
    (r"\sqrt[3]{20+14\sqrt2}+\sqrt[3]{20-14\sqrt2}", "4"),
    (r"\sin 18°", r"\frac{\sqrt5-1}{4}"),
    (r"\tan 15°", r"2-\sqrt3"),
    (r"\cos\frac{2\pi}{7}+\cos\frac{4\pi}{7}+\cos\frac{6\pi}{7}", "-1/2"),
    (r"e^{i\pi/3}", r"\frac12+\frac{\sqrt3}{2}i"),
    (r"\log_2 3", r"\frac{\ln 3}{\ln 2}"),
    (r"4\arctan(1/5)-\arctan(1/239)", r"\pi/4"),
]
NEAR = [
    (r"\sqrt{2}+\sqrt{3}", r"\sqrt{5+2\sqrt{6}}+10^{-300}"),
    ("1+10^{-200}", "1"),
    (r"\tanh 1000", "1"),
    ("e^{200}", "e^{200}+1"),
    (r"100!\sqrt2", r"100!\sqrt2+1"),
    ("2^{9999}", "2^{9999}+1"),
    (r"\sin(10^{-200})", "0"),
    ("e^{-999}", "0"),
]


@pytest.mark.parametrize(("left", "right"), IDENTITIES)
def test_equal_values_differ_by_zero(left: str, right: str) -> None:
    assert is_zero(subtract(tree(left), tree(right))) is True


@pytest.mark.parametrize(("left", "right"), NEAR)
def test_small_differences_are_not_zero(left: str, right: str) -> None:
    assert is_zero(subtract(tree(left), tree(right))) is False


def test_separation_bound_of_a_radical_is_below_its_value() -> None:
    """99 - 70 sqrt 2 is about 2^-7.6; its bound must be smaller, and needs no more than the degree times its size."""
    bits = separation_bits(tree(r"99-70\sqrt2"))
    assert bits is not None and 7.6 < bits < 30


def test_transcendental_values_have_no_separation_bound() -> None:
    assert separation_bits(tree(r"\pi - e")) is None


def test_signs_of_real_numbers() -> None:
    assert sign(tree(r"99-70\sqrt2")) == 1
    assert sign(tree(r"\sqrt2\sqrt3-\sqrt6")) == 0
    assert sign(tree("i")) is None


@pytest.mark.parametrize("text", ["1/0", r"\ln 0", "0^0", "(-1)!"])
def test_poles_have_no_value(text: str) -> None:
    with pytest.raises(NoValueError):
        is_zero(tree(text))


@pytest.mark.parametrize("text", ["9^{9^9}", "99999!", "e^{e^{99}}"])
def test_values_over_the_limits_are_refused(text: str) -> None:
    with pytest.raises(TooLargeError):
        is_zero(tree(text))
