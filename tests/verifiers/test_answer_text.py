import pytest

from verifiers.answer_text import answer_part, texts_of


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("42", "42"),
        (r"first \boxed{1}, but \boxed{42}", "42"),
        (r"so \boxed{1} or \boxed{42}", "1, 42"),
        (r"\boxed{1}\quad\text{and}\quad\boxed{2}", "1, 2"),
        (r"\boxed{42}, \boxed{42}", "42"),
        (r"\boxed{1}\;\boxed{42}", "42"),
        ("**Answer: 42**", "42"),
        ("### 42", "42"),
        ("`x + 1`", "x + 1"),
        ("The product is **42**.", "42"),
        ("2**3", "2**3"),
        ("The answer is 42. I hope it is correct.", "42"),
        ("1. 5", "5"),
        ("2. 5", "2. 5"),
        ("The roots are:\n1. 2\n2) 5", "2\n5"),
        ("- 2\n- 5", "2\n5"),
        ("- 2", "- 2"),
        ("- 2\n* 5", "- 2\n* 5"),
        ("Therefore $x<3$.", "x<3"),
        (r"Therefore \(x<3\) is the solution", "x<3"),
        ("Not $x<3$", "Not $x<3$"),
        ("It is more than $3$", "It is more than $3$"),
        ("$x<3$ or $x>5$", "$x<3$ or $x>5$"),
        ("2 + $x$", "2 + $x$"),
        ("~~7~~", ""),
        ("~~7~~ 8", "8"),
        ("5~~cm", "5~~cm"),
        ("1~~or~~2", "1~~or~~2"),
        ("\u200e4\u20602\ufeff", "42"),
        ("\u202e24", "\u202e24"),
    ],
)
def test_the_part_of_a_text_that_states_the_answer(text: str, answer: str) -> None:
    assert answer_part(text) == answer


def test_a_box_is_whole_and_a_sentence_has_a_part() -> None:
    assert texts_of(r"\boxed{5 \text{ cm}} or so") == (r"5 \text{ cm}", r"5 \text{ cm}")
    assert texts_of("Thus $x = 3$.") == ("Thus $x = 3$.", "x = 3")
