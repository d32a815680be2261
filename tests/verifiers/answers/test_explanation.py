"""What `reasoner grade --explain` tells: both values as read, and where they differ."""

from verifiers.answers.explanation import UNREAD, explain


def test_two_sets_differ_by_the_numbers_in_one_of_them() -> None:
    explanation = explain(r"[1,2)", r"1 < x < 2")
    assert explanation.gold == "tuple or interval [1; 2)"
    assert explanation.answer == "set of reals of x: (1, 2)"
    assert (
        explanation.counterexample.startswith("only in the gold: set of reals") and "{1}" in explanation.counterexample
    )


def test_two_expressions_differ_at_a_point() -> None:
    example = explain("(x-1)^2", "x^2-2x+2").counterexample
    assert example.startswith("at x = ") and "gold" in example and "answer" in example


def test_text_that_is_not_read_is_named() -> None:
    explanation = explain("5", "maybe 5")
    assert (explanation.gold, explanation.answer, explanation.counterexample) == ("5", UNREAD, "")


def test_sets_that_each_hold_what_the_other_lacks_are_told_apart():
    counterexample = explain(r"(-\infty, 2) \cup (2, \infty)", "all real numbers except 3").counterexample
    assert counterexample == "only in the gold: set of reals: {3}; only in the answer: set of reals: {2}"
