import pytest

from verifiers.limits import too_big, too_costly
from verifiers.normalise import canonical


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x" * 2001, "over 2000 characters"),
        ("1" * 501, "a number of over 500 digits"),
        ("(" * 41 + "1" + ")" * 41, "brackets over 40 deep"),
        ("(" * 40 + "1" + ")" * 40, ""),
        ("()" * 500, ""),
        ("1" * 500, ""),
    ],
)
def test_text_beyond_a_size_limit_is_refused_with_reason(text: str, reason: str) -> None:
    assert too_big(text) == reason


@pytest.mark.parametrize(
    "text",
    ["9**9**9", "9^9^9", "9^{9^9}", "9^{9^{9^9}}", "2^{10^{5}}", "x^{99999}", "2^(-99999)", "(10!)!", "10!!", "9999!",
     "(9999)!", r"\binom{99999}{2}", "2^{3^{4^{5}}}", "((2)^{9})^{9999}"],
)  # fmt: skip
def test_costly_expressions_are_refused(text: str) -> None:
    assert too_costly(canonical(text)) != ""


@pytest.mark.parametrize(
    "text",
    [
        "2^{10}", "2^{2^{10}}", "x^{n^2}", "10^{100}", "1.5^{365}", "(n+1)!", "20!", r"\binom{50}{25}", "e^{x^2}",
        "2^{9999}",
    ],
)  # fmt: skip
def test_ordinary_powers_are_not_refused(text: str) -> None:
    assert too_costly(canonical(text)) == ""
