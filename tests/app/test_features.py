"""Features of the pages in a real browser: keys, differences, hidden tabs, unknown addresses, alarms, answers of tools,
failures, ordered columns, colour scales, links to tokens, tags.
"""

import re
import shutil
from operator import itemgetter
from pathlib import Path

import pytest

from app.differences import word_difference
from reasoner.runs import rollouts as store
from reasoner.runs.health import Alarm, write_alarms
from tests.app.browsing import NASTY, ROOT, expect, made_up, wait_for_address, wait_for_value
from tests.app.library_of import PROBLEMS, grouped, num_correct, rows_of, until, write_run

WHOLE = {"a": "<think>2+2=5. Wait, 2+2=4. Hmm, that is not right. $x$</think> 4", "b": "<think>2+2=5.</think> 5"}
TOLD = "\n<script>alert(1)</script>\n"  # by a tool


@pytest.fixture(scope="module")
def real(runs):
    """The run `nasty` has two alarms; a completion of `called` has called a tool."""
    whole = write_run(runs / "whole", steps=12, written=12)
    shutil.copy(ROOT / "reasoner" / "pretrain" / "model" / "tokenizer.json", whole)
    made_up(runs, "keys", steps=3, texts=list(WHOLE.values()))
    nasty = made_up(runs, "nasty", steps=3, texts=list(WHOLE.values()))
    write_alarms(nasty, [alarm("first"), alarm(NASTY, step=2)])
    called = made_up(runs, "called", steps=1, texts=["<think>", "so"])
    completion = f"<think> 🎉 <python>2</python>{TOLD} is 4"
    start, rows = completion.index(TOLD), store.read(called, 0)
    rows[0] |= {"completion": completion, "observation_tokens": [0, 1], "tool_errors": 1}
    rows[0]["observation_text"] = [start, start + len(TOLD)]
    store.write_shard(store.shard_path(called, 0), rows)
    return runs


def alarm(name, *, step=1):
    return Alarm(name, step, step, 0.5, 0.3, f"when {name}", f"meaning {name}", f"help {name}")


def pane(page, name):
    page.wait_for_selector(f'.pane[data-state="ready"][data-rollout="{name}"]')


