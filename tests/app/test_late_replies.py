"""Replies that come late, actions in quick succession and requests that fail, in a real browser: a page shows the reply
to its latest request, no action is lost, no failure is silent. Nightly: the guard that the pages share for it is tested
in test_features.py.
"""

import pytest

from tests.app.browsing import expect, made_up, wait_for_address
from tests.app.held import STOP_POLLING, Held
from tests.app.library_of import write_run

pytestmark = pytest.mark.slow
TEXTS = ["<think>2+2=5. Wait, 2+2=4.</think> <answer>4</answer>", "<think>2+2=5.</think> <answer>5</answer>", "6"]
CARDS_OF_A_PAGE = 12
ROWS_OF_A_BLOCK = 100


@pytest.fixture(scope="module")
def real(runs):
    made_up(runs, "own", steps=3, texts=TEXTS)
    made_up(runs, "long", steps=20, texts=TEXTS)  # 120 rollouts: more than a block of the list
    write_run(runs / "whole", steps=8)
    return runs


def test_a_filter_that_is_typed_while_the_page_opens_is_asked_for(site):
    page = site.open("/overview?run=own")
    held = Held(page, "rollouts")
    page.locator("nav a", has_text="Rollouts").click()
    held.wait(1)
    page.get_by_label("correct", exact=True).select_option("no")
    held.wait(2)
    assert page.evaluate("window.held[1].body.where") == {"correct": "no"}
    held.release(1)
    held.release(0)
    expect(page.locator("[data-count]")).to_have_text("12")  # of 18
    wait_for_address(page, "correct=no")


def test_a_search_that_goes_on_is_not_begun_again(site):
    page = site.open("/rollouts?run=own")
    held = Held(page, "rollouts", polling=True)
    page.get_by_label("text").fill("wait")
    page.keyboard.press("Enter")
    page.wait_for_function("window.held.some(one => one.body.where.text)")
    number = len(held.queries())
    for one in range(number - 1):  # a look for new rollouts that was on its way
        held.release(one)
    for _ in range(2):  # after each look: the second follows one that began after the search
        with page.expect_response("**/ask/runs"):
            pass
    assert held.values("limit")[number - 1 :] == [40]
    held.release(number - 1)
    expect(page.locator("[data-count]")).to_have_text("6")


def test_keys_do_nothing_to_a_rollout_that_is_being_replaced(site):
    page = site.open("/rollouts?run=own&rollout=0.0.0")
    held = Held(page, "rollout", "annotate")
    page.keyboard.press("j")
    held.wait(1)
    page.keyboard.press("s")
    assert held.queries() == ["rollout"]
    field = page.get_by_label("correct", exact=True)
    field.select_option("no")
    held.wait(2)  # the first one of the filter
    held.release(0)
    field.blur()
    page.keyboard.press("s")
    assert held.queries() == ["rollout", "rollout"]
    held.release(1)
    page.wait_for_selector(".pane[data-state=ready][data-rollout='0.0.1']")


def test_a_note_is_saved_before_its_rollout_is_shown_again_and_said_to_be_saved_at_last(site):
    page = site.open("/rollouts?run=own&rollout=0.0.0")
    held = Held(page, "rollout", "annotate")
    status = page.locator(".pane .note [role=status]")
    page.keyboard.press("s")
    page.get_by_label("note", exact=True).fill("so")
    page.locator(".pane h2").click()
    held.wait(1)
    held.release(0)
    held.wait(2)
    assert status.text_content() == "saving"
    page.get_by_label("render formulas").check()
    assert held.queries() == ["annotate", "annotate"]
    held.release(1)
    expect(status).to_have_text("saved")
    held.wait(3)
    held.release(2)
    page.wait_for_selector(".pane .formulas")
    expect(page.get_by_label("note", exact=True)).to_have_value("so")
    expect(page.locator(".pane .star")).to_have_attribute("aria-pressed", "true")


def test_the_list_of_runs_keeps_the_focus_until_there_is_news(site):
    page = site.open("/")
    box = page.get_by_label("choose own")
    box.focus()
    for _ in range(2):  # a lookup of the page, one of the header
        with page.expect_response("**/ask/runs"):
            pass
    expect(box).to_be_focused()
    made_up(site.runs, "later", steps=1, texts=TEXTS)
    page.wait_for_selector('tr[data-run="later"]')


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
    assert held.values("offset") == [CARDS_OF_A_PAGE]
    held.release(0)
    second = site.ask("failures", run="whole", offset=CARDS_OF_A_PAGE)["examples"]
    expect(cards).to_have_count(CARDS_OF_A_PAGE + len(second))
    assert held.values("offset") == [CARDS_OF_A_PAGE]


@pytest.mark.parametrize(
    ("path", "act", "shown"),
    [
        ("failures", lambda page: page.get_by_text("more", exact=True).click(), f"[data-card]>>nth={CARDS_OF_A_PAGE}"),
        ("problems", lambda page: page.get_by_label("rows").select_option("problem"), "[data-problem='made/0']"),
    ],
    ids=["failures", "problems"],
)
def test_an_action_that_fails_says_why_and_is_tried_again(site, path, act, shown):
    site.refused()
    page = site.open(f"/{path}?run=whole")
    page.evaluate(STOP_POLLING)
    page.route(f"**/ask/{path}", lambda route: route.fulfill(status=400, json={"error": "broken"}))
    act(page)
    expect(page.locator("main [role=alert]")).to_have_text("broken")
    page.unroute(f"**/ask/{path}")
    page.get_by_role("button", name="try again").click()
    expect(page.locator(shown)).to_be_visible()
    expect(page.locator("main [role=alert]")).to_have_count(0)


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
