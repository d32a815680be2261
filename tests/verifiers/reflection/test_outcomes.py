"""Outcomes of reflection: the answer before a cue against the answer after it."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fixtures.growth import grows_linearly
from verifiers.reflection.cues import LEXICON
from verifiers.reflection.outcomes import LABELS, OUTCOMES, Member, Span, assign_labels, score, spans

QUESTION = "What is 7 times 6?"


def outcomes(text, gold="42", rule="maths"):
    return [(span.outcome, span.before, span.after) for span in spans(text, QUESTION, gold, rule)]


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        # boxed answers
        (r"So \boxed{44}. Wait, no. It is \boxed{42}.", ("correct", "44", "42")),
        (r"So \boxed{42}. Wait, no. It is \boxed{44}.", ("harm", "42", "44")),
        (r"So \boxed{44}. Wait, no. It is \boxed{43}.", ("switch", "44", "43")),
        (r"So \boxed{42}. Let me check. Yes, \boxed{42}.", ("confirm", "42", "42")),
        (r"So \boxed{44}. Let me check. Yes, \boxed{44}.", ("missed", "44", "44")),
        (r"Wait, no. It is \boxed{42}.", ("open", "", "")),
        (r"It is \boxed{42}. Wait, no.", ("open", "", "")),
        # stated calculations
        ("7*6=44. Wait, 7*6=42.", ("correct", "44", "42")),
        ("7*6=42. Wait, 7*6=44.", ("harm", "42", "44")),
        ("7*6=44. Wait, 7*6=43.", ("switch", "44", "43")),
        ("7*6=42. Let me check: 7*6=42.", ("confirm", "42", "42")),
        ("7*6=44. Let me check: 7*6=44.", ("missed", "44", "44")),
        ("7*6=44. Hmm, I do not know.", ("open", "", "")),
        ("7*6=44. Wait, 7*5=35.", ("open", "", "")),
        (r"\(7 \times 6 = 44\). Wait, \(7 \times 6 = 42\).", ("correct", "44", "42")),
        # a check that calculates something else and then accepts the earlier value
        ("7*6=42. Check: 7*3=21, 21+21=42. Good.", ("confirm", "42", "42")),
        ("7*6=44. Check: 7*3=21, 21+21=42. I had 44. Good.", ("missed", "44", "44")),
        ("7*6=44. Check: 7*3=21, 21+21=42. It is not good.", ("open", "", "")),
        # answers in other forms
        ("The answer is 44. Wait, no. The answer is 42.", ("correct", "44", "42")),
        (r"The answer is $44$. Wait, no. \boxed{42}", ("correct", "44", "42")),
        ("<think>The answer is 44. Wait, no.</think> <answer> 42 </answer>", ("correct", "44", "42")),
        ("<think>The answer is <answer>44</answer>? Wait, no.</think> <answer>42</answer>", ("correct", "44", "42")),
        (r"**Answer:** 1,000. Let me check. \boxed{1000}", ("missed", "1,000", "1000")),
        (r"The answer is 84/2. Let me check. \boxed{42.0}", ("confirm", "84/2", "42.0")),
        # of several answers, the last one before the cue and the next one after it count
        (r"\boxed{42}, no, \boxed{44}. Wait, no. \boxed{42}, or \boxed{43}", ("correct", "44", "42")),
        # an answer takes precedence over a calculation unless it shows no change
        (r"7*6=44. \boxed{44}. Wait, 7*6=42. \boxed{43}", ("switch", "44", "43")),
        (r"7*6=44. \boxed{44}. Wait, 7*6=42. \boxed{44}", ("correct", "44", "42")),
    ],
)
def test_second_thought_has_its_outcome(text, outcome):
    assert outcomes(text) == [outcome]


def test_every_outcome_has_its_label():
    texts = [r"\boxed{44}. Wait, no. \boxed{42}", r"\boxed{42}. Wait, no. \boxed{44}", "Wait, no."]
    assert [[span.label for span in spans(text, "", "42")] for text in texts] == [["self-correction"], ["cue"], ["cue"]]


@pytest.mark.parametrize(
    "said",
    [
        *(
            "The answer is correct.",
            "The answer is wrong.",
            "The answer is not 42.",
            "The answer is expected to be odd.",
        ),
        *("The answer is a multiple of 7.", "The answer is:", "The answer is x = 42.", "The answer is 40 + 2."),
        *(r"The answer is 21 \cdot 2.", "The final answer is:\n\\[", f"<answer>{'4' * 190} + {'2' * 190}</answer>"),
    ],
)
def test_a_text_without_a_readable_answer_has_outcome_open(said):
    assert outcomes(rf"{said} Wait, no. \boxed{{42}}") == [("open", "", "")]


def test_each_cue_has_its_own_outcome():
    text = "7*6=44. Wait, 7*6=43. Hmm, 7*6=42. Let me check: 7*6=42. Good."
    assert outcomes(text) == [("switch", "44", "43"), ("correct", "43", "42"), ("confirm", "42", "42")]


def test_cues_after_the_think_block_are_ignored_but_its_answer_counts():
    all_spans = spans(r"<think>\boxed{44}. Wait, no.</think> \boxed{42}. Let me check. \boxed{44}", QUESTION, "42")
    assert [(span.kind, span.outcome) for span in all_spans] == [("doubt", "correct")]


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        (r"\boxed{2+3}. Wait, no. \boxed{2*3}", "correct"),
        (r"\boxed{2*3}. Wait, no. \boxed{2+3}", "harm"),
        (r"\boxed{2*3}. Let me check. \boxed{(3*2)}", "confirm"),
        (r"\boxed{2+3}. Let me check. \boxed{3+2}", "missed"),
        (r"\boxed{2+3}. Wait, no. \boxed{3-2}", "switch"),
        (r"\boxed{6}. Wait, no. \boxed{2*3}", "correct"),  # the value alone does not use the numbers
        (r"\boxed{six}. Wait, no. \boxed{2*3}", "open"),
    ],
)
def test_the_rule_of_the_problem_judges(text, outcome):
    assert [each[0] for each in outcomes(text, "3*2", "countdown")] == [outcome]


@pytest.mark.parametrize(
    ("gold", "rule"), [("hello", "countdown"), ("", "maths"), (" ", "maths"), ("42", "unheard of")]
)
def test_a_gold_that_the_verifier_cannot_use_leaves_answers_open(gold, rule):
    assert outcomes(r"\boxed{44}. Wait, no. \boxed{42}", gold, rule) == [("open", "", "")]
    assert outcomes("7*6=44. Wait, 7*6=42.", gold, rule) == [("correct", "44", "42")], "arithmetic needs no gold"


def test_an_answer_that_cannot_be_judged_is_skipped():
    long = "1" * 150 + "+" + "x" * 150
    assert outcomes(rf"\boxed{{44}}, or \boxed{{{long}}}, or \boxed{{}}. Wait, no. \boxed{{?}} \boxed{{42}}") == [
        ("correct", "44", "42")
    ]


PIECES = [
    *(
        "Wait, no. ", "Let me check: ", "That's wrong. ", "aha ", "7*6=44. ", "7*6=42. ", "(3+4)*2=14 ", "1/0=1 ",
        "good. ",
    ),
    *(
        "\\boxed{", "42", "44", "}", "The answer is ", "<answer>", "</answer>", "</think>", "```", "$", "\\(",
        "\\)", ", ",
    ),
    *("\r\n", "\n", " ", ".", "**", "×", "’", "\x00", "👍", "\u200f", "1,000"),
]  # fmt: skip


@settings(deadline=None)
@given(st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=3)), max_size=40).map("".join), st.text(max_size=9))
def test_any_text_has_spans_in_order_that_lie_in_it(text, question):
    all_spans = spans(text, question, "42")
    assert all(0 <= span.start < span.end <= len(text) for span in all_spans)
    assert all(one.end <= other.start for one, other in pairwise(all_spans))
    assert all(span.kind in LEXICON and span.outcome in OUTCOMES and span.label in LABELS[:2] for span in all_spans)
    assert all((span.outcome == "correct") == (span.label == "self-correction") for span in all_spans)
    assert all((span.outcome == "open") == (span.before == span.after == "") for span in all_spans)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "unit"),
    [
        *(("Wait. The answer is", unit) for unit in ("\n", " ", "1", "(", "$")),
        *(
            ("Wait. ", unit)
            for unit in ("answer: ", "answer:$", "answer is \\[", "\\boxed{", "\\boxed{1} ", "<answer>")
        ),
        *(("", unit) for unit in ("1+1=3 ", "7*6=44. Wait, ", "{")),
    ],
)
def test_time_grows_with_the_length_of_the_text(before, unit):
    assert grows_linearly(lambda text: spans(text, QUESTION, "42"), unit, before, after=" Wait, no.")


# ------------------------------------------------------------------------------------------------ in a group

MENDED = Span(0, 4, "doubt", "correct", "self-correction", "44", "42")
OPEN = Span(9, 12, "doubt", "open", "cue")


@pytest.mark.parametrize(
    ("is_correct", "others", "label"),  # others: (is correct, has a self-correction)
    [
        (True, [(False, False)] * 2, "aha"),
        (True, [(True, False), (False, False)], "aha"),
        (True, [(True, False), (True, False), (False, False)], "self-correction"),
        (True, [(True, False)] * 4, "self-correction"),
        (True, [(False, False)], "self-correction"),
        (True, [], "self-correction"),
        (False, [(False, False)] * 3, "self-correction"),
        # completions with a self-correction do not count for the difficulty of the question
        (True, [(False, False), (False, True), (False, True)], "self-correction"),
        (True, [(False, False), (False, False), (True, True), (True, True)], "aha"),
    ],
)
def test_an_aha_is_a_self_correction_on_a_question_that_the_others_mostly_get_wrong(is_correct, others, label):
    group = [
        Member(is_correct, (OPEN, MENDED)),
        *(Member(right, (MENDED,) if mends else (OPEN,)) for right, mends in others),
    ]
    for members in (group, group[::-1]):
        with_labels = assign_labels(members)
        assert [replace(member, spans=()) for member in with_labels] == [
            replace(member, spans=()) for member in members
        ]
        first = with_labels[members.index(group[0])]
        assert [span.label for span in first.spans] == ["cue", label]


def test_the_gallery_is_sorted_by_label_then_difficulty_then_kind():
    def of(label, kind):
        return Span(0, 4, kind, "open" if label == "cue" else "correct", label)

    ranked = [
        score(of("aha", "aha"), others_correct=0.0),
        score(of("aha", "alternative"), others_correct=0.0),
        score(of("aha", "doubt"), others_correct=0.5),
        score(of("self-correction", "error"), others_correct=0.0),
        score(of("self-correction", "error"), others_correct=1.0),
        score(of("cue", "aha"), others_correct=0.0),
        score(of("cue", "verify"), others_correct=1.0),
    ]
    assert ranked == sorted(ranked, reverse=True) and len(set(ranked)) == len(ranked)