def test_keys_walk_through_rollouts_spans_and_views(site):
    page = site.open("/rollouts?run=keys&rollout=0.1.0")
    pane(page, "0.1.0")
    page.wait_for_selector("mark.cue")
    spans = page.locator("mark.cue").all_text_contents()
    assert len(spans) == 2
    for key, at in (("]", 0), ("]", 1), ("]", 0), ("[", 1)):
        page.keyboard.press(key)
        wait_for_value(page.locator("mark.current").all_text_contents, [spans[at]])
    for key, name in (("J", "1.1.0"), ("J", "2.1.0"), ("J", "2.1.0"), ("K", "1.1.0"), ("l", "1.1.1"), ("h", "1.1.0")):
        page.keyboard.press(key)
        pane(page, name)
    page.keyboard.press("m")
    page.wait_for_selector(".pane .formulas math")
    page.keyboard.press("m")
    page.wait_for_selector(".pane .parts")
    page.keyboard.press("?")
    expect(page.locator("dialog.keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("dialog.keys")).to_have_count(0)
    page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    page.keyboard.press("y")
    page.wait_for_function("window.copied === location.href")
    page.keyboard.press("n")
    expect(page.get_by_label("note", exact=True)).to_be_focused()


def test_two_visits_of_a_problem_differ_word_by_word_in_the_direction_that_is_chosen(site):
    a, b = WHOLE.values()
    page = site.open("/problem?run=keys&id=made/up/1&a=0.1.0&b=2.1.1")
    expect(page.locator(".visits button")).to_have_count(3)
    page.keyboard.press("K")
    wait_for_address(page, "step=1")
    for first, second in ((a, b), (b, a)):
        wait_for_value(page.locator("[data-diff] .diff").all_text_contents, [first, second])
        pieces = word_difference(first, second)
        for side, tag in (("a", "del"), ("b", "ins")):
            expected = [text for kind, text in pieces if kind == side]
            assert page.locator(f"[data-diff] {tag}").all_text_contents() == expected and expected
        page.get_by_label("A", exact=True).select_option("2.1.1")
        page.get_by_label("B", exact=True).select_option("0.1.0")


def test_gaps_of_the_map_are_those_of_the_rows(site):
    groups = grouped(rows_of(site.runs / "whole"), "step", "group")
    page = site.open("/problems?run=whole&by=problem&sort=groups")
    part = page.locator("[data-part]").last  # of the last two of twelve steps
    mixed = [0 < num_correct(rows) < len(rows) for (step, _), rows in groups.items() if step >= 11]
    assert float(part.get_attribute("data-usable")) == pytest.approx(sum(mixed) / len(mixed))
    problem = page.locator(".names a").first.get_attribute("data-problem")
    page.locator(".heat canvas").focus()
    for step in range(12):
        page.keyboard.press("ArrowRight")
        visits = [rows for (at, _), rows in groups.items() if at == step and rows[0]["problem_id"] == problem]
        expected = (
            f"{sum(map(num_correct, visits))} of {sum(map(len, visits))} correct" if visits else "not sampled"
        )  # a gap, and not 0 %
        expect(page.locator("[data-readout]")).to_contain_text(f"{problem}, step {step}: {expected}")
    page.keyboard.press("Enter")
    page.wait_for_url("**/problem?run=whole*")


def test_a_hidden_tab_sends_no_request(site_of_its_own):
    site, page = site_of_its_own, site_of_its_own.page
    page.clock.install()
    page.goto(f"{site.url}/overview?run=keys")
    page.clock.run_for(3000)
    site.ready()
    page.evaluate("Object.defineProperty(document, 'hidden', { get: () => window.isAway ?? false })")
    page.evaluate("window.isAway = true")
    urls = []
    page.on("request", lambda request: urls.append(request.url))
    page.clock.run_for(60_000)
    assert [url for url in urls if "/ask/" in url] == []
    page.evaluate("window.isAway = false")
    with page.expect_request("**/ask/overview"):
        page.clock.run_for(5000)


def test_missing_pages_and_runs_show_an_error(site):
    site.refused()
    for path, words in {
        "/overview?run=nothing": "no run 'nothing'",
        "/nowhere": "no page at /nowhere",
        "/toString": "no page at /toString",
        "/a/b?run=keys": "no page at /a/b",
    }.items():
        site.page.goto(f"{site.url}{path}")
        site.ready("error")
        expect(site.page.locator('[role="alert"]')).to_contain_text(words)
    site.page.get_by_role("link", name="all runs").click()
    expect(site.page.locator('tr[data-run="keys"]')).to_have_count(1)


def test_a_run_shows_its_alarms_the_newest_first_as_they_are_written(site):
    page = site.open("/")
    expect(page.locator('tr[data-run="nasty"] [data-alarms]')).to_have_text("2 alarms")
    page = site.open("/overview?run=nasty")
    expect(page.locator("[data-alarm]")).to_have_count(2)
    expect(page.locator('[data-tile="health"]')).to_contain_text("2 resolved")
    newest, first = page.locator("[data-alarm]").all()
    for word in ("when", "meaning", "help"):
        assert f"{word} first" in first.inner_text()
        assert f'{word} <img src=x onerror="window.PWNED=1"> ${{6*7}} {{{{6*7}}}}' in newest.inner_text()
    assert "limit 0.300" in first.inner_text() and "resolved" in first.inner_text()
    assert page.evaluate("window.PWNED") is None
    assert page.evaluate("document.querySelectorAll('#reasoner img, #reasoner script').length") == 0
    first.get_by_role("link", name="step 1").click()
    page.wait_for_url("**/rollouts?run=nasty&step=1")


def test_what_a_tool_returned_is_marked_counted_and_escaped(site):
    page = site.open("/rollouts?run=called&rollout=0.0.0")
    expect(page.locator('.pane[data-rollout="0.0.0"] [data-fact="tool calls"]')).to_have_text("1, 1 failed")
    mark = page.locator(".pane mark.observation")
    expect(mark).to_have_count(1)
    assert mark.evaluate("one => one.textContent") == TOLD
    assert page.locator(".pane script").count() == 0
    site.open("/rollouts?run=called&rollout=0.0.1")
    expect(page.locator('.pane[data-rollout="0.0.1"] [data-fact="verdict"]')).to_be_visible()
    assert page.locator('.pane [data-fact="tool calls"]').count() == 0


def test_a_cause_of_failures_selects_its_examples_marks_their_slips_and_opens_their_rollouts(site):
    assert until(lambda: site.ask("failures", run="keys")["num_analyzed"] == 3)
    page = site.open("/failures?run=keys")
    page.click('tr[data-cause="arithmetic slip"] button')
    wait_for_address(page, "cause=arithmetic+slip")
    expect(page.locator("[data-card]")).to_have_count(6)  # one of each group
    expect(page.locator('article[data-card="0.0.1"] mark')).to_have_text("2+2=5")
    expect(page.locator('article[data-card="0.0.1"] [data-detail]')).to_have_text("calculation 1 of 1: 2+2 = 4, not 5")
    page.click('tr[data-cause="arithmetic slip"] a')
    page.wait_for_selector('.list[data-state="ready"]')
    expect(page.locator("[data-count]")).to_have_text("6")


def listed(page):
    page.wait_for_selector('.list[data-state="ready"]')
    return page.eval_on_selector_all(".list .row", "rows => rows.slice(0, 8).map(row => row.dataset.rollout)")


def test_a_click_on_a_head_orders_the_list_and_a_second_one_turns_it_round(site):
    rows = rows_of(site.runs / "whole")
    page = site.open("/rollouts?run=whole")
    assert page.locator(".heads > *").all_inner_texts()[0].startswith("rollout")
    for order, reverse in (("-tokens", True), ("tokens", False)):
        page.click(".heads button:has-text('tokens')")
        page.wait_for_function("o => location.search.includes(`order=${o}`)", arg=order)
        expected = sorted(rows, key=itemgetter("tokens"), reverse=reverse)  # equal ones in the order of steps
        wait_for_value(lambda: listed(page), [row["name"] for row in expected[:8]])
        expect(page.get_by_label("order")).to_have_value(order)


def test_a_problem_is_seen_among_its_family_and_new_problems_apart_from_known_ones(site):
    reply = site.ask("problems", run="whole", by="problem")
    page = site.open("/problems?run=whole&by=problem")
    page.click(".name-heads button[title='order by rate']")
    names = [row["problem"] for row in site.ask("problems", run="whole", by="problem", sort="-rate")["rows"]]
    read = "links => links.map(link => link.dataset.problem)"
    wait_for_value(lambda: page.eval_on_selector_all(".names a", read), names)
    expect(page.locator("[data-once]")).to_have_attribute("data-once", str(reply["sampled"]["once"]))
    for name, is_first in (("sampled for the first time", True), ("sampled again", False)):
        last = [line["rate"] for line in reply["exposures"] if line["is_first"] is is_first][-1]
        shown = page.locator(f'[data-chart="Mean pass rate"] [data-line="{name}"]').get_attribute("data-y")
        assert float(shown) == pytest.approx(last)
    page = site.open(f"/problem?run=whole&id={PROBLEMS[2].id}")
    neighbours = site.ask("problem", run="whole", id=PROBLEMS[2].id)["neighbours"]
    shown = page.eval_on_selector_all("[data-neighbour]", "rows => rows.map(row => row.dataset.neighbour)")
    assert sorted(shown) == sorted([PROBLEMS[2].id, *(row["problem"] for row in neighbours)])
    expect(page.locator("[data-neighbour].current")).to_have_attribute("data-neighbour", PROBLEMS[2].id)
    page.locator("[data-neighbour] a").first.click()
    page.wait_for_function("id => new URLSearchParams(location.search).get('id') !== id", arg=PROBLEMS[2].id)


def test_tokens_are_coloured_by_their_share_in_the_loss_where_it_was_stored(site):
    run = Path(shutil.copytree(site.runs / "whole", site.runs / "shares"))
    (row, *_), shares = store.read(run, 1), [4.0, 2.0, 0.0, -2.0, float("inf")]
    store.write_shard(store.shard_path(run, 1), [row | {"token_ids": range(5), "loss": shares}])
    page = site.open("/rollouts?run=shares&rollout=1.0.0&colour=loss")
    page.wait_for_selector("[data-legend=loss] .scale")
    scale = page.locator("[data-legend=loss] .scale")
    assert [float(scale.get_attribute(f"data-{end}")) for end in ("low", "high")] == pytest.approx([-4, 4])
    assert scale.text_content() == "-44"  # the ends, with the colours between them
    colours = page.eval_on_selector_all(".token", "tokens => tokens.map(token => token.style.background)")
    strengths = [re.search(r"--(\w+)\D+(\d+)%", colour) for colour in colours[:4]]
    assert [(one[1], int(one[2])) for one in strengths] == [("bad", 60), ("bad", 30), ("good", 0), ("good", 30)]
    page.locator(".token").nth(1).hover()
    expect(page.locator(".token").nth(1)).to_have_attribute("title", re.compile("share in the loss 2"))
    expect(page.get_by_label("colour", exact=True)).to_have_value("loss")
    page = site.open("/rollouts?run=whole&rollout=1.0.0&tok=1")
    options = page.get_by_label("colour", exact=True).locator("option").all_inner_texts()
    assert "share in the loss" not in options and "log-probability" in options


def test_a_link_leads_to_tokens_and_a_click_makes_one(site):
    page = site.open("/rollouts?run=whole&rollout=1.0.0&tok=2-4")

    def expect_linked(*tokens):
        read = "tokens => tokens.map(token => Number(token.dataset.i))"
        wait_for_value(lambda: page.eval_on_selector_all(".token.linked", read), list(tokens))

    expect_linked(1, 2, 3)
    page.click('.token[data-i="0"]')
    expect_linked(0)
    page.wait_for_url(lambda url: "tok=1&" in url + "&")
    page.click('.token[data-i="2"]', modifiers=["Shift"])
    expect_linked(0, 1, 2)
    wait_for_address(page, "tok=1-3")


def test_tags_in_notes_select_the_notes(site):
    for name, note in (("1.0.0", "a #slip and a #Loop"), ("1.0.1", "again #loop, see a/b#c"), ("1.0.2", "no tag")):
        site.ask("annotate", run="whole", name=name, note=note)
    page = site.open("/notes?run=whole")
    expect(page.locator("[data-tag]")).to_have_text(["#loop 2", "#slip 1"])
    page.click("[data-tag=slip]")
    expect(page.locator("[data-note]")).to_have_count(1)
    expect(page.locator("[data-note]")).to_have_attribute("data-note", "1.0.0")
    wait_for_address(page, "tag=slip")


# In the page: three calls of one guard, whose replies are let come in the order 1, 2, 0; the last call fails.
GUARD = """async () => {
    const { latestOnly } = await import('/pages/core.js'), send = window.fetch, replies = [];
    window.fetch = () => new Promise((reply) => replies.push(reply));
    const ask = latestOnly(), results = [0, 1, 2].map(() => ask('words', {}).catch((error) => error.message));
    const answer = (number, status) => replies[number](new Response('{"error": "broken"}', { status }));
    answer(1, 200); answer(2, 400); answer(0, 400);
    window.fetch = send;
    return (await Promise.all(results)).map((result) => result ?? null);
}"""


def test_a_guard_returns_the_reply_to_its_latest_call_alone(site):
    assert site.open("/").evaluate(GUARD) == [None, None, "broken"]
