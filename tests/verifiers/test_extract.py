import pytest

from verifiers.extract import EXTRACTORS, extract_answer

FORM = "<think>1 then 2</think> <answer>{}</answer>"


@pytest.mark.parametrize(
    ("response", "extract", "answer"),
    [
        (FORM.format(" 42 "), "strict", "42"),
        (FORM.format(r"It is \boxed{42}."), "strict", "42"),
        (FORM.format(r"\boxed{1} or rather \boxed{42}"), "strict", "42"),
        (FORM.format(r"\boxed{ }"), "strict", None),
        (FORM.format("42") + "x", "strict", None),
        (r"so \boxed{42}", "strict", None),
        (FORM.format("42") + "x", "lenient", "42"),
        ("<answer>1</answer><answer>2</answer>", "lenient", "2"),
        ("<answer>1</answer> then <answer>2", "lenient", "1"),
        (r"<answer> </answer> \boxed{7} 8", "lenient", "7"),
        (r"first \boxed{7}, then 8", "lenient", "7"),
        ("we get 7 and then -8.", "lenient", "-8"),
        ("nothing at all", "lenient", None),
        (r"\boxed{\frac{1}{2}}", "boxed", r"\frac{1}{2}"),
        ("<answer>3</answer>", "boxed", None),
        ("costs $1,234.50.", "last-number", "1,234.50"),
        ("10-5", "last-number", "5"),
        ("x = -5", "last-number", "-5"),
        ("it is 3/4, or 75%", "last-number", "75%"),
        ("it is 3/4", "last-number", "3/4"),
        ("in all .5", "last-number", ".5"),
        ("48/2=24\n#### 1,024\n", "gsm8k", "1,024"),
        ("#### 1\n#### 2 \nmore", "gsm8k", "2"),
        ("42", "gsm8k", None),
    ],
)
def test_each_extraction_finds_its_answer(response: str, extract: str, answer: str | None) -> None:
    assert extract_answer(response, extract).answer == answer


def test_the_form_is_reported_under_every_extraction() -> None:
    assert all(extract_answer(FORM.format("#### 42"), extract).well_formed for extract in EXTRACTORS)
    assert not any(extract_answer("#### 42", extract).well_formed for extract in EXTRACTORS)


def test_the_think_block_is_never_the_answer() -> None:  # trap 38
    assert extract_answer(r"<think>\boxed{42} <b>42</b></think> <answer>7</answer>").answer == "7"


def test_a_missing_answer_has_a_reason() -> None:
    assert extract_answer("42").reason == "no <think>"
    assert extract_answer("no digits", "last-number").reason == "no answer (last-number)"
    assert extract_answer("42", "last-number").reason == ""


def test_an_unknown_extraction_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="'best'; known are strict, lenient, boxed, last-number, gsm8k"):
        extract_answer("42", "best")


@pytest.mark.parametrize("unit", ["<answer>", "</answer>", r"\boxed{", "{", "}", "9", "9,", "1/", "#", r"\\", "<"])
def test_a_long_run_of_anything_is_scanned_once(unit: str) -> None:
    response = unit * (200_000 // len(unit))
    for extract in EXTRACTORS:
        extract_answer(response, extract)
