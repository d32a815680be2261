import pytest

from data.answer_key import final_answer, final_boxes, last_box

BOXES = [
    (r"so \boxed{5}.", "5"),
    (r"\boxed{3} or rather \boxed{5}", "5"),
    (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}"),
    (r"\boxed {7}", "7"),
    (r"\fbox{7}", "7"),
    (r"\boxed{\{1, 2\}}", r"\{1, 2\}"),
    (r"\boxed{a \boxed{b}}", "b"),
    (r"\boxed{1} then \boxed{2", "1"),
    (r"\boxed{}", ""),
    (r"}}} \boxed{4} }}}", "4"),
    (r"{{{ \boxed{4}", "4"),
    (r"\left\{ \boxed{4}", "4"),
    (r"a \\boxed{4}", None),
    ("no box", None),
    (r"\boxed{open", None),
    ("", None),
]


@pytest.mark.parametrize(("text", "content"), BOXES)
def test_last_box_returns_content_of_the_last_box(text: str, content: str | None) -> None:
    assert last_box(text) == content


@pytest.mark.parametrize(
    ("text", "content"),
    [
        *BOXES,
        (r"\boxed{1}, \boxed{2}", "1, 2"),
        (r"$\boxed{x=1}$ and $\boxed{y=2}$", "x=1, y=2"),
        (r"\[\boxed{1}\quad\text{or}\quad\boxed{2}\]", "1, 2"),
        (r"\boxed{1}; \boxed{1}", "1"),
        (r"\boxed{1}\,\boxed{2}", "2"),
        (r"\boxed{1}, so \boxed{2}", "2"),
        (r"\boxed{1}, \boxed{2} but \boxed{3}", "3"),
    ],
)
def test_boxes_that_are_joined_are_one_list(text: str, content: str | None) -> None:
    assert final_boxes(text) == content


def test_a_megabyte_between_boxes_is_not_searched() -> None:
    assert final_boxes(r"\boxed{1}," + " " * 1_000_000 + r"\boxed{2}") == "2"


def test_a_megabyte_of_open_boxes_takes_one_pass() -> None:
    assert last_box(r"\boxed{" * 150_000) is None
    assert last_box(r"\boxed{" * 150_000 + "5}") == "5"


@pytest.mark.parametrize(
    ("solution", "answer"),
    [
        ("48/2 = <<48/2=24>>24\n#### 1,024 ", "1,024"),
        (r"We get $\boxed{\frac12}$.", r"\frac12"),
        ("  \\left( 3, \\frac{\\pi}{2} \\right)\n", r"\left( 3, \frac{\pi}{2} \right)"),
        ("####", ""),
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
