"""Causes of failures: each by examples written by hand, and their counts over a run."""

import pytest

from reasoner.analysis.failures import Response, classify, examples, failure_of, timeline
from reasoner.runs.filters import CAUSES, Filter
from reasoner.runs.rollout_table import RolloutTable
from reasoner.runs.run_start import open_run
from tests.fixtures.rollouts import group, write

LOOP = "Add one more and then add one more again. " * 20
CASES = [
    ("repeated", {"text": LOOP, "finish": "length"}, ""),
    ("truncated", {"text": "Let me see. 6*7=43", "finish": "length", "verdict": "malformed"}, ""),
    ("not graded", {"text": "7!!!!", "verdict": "refused"}, "refused"),
    ("right in another form", {"text": r"So \boxed{42}.", "verdict": "malformed"}, "malformed: 42"),
    ("right in another form", {"text": "It is 42", "verdict": "no_answer"}, "no_answer: 42"),
    ("malformed", {"text": r"So \boxed{41}.", "verdict": "malformed"}, ""),
    ("no answer", {"text": "I do not know.", "verdict": "no_answer"}, ""),
    ("unparsable", {"text": "<answer>((</answer>", "verdict": "unparsable", "answer": "(("}, "(("),
    ("arithmetic slip", {"text": "2+3=5. 6*7=43. So 43.", "answer": "43"}, "calculation 2 of 2: 6*7 = 42, not 43"),
    ("arithmetic slip", {"text": "1/4=0.35, so 7", "answer": "7"}, "calculation 1 of 1: 1/4 = 0.25, not 0.35"),
    ("arithmetic slip", {"text": "6*7=42. Check: 6*7=43.", "answer": "43"}, "calculation 2 of 2: 6*7 = 42, not 43"),
    ("near the gold answer", {"text": "6*7=43. Wait, 6*7=42. So 43", "answer": "43"}, "off by one"),
    ("near the gold answer", {"answer": "-42"}, "opposite sign"),
    ("near the gold answer", {"answer": "4.2"}, "off by a power of ten"),
    ("near the gold answer", {"answer": "420"}, "off by a power of ten"),
    ("near the gold answer", {"gold": "5488", "answer": "5848"}, "within 10 %"),
    ("other wrong answer", {"gold": "5488", "answer": "9488"}, ""),
    ("near the gold answer", {"gold": "1/2", "answer": "0.51"}, "within 10 %"),
    ("other wrong answer", {"gold": "5488", "answer": "8485"}, ""),
    ("other wrong answer", {"gold": "12", "answer": "82"}, ""),
    ("other wrong answer", {"gold": "0", "answer": "5"}, ""),
    ("other wrong answer", {"gold": "x + 1", "answer": "x - 1"}, ""),
    ("other wrong answer", {"gold": "", "answer": "7"}, ""),
]


def response(*, text="So it is.", gold="42", verdict="wrong", answer=None, finish="stop"):
    return Response(text, gold, "maths", verdict, answer, finish)


@pytest.mark.parametrize(("cause", "fields", "detail"), CASES)
def test_a_failure_has_the_first_cause_that_applies(cause, fields, detail):
    failure = failure_of(response(**fields))
    assert failure is not None and (failure.cause, failure.detail) == (cause, detail)


def test_every_cause_has_a_case_and_a_correct_response_has_no_cause():
    assert {cause for cause, _, _ in CASES} == CAUSES.keys()
    assert failure_of(response(text=LOOP, verdict="correct")) is None


@pytest.mark.parametrize(
    ("text", "fields", "marked"),
    [
        ("First **2+3**=5. Then 6 × 7 = 43.", {"answer": "43"}, "6 × 7 = 43"),
        (r"6*7 is \boxed{42}, I think", {"verdict": "malformed"}, "42"),
    ],
)
def test_a_slip_or_a_right_answer_in_another_form_is_marked_where_it_stands(text, fields, marked):
    failure = failure_of(response(text=text, **fields))
    assert failure is not None and text[failure.start : failure.end] == marked


def test_the_causes_of_a_run_partition_its_failures(tmp_path):
    run = tmp_path / "a"
    open_run(run, {}, {}, resuming=False)
    write(run, 0, [group("6*7", "42", [("6*7=43", False), ("42", True), ("So 17", False), (LOOP, False)])])
    write(run, 1, [group("6*7", "42", [("42", True), ("42", True)])])
    table = RolloutTable(run)
    assert (classify(table), classify(table)) == (2, 0)
    lines = timeline(table)
    assert [line["rollouts"] for line in lines] == [4, 2]
    once = {"arithmetic slip", "other wrong answer", "repeated"}
    assert {cause: n for cause, n in lines[0]["causes"].items() if n} == dict.fromkeys(once, 1)
    assert not any(lines[1]["causes"].values())
    assert [one["name"] for one in examples(table, cause="", offset=0, limit=9)] == ["0.0.3", "0.0.2", "0.0.0"]
    assert [one["name"] for one in examples(table, cause="arithmetic slip", offset=0, limit=9)] == ["0.0.0"]
    assert [one.name for one in table.page(Filter(failure="repeated"))] == ["0.0.3"]
