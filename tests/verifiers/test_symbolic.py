import pytest

from verifiers.normalise import canonical
from verifiers.symbolic import compare, expression


@pytest.mark.parametrize(
    ("gold", "answer", "verdict"),
    [
        ("x^2-1", "(x-1)(x+1)", "correct"),
        (r"\sin(x)^2+\cos(x)^2", "1", "wrong"),  # a number is no expression with a letter
        (r"\frac{1}{x-1}-\frac{1}{x+1}", r"\frac{2}{x^2-1}", "correct"),
        (r"\sqrt{3+2\sqrt{2}}", r"1+\sqrt{2}", "correct"),
        (r"\pi", "3.14159265358979323846", "wrong"),
        ("10^{-30}", "0", "wrong"),
        ("10^{-30}", "2 \\cdot 10^{-30}", "wrong"),
        ("x", "y", "wrong"),
        ("x+y=1", "x+y=2", "wrong"),
        ("x+y=1", "0=0", "wrong"),
        (r"i^2", "-1", "correct"),
        ("x", "((", "unparsable"),
        ("x", "__import__('os')", "unparsable"),
        ("x", "x; y", "unparsable"),
    ],
)
def test_expressions_are_compared_by_value(gold: str, answer: str, verdict: str) -> None:
    assert compare(canonical(gold), canonical(answer))[0] == verdict


def test_decimals_are_exact() -> None:
    assert str(expression("0.1x")) == "x/10"
    assert compare("0.1x+0.2x", "0.3x") == ("correct", "numeric")


def test_python_is_never_evaluated(tmp_path) -> None:
    for text in (f"open('{tmp_path}/x','w')", f"[open(f) for f in ['{tmp_path}/x']]", "exec(chr(49))"):
        compare("x", canonical(text))
    assert not list(tmp_path.iterdir())
