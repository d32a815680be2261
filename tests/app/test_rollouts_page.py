"""The page of rollouts in a real browser over a real run of the embedded base: filters, one rollout, its notes."""

import re

from tests.app.browsing import expect, text, wait_for_address
from tests.app.library_of import rows_of


def test_filters_compose_and_an_invalid_one_is_taken_back(site):
    rows = rows_of(site.runs / "real")
    some = rows[0]["subject"]
    page = site.open("/rollouts?run=real")
    page.wait_for_selector('.list[data-state="ready"]')
    expect(page.locator("[data-count]")).to_have_text(str(len(rows)))
    page.wait_for_selector('.pane[data-state="ready"][data-rollout="0.0.0"]')  # the first row is open

    def expect_count(holds):
        page.wait_for_selector('.list[data-state="ready"]')
        expect(page.locator("[data-count]")).to_have_text(f"{sum(1 for row in rows if holds(row)):,}")

    page.get_by_label("subject").fill(some)
    page.keyboard.press("Enter")
    expect_count(lambda r: r["subject"] == some)
    page.get_by_label("correct").select_option("no")
    expect_count(lambda r: r["subject"] == some and r["verdict"] != "correct")
    first = next(r for r in rows if r["subject"] == some and r["verdict"] != "correct")
    page.wait_for_selector(f'.pane[data-rollout="{first["name"]}"]')
    page.get_by_label("reward").fill("x")
    page.keyboard.press("Enter")
    page.wait_for_selector('[role="alert"]:has-text("reward is \'x\'")')
    page.go_back()
    page.wait_for_function("document.querySelector('[aria-label=reward]').value === ''")
    site.refused()


def test_link_opens_its_rollout_and_keys_select_neighbours(site):
    rows = {row["name"]: row for row in rows_of(site.runs / "real")}
    page = site.open("/rollouts?run=real&rollout=1.2.1")

    def shown(name):
        page.wait_for_selector(f'.pane[data-state="ready"][data-rollout="{name}"]')
        return rows[name]

    row = shown("1.2.1")
    assert row["question"] in text(page, ".pane .question")
    assert row["verdict"].replace("_", " ") in text(page, '[data-fact="verdict"]')
    assert (row["extracted"] or "none") in text(page, '[data-fact="answer"]')
    assert f"{abs(row['advantage']):.3f}" in text(page, '[data-fact="advantage"]')
    page.wait_for_selector('.row[data-rollout="1.2.1"][aria-selected="true"]')
    for key, name in (("j", "1.2.2"), ("k", "1.2.1"), ("l", "1.2.2"), ("h", "1.2.1")):
        page.keyboard.press(key)
        shown(name)
        wait_for_address(page, f"rollout={name}")
    page.go_back()
    shown("1.2.2")
    page.keyboard.press("/")
    expect(page.get_by_label("text")).to_be_focused()
    page.keyboard.type("jjj")
    expect(page.get_by_label("text")).to_have_value("jjj")
    assert "rollout=1.2.2" in page.url
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("o")
    page.wait_for_url("**/overview?run=real")


def test_tokens_carry_their_figures(site):
    row = next(r for r in rows_of(site.runs / "real") if r["entropy"])
    page = site.open(f"/rollouts?run=real&rollout={row['name']}&colour=entropy")
    page.wait_for_selector(".tokens .token")
    pieces = page.locator(".tokens .token").all_inner_texts()
    assert len(pieces) == len(row["token_ids"])
    shown = page.evaluate("[...document.querySelectorAll('.tokens .token')].map(t => t.textContent).join('')")
    assert shown.strip().startswith(row["completion"].strip()[:40])
    page.locator(".tokens .token").nth(1).hover()
    for statistic in ("log-probability", "entropy", "share in the loss"):
        expect(page.locator(".tokens .token").nth(1)).to_have_attribute("title", re.compile(statistic))
    for _ in range(3):
        page.keyboard.press("c")
        page.wait_for_selector('.pane[data-state="ready"]')
    wait_for_address(page, "colour=")


def test_the_tokens_are_sent_when_they_are_coloured(site):
    with site.page.expect_request("**/ask/rollout") as plain:
        page = site.open("/rollouts?run=real&rollout=0.0.0")
    page.wait_for_selector('.pane[data-state="ready"]')
    with page.expect_request("**/ask/rollout") as coloured:
        page.get_by_label("colour").select_option("logprobs")
    page.wait_for_selector(".tokens .token")
    assert [one.value.post_data_json["with_tokens"] for one in (plain, coloured)] == [False, True]


def test_stars_and_notes_persist(site):
    page = site.open("/rollouts?run=other&rollout=0.1.1")
    page.wait_for_selector('.pane[data-state="ready"]')
    page.keyboard.press("s")
    page.wait_for_selector('.star[aria-pressed="true"]')
    page.keyboard.press("n")
    page.keyboard.type("look at <b>this</b>")
    page.locator(".pane h2").click()
    page.wait_for_selector(".note small:has-text('saved')")
    page = site.open("/notes?run=real")
    expect(page.get_by_role("link", name="rollouts of real")).to_have_count(1)  # which has no note yet
    page = site.open("/notes?run=other")
    assert "look at <b>this</b>" in text(page, '[data-note="0.1.1"]') and "★" in text(page, '[data-note="0.1.1"]')
