"""Actions in quick succession and requests that fail, in a real browser: no action is lost, no failure is silent."""

import json

import pytest

from tests.app.browsing import expect, made_up
from tests.app.held import Held
from tests.app.library_of import write_run
from tests.app.test_disagreements import ANSWERS, open_run, write_step

TEXTS = ["<think>2+2=5. Wait, 2+2=4.</think> <answer>4</answer>", "<think>2+2=5.</think> <answer>5</answer>", "6"]
CARDS_OF_A_PAGE = 12
ROWS_OF_A_BLOCK = 100


@pytest.fixture(scope="module")
def real(runs):
    made_up(runs, "own", steps=3, texts=TEXTS)
    made_up(runs, "long", steps=20, texts=TEXTS)  # 120 rollouts: more than a block of the list
    write_run(runs / "whole", steps=8)
    open_run(runs / "judged", steps=2)
    for step, answers in enumerate(ANSWERS):
        write_step(runs / "judged", step, answers)
    return runs


def test_a_link_to_a_difference_that_cannot_be_shown_opens_and_says_why(site):
    site.refused()
    page = site.open("/group?run=own&step=0&group=0&b=9.9.9")
    expect(page.locator("[data-diff] [role=alert]")).to_contain_text("9.9.9")
    page.get_by_label("B", exact=True).select_option("0.0.1")
    expect(page.locator("[data-diff] [data-side=b]")).to_be_visible()
    expect(page.locator("[data-diff] [role=alert]")).to_have_count(0)


def test_a_double_click_on_more_adds_one_page(site):
    page = site.open("/failures?run=whole")
    cards = page.locator("[data-card]")
    expect(cards).to_have_count(CARDS_OF_A_PAGE)
    held = Held(page, "failures")
    page.get_by_role("button", name="more").dblclick()
    held.wait(1)
    assert held.offsets() == [CARDS_OF_A_PAGE]
    held.release(0)
    second = site.ask("failures", run="whole", offset=CARDS_OF_A_PAGE)["examples"]
    expect(cards).to_have_count(CARDS_OF_A_PAGE + len(second))
    assert held.offsets() == [CARDS_OF_A_PAGE]


def test_more_that_fails_says_why_and_is_tried_again(site):
    site.refused()
    page = site.open("/failures?run=whole")
    expect(page.locator("[data-card]")).to_have_count(CARDS_OF_A_PAGE)
    page.evaluate("Object.defineProperty(document, 'hidden', {get: () => true})")  # no polling
    page.route("**/ask/failures", lambda route: route.fulfill(status=400, json={"error": "broken"}))
    page.get_by_role("button", name="more").click()
    expect(page.locator("main [role=alert]")).to_have_text("broken")
    page.unroute("**/ask/failures")
    page.get_by_role("button", name="try again").click()
    expect(page.locator("[data-card]").nth(CARDS_OF_A_PAGE)).to_be_visible()  # the first card of the second page
    expect(page.locator("main [role=alert]")).to_have_count(0)


def test_two_verdicts_in_quick_succession_are_sent_one_after_the_other_and_the_last_counts(site):
    page = site.open("/disagreements?run=judged")
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
    lines = (site.runs / "judged" / "grading_cases.jsonl").read_text().splitlines()
    assert [json.loads(line)["correct"] for line in lines if json.loads(line)["answer"] == "7"][-1] is False


def test_the_key_j_waits_for_the_rows_of_a_new_filter(site):
    page = site.open("/rollouts?run=own")
    held = Held(page, "rollouts")
    field = page.get_by_label("correct", exact=True)
    field.select_option("no")
    field.blur()
    held.wait(1)
    page.keyboard.press("j")
    page.keyboard.press("j")
    assert page.locator(".pane").get_attribute("data-rollout") == "0.0.0"
    held.release(0)
    page.wait_for_selector(".pane[data-state=ready][data-rollout='0.1.1']")  # the third that is wrong


def test_the_key_j_waits_for_a_block_of_rows_that_another_key_has_asked_for(site):
    rows = site.ask("rollouts", run="long", order="-step", offset=ROWS_OF_A_BLOCK - 1, limit=3)["rows"]
    names = [row["name"] for row in rows]
    page = site.open(f"/rollouts?run=long&order=-step&rollout={names[0]}")
    page.wait_for_selector(f".pane[data-state=ready][data-rollout='{names[0]}']")
    held = Held(page, "rollouts")
    page.keyboard.press("j")
    held.wait(1)
    page.keyboard.press("j")
    held.release(0)
    page.wait_for_selector(f".pane[data-state=ready][data-rollout='{names[2]}']")
