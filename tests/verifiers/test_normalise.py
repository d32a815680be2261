import pytest

from verifiers.normalise import canonical


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("  42 ", "42"),
        (r"\dfrac12", r"\frac{1}{2}"),
        (r"\frac1{23}", r"\frac{1}{23}"),
        (r"\left( 3, \frac{\pi}{2} \right)", r"(3, \frac{\pi}{2})"),
        ("x² + 1", "x^{2}+1"),
        ("x₁₂", "x_{12}"),
        ("2**3", "2^{3}"),
        ("2 × 3", r"2 \cdot 3"),
        ("3√2", r"3\sqrt{2}"),
        ("90°", r"90\degree"),
        (r"90^{\circ}", r"90\degree"),
        (r"\$5", r"\dollar 5"),
        ("1, 234", "1, 234"),
        ("1,234", "1,234"),
        ("1 1/2", "1 1/2"),
        (r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}", r"\begin{pmatrix}1 \\2 \end{pmatrix}"),
        ("5!", "5!"),
        ("42 .", "42"),
        ("", ""),
    ],
)
def test_spellings_are_normalised(text: str, form: str) -> None:
    assert canonical(text) == form


@pytest.mark.parametrize(
    "text", [r"\frac12 x^2", "(1, 2]", r"5 \text{ cm}^2", "x² ≤ 4", "π/2", "{1, 2}", "The answer is 42."]
)
def test_a_canonical_text_stays_as_it_is(text: str) -> None:
    assert canonical(canonical(text)) == canonical(text)
