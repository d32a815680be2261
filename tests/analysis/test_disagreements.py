"""Disagreements between graders: which answers they are, and math-verify in a process of its own."""

from functools import partial

import pytest

from reasoner.analysis.disagreements import disagreements, math_verify
from verifiers import VerifierPool, peer


def rows(*answers, gold="42", rule="maths", question="6*7", group=0):
    """The rollouts of a group from (answer, verdict)."""
    return [
        {
            "step": 1, "group": group, "name": f"1.{group}.{n}", "question": question, "gold": gold, "verifier": rule,
            "extracted": answer, "verdict": verdict,
        }
        for n, (answer, verdict) in enumerate(answers)
    ]  # fmt: skip


def opinions(table):
    """A second grader that knows the answers of the table, and cannot decide on others."""
    return lambda pairs: [table.get(answer) for answer, _ in pairs]


def test_an_answer_that_two_graders_judge_differently_is_listed_once():
    group = rows(("42.0", "wrong"), ("41", "wrong"), ("42.0", "wrong"), ("40", "correct"))
    items = disagreements(group, opinions({"42.0": True, "41": False, "40": False}))
    found = [(one.answer, one.is_correct, one.math_verify, one.rollouts) for one in items]
    assert found == [("42.0", False, True, ("1.0.0", "1.0.2")), ("40", True, False, ("1.0.3",))]


@pytest.mark.parametrize(
    ("answers", "share"),
    [
        ([("41", "wrong")] * 3 + [("42", "correct")], 0.75),
        ([("41", "wrong"), ("41.", "wrong"), ("41", "wrong"), ("7", "wrong")], 0.75),
        ([("41", "wrong")] * 2 + [("42", "correct")], None),  # two votes are no majority
        ([("41", "wrong")] * 3 + [("42", "correct")] * 3, None),  # half is no majority
        ([("42", "correct")] * 4, None),  # right, and most agree
        ([("41", "malformed")] * 4, None),  # not graded by value
        ([("41", "wrong")] * 3 + [(None, "no_answer")] * 2, 0.6),
        ([("41", "wrong")] * 3 + [(None, "no_answer")] * 3, None),  # of six completions half
    ],
)
def test_a_majority_that_is_graded_wrong_is_listed(answers, share):
    items = disagreements(rows(*answers), opinions({}))
    assert {one.majority for one in items} == ({share} if share else set())


def test_a_second_opinion_is_asked_once_a_pair_and_only_where_it_can_tell():
    calls = []
    both = rows(("41", "wrong"), ("41", "wrong"), ("42", "correct")) + rows(("5+6", "wrong"), rule="countdown", group=1)
    disagreements(both, lambda pairs: calls.append(pairs) or [None] * len(pairs))
    assert calls == [[("41", "42")]]


def test_math_verify_judges_in_its_own_process_under_the_limits_of_the_pool(monkeypatch):
    monkeypatch.setattr("reasoner.analysis.disagreements.VerifierPool", partial(VerifierPool, seconds=0.5))
    pairs = [("0.5", r"\frac{1}{2}"), ("7", "8"), ("{" * 60_000, "3"), ("9^{9^{9^{9}}}", "5"), ("1+x", "x+1")]
    assert math_verify(pairs) == [True, False, None, None, True]  # too large, too late


def test_math_verify_is_asked_in_its_own_way():
    assert peer.judge("0.3333333", "1/3") and not peer.judge("0.33", "1/3")
    assert peer.judge(r"\boxed{\frac{1}{2}}", "0.5").answer_form == "1/2"
    assert not peer.judge("", "5")
