"""The queue of disagreements in a real browser: a verdict by hand becomes a line that `reasoner grade` reads."""

import json

import pytest

from reasoner.cli.main import main
from tests.app.browsing import NASTY, expect
from tests.app.held import Held
from tests.app.library_of import asking, open_run
from tests.fixtures.rollouts import group, write

QUESTION = f"What is a half? {NASTY}"
# To the last step: a right answer that is graded wrong, a wrong one that most completions have, and a right one.
ANSWERS = [[("0.5", False), ("0.5", True)], [("7", False)] * 3 + [("1/2", True)]]


@pytest.fixture(scope="module")
def real(runs):
    open_run(runs / "a", steps=2)
    for step, graded in enumerate(ANSWERS):
        said = [(f"<think>a</think><answer>{answer}</answer>", is_correct) for answer, is_correct in graded]
        write(runs / "a", step, [group("half", "1/2", said, question=QUESTION, answers=[one for one, _ in graded])])
        (runs / "a" / "metrics.jsonl").open("a").write(json.dumps({"step": step, "correct": 0.5}) + "\n")
    return runs


def test_a_verdict_by_hand_becomes_a_grading_case(site, capsys):
    page = site.open("/disagreements?run=a")
    card = page.locator("article[data-answer='7']")
    expect(page.locator("article")).to_have_count(1)
    for grader, verdict in (("ours", "wrong"), ("math-verify", "wrong"), ("majority", "75 % of the group")):
        expect(card.locator(f"[data-grader={grader}]")).to_have_attribute("data-verdict", verdict)
    page.get_by_label("steps").fill("0")
    page.get_by_label("steps").press("Enter")
    card = page.locator("article[data-answer='0.5']")
    expect(card.locator("[data-grader=math-verify]")).to_have_attribute("data-verdict", "correct")
    assert "</script><script>window.PWNED=2</script>" in card.inner_text()
    card.get_by_label("reason").fill("a decimal of the gold <b>")
    card.get_by_role("button", name="correct").click()
    page.wait_for_selector("article[data-answer='0.5'][data-decided=true]")
    expect(page.locator("[data-done='1']")).to_have_count(1)
    assert page.evaluate("window.PWNED") is None
    page.reload()
    page.wait_for_selector("article[data-answer='0.5'][data-decided=true]")
    file = site.runs / "a" / "grading_cases.jsonl"
    case = json.loads(file.read_text())
    assert (case["id"], case["gold"], case["answer"], case["correct"]) == ("a-001", "1/2", "0.5", True)
    assert case["why"] == "a decimal of the gold <b>" and case["verifier"] == "maths"
    assert main(["grade", str(file)]) == 0
    assert "1 graded, 1 correct" in capsys.readouterr().out


def test_a_reason_that_is_being_typed_stays_when_another_verdict_is_saved(site):
    page = site.open("/disagreements?run=a&steps=0:1")
    page.locator("article[data-answer='7']").get_by_label("reason").fill("not yet judg")
    page.locator("article[data-answer='0.5']").get_by_role("button", name="wrong").click()
    expect(page.locator("article[data-answer='0.5'] [role=status]")).to_contain_text("wrong")
    expect(page.locator("article[data-answer='7']").get_by_label("reason")).to_have_value("not yet judg")


def test_two_verdicts_in_quick_succession_are_sent_one_after_the_other_and_the_last_counts(site):
    page = site.open("/disagreements?run=a")
    card = page.locator("article[data-answer='7']")
    expect(card).to_have_count(1)
    held = Held(page, "judge_answer")
    card.get_by_role("button", name="correct").click()
    card.get_by_role("button", name="wrong").click()
    held.wait(1)
    assert held.values("correct") == [True]
    held.release(0)
    held.wait(2)
    assert held.values("correct") == [True, False]
    held.release(1)
    expect(card.locator("[role=status]")).to_contain_text("wrong")


def test_a_later_verdict_replaces_the_earlier_one(real):
    values = {"run": "a", "question": QUESTION, "gold": "1/2", "answer": "7", "correct": True}
    for ask in asking(real.parent):
        ask("judge_answer", **values)
        ask("judge_answer", **values | {"correct": False, "why": "seven"})
        cases = [item["case"] for item in ask("disagreements", run="a", steps="1")["items"]]
        assert [(case["correct"], case["why"]) for case in cases] == [(False, "seven")]
        with pytest.raises(ValueError, match="unknown verifier 'fate'"):
            ask("judge_answer", **values, verifier="fate")
        with pytest.raises(ValueError, match="step is 'much'"):
            ask("disagreements", run="a", steps="much")
