import pytest

from data.boxes import final_boxes, last_box

BOXES = [
    (r"so \boxed{5}.", "5"), (r"\boxed{3} or rather \boxed{5}", "5"), (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}"),
    (r"\boxed {7}", "7"), (r"\fbox{7}", "7"), (r"\boxed{\{1, 2\}}", r"\{1, 2\}"), (r"\boxed{a \boxed{b}}", "b"),
    (r"\boxed{1} then \boxed{2", "1"), (r"\boxed{}", ""), (r"}}} \boxed{4} }}}", "4"), (r"{{{ \boxed{4}", "4"),
    (r"\left\{ \boxed{4}", "4"), (r"a \\boxed{4}", None), ("no box", None), (r"\boxed{open", None), ("", None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "content"), BOXES)
def test_last_box_returns_content_of_the_last_box(text: str, content: str | None) -> None:
    assert last_box(text) == final_boxes(text) == content


@pytest.mark.parametrize(
    ("text", "content"),
    [
        (r"\boxed{1}, \boxed{2}", "1, 2"), (r"$\boxed{x=1}$ and $\boxed{y=2}$", "x=1, y=2"),
        (r"\[\boxed{1}\quad\text{or}\quad\boxed{2}\]", "1, 2"), (r"\boxed{1}; \boxed{1}", "1"),
        (r"\boxed{1}\,\boxed{2}", "2"), (r"\boxed{1}, so \boxed{2}", "2"), (r"\boxed{1}, \boxed{2} but \boxed{3}", "3"),
    ],
)  # fmt: skip
def test_boxes_that_are_joined_are_one_list(text: str, content: str | None) -> None:
    assert final_boxes(text) == content


def test_a_megabyte_between_boxes_is_not_searched_and_one_of_open_boxes_takes_one_pass() -> None:
    assert final_boxes(r"\boxed{1}," + " " * 1_000_000 + r"\boxed{2}") == "2"
    assert last_box(r"\boxed{" * 150_000) is None
    assert last_box(r"\boxed{" * 150_000 + "5}") == "5"
