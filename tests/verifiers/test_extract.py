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
        (FORM.format(r"\{\}"), "strict", r"\{\}"),
        ("\\boxed{\u200b}", "boxed", None),
        ("\\boxed{4}，\\boxed{7}", "boxed", "4, 7"),
        ("\\boxed{4} 或 \\boxed{7}", "boxed", "4, 7"),
        ("\\boxed{4}。\\boxed{7}", "boxed", "7"),
        ("\\boxed{...} 8", "lenient", "8"),
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


LAST_NUMBERS = [  # what the last number of a text is, whole
    ("x = \u22127", "\u22127"),
    ("$x = - 7$", "- 7"),
    ("It is minus 7.", "minus 7"),
    (r"$-\frac{3}{4}$", r"-\frac{3}{4}"),
    ("$14{,}916$", "14{,}916"),
    (r"so $14\,916$.", r"14\,916"),
    ("about 14'916 people", "14'916"),
    ("(about 1,234)", "1,234"),
    ("10 000 of them", "10 000"),
    ("It is 1.5e3.", "1.5e3"),
    (r"$2\times10^5$", r"2\times10^5"),
    ("2 1/2 cups", "2 1/2"),
    (r"$2\frac12$", r"2\frac12"),
    ("2\u00bd", "2\u00bd"),
    (r"$\frac57$.", r"\frac57"),
    (r"$0.1\overline6$", r"0.1\overline6"),
    ("0.333...", "0.333..."),
    ("3:4", "3:4"),
    ("in the ratio 3 : 4.", "3 : 4"),
    (r"is $2\sqrt{3}$", r"2\sqrt{3}"),
    (r"$3+\sqrt2$", r"3+\sqrt2"),
    ("3+4i", "3+4i"),
    (r"$5\pi$", r"5\pi"),
    ("2^{10}", "2^{10}"),
    ("x^2", "x^2"),
    ("so 5x", "5x"),
    (r"75\%", r"75\%"),
    ("7!", "7!"),
    (r"\textcolor{red}{5}", "5"),
    (r"4\\ \hspace{3cm}", "4"),
    ("９", "９"),
    ("3*4", "3*4"),
    # near misses: another number stands beside it, or no number
    ("10-5", "5"),
    ("pages 3 - 7", "7"),
    ("Covid-19", "19"),
    ("48+24=72", "72"),
    ("step 2: 5 apples", "5"),
    ("5, 6, 7", "7"),
    ("1, 234", "234"),
    ("room A 5", "5"),
    ("5 cm", "5"),
    ("$2$ $5$", "5"),
    ("x_1 = 5, x_2 = 8", "8"),
    ("2\n5", "5"),
    ("/5", "5"),
    ("(3, -4)", "-4"),
    ("No. 7 of them", "7"),
    ("你有5个", "5"),
]


def test_the_last_number_is_the_whole_number_that_grading_reads() -> None:
    results = [(text, extract_answer(text, "last-number").answer) for text, _ in LAST_NUMBERS]
    assert results == LAST_NUMBERS


@pytest.mark.parametrize("extract", ["lenient", "last-number"])
@pytest.mark.parametrize(
    ("response", "answer"),
    [
        ("3 + 4 = 7. The answer is (B).", "(B)"),
        ("Answer: C", "C"),
        ("The answer is (3,-4).", "(3,-4)"),
        ("The answers are 2 and 5.", "2 and 5"),
        (r"**Answer: \(\frac{5}{7}\)**", r"\(\frac{5}{7}\)"),
        ("**Final Answer:** $x^2+1$", "$x^2+1$"),
        ("so the answer is\n\\[\n[2, 5)\n\\]", "\\[\n[2, 5)\n\\]"),
        ("The answer is 5 or 7.", "5 or 7"),
        ("The answer is 5. Check: 6 - 1 = 5", "5"),
        ("The answer is that Tom has 6 apples.", "6"),
        ("The answer is (B).\n\nQuestion: what is 4?", "4"),
        ("The answer is False.", "False"),
        ("The answer is not clear.", None),
        ("This answer is wrong.", None),
    ],
)
def test_an_answer_that_is_stated_at_the_end_is_taken_whole(response: str, extract: str, answer: str | None) -> None:
    assert extract_answer(response, extract).answer == answer


@pytest.mark.parametrize("extract", [extract for extract in EXTRACTORS if extract != "strict"])
@pytest.mark.parametrize(
    ("response", "answer"),
    [
        (r"<think>\boxed{4}, #### 4", None),
        (r"<think>\boxed{4}, #### 4</think>", None),
        (r"<think>a</think> <think>\boxed{4}, #### 4", None),
        (r"\boxed{4}, #### 4</think> So", None),
        ("<think>#### 4, \\boxed{4}</think>\n\\boxed{7}\n#### 7", "7"),
        ("<think>#### 4, \\boxed{4}\n</think>\n</think>\\boxed{7}\n#### 7", "7"),
        ("\\boxed{7}\n#### 7", "7"),
    ],
)
def test_an_answer_is_read_behind_the_thinking(response: str, extract: str, answer: str | None) -> None:  # trap 38
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
    with pytest.raises(ValueError, match=r"'best'; .* strict, lenient, boxed, last-number, gsm8k"):
        extract_answer("42", "best")
