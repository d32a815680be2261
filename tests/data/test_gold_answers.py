import pytest

from data.boxes import final_answer


@pytest.mark.parametrize(
    ("solution", "answer"),
    [
        ("48/2 = <<48/2=24>>24\n#### 1,024 ", "1,024"),
        (r"We get $\boxed{\frac12}$.", r"\frac12"),
        ("  \\left( 3, \\frac{\\pi}{2} \\right)\n", r"\left( 3, \frac{\pi}{2} \right)"),
        ("####", ""),
        ("#### Step 1\n$x + 1 = 3$\n\n#### Conclusion\nSo $x = \\boxed{2}$.", "2"),  # headings of Markdown
        ("So \\boxed{2}.\n#### A check\n$2 + 1 = 3$, as it should be.", "2"),
        ("\\boxed{3} was wrong\n#### 2", "2"),
        (r"There are $\boxed 2$ of them, not 3.", "2"),  # MATH has some without braces
        (r"so \(x = \boxed 12\), as \boxed{1} was", "1"),
        ("\\boxed{1} was wrong: $\\boxed\n 12$.", "12"),
        (r"\(\boxed \frac{1}{2}\)", r"\frac{1}{2}"),
        (r"It is \fbox 7.", "7"),
        (r"It is $\boxed3$ m.", "3"),
        (r"a \\boxed 4", r"a \\boxed 4"),
        (r"\boxed {open", r"\boxed {open"),
        (r"\boxed", r"\boxed"),
    ],
)
def test_final_answer_is_extracted_from_a_solution(solution: str, answer: str) -> None:
    assert final_answer(solution) == answer
