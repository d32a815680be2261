"""Features of the pages that no other browser test shows: keys, differences, exports, hidden tabs, unknown addresses,
alarms, answers of tools.
"""

import re

import pyarrow.parquet as pq
import pytest

from app.differences import word_difference
from reasoner.runs import rollouts as store
from reasoner.runs.health import Alarm, write_alarms
from tests.app.browsing import NASTY, expect, grow, made_up, wait_for_value
from tests.app.library_of import grouped, num_correct, rows_of, write_run

WHOLE = {"a": "<think>2+2=5. Wait, 2+2=4. Hmm, that is not right. $x$</think> 4", "b": "<think>2+2=5.</think> 5"}
TOLD = "\n<script>alert(1)</script>\n"  # by a tool


@pytest.fixture(scope="module")
def real(runs):
    """The run `well` has no alarm, `nasty` two; a completion of `called` has called a tool."""
    write_run(runs / "whole", steps=12, written=12)
    made_up(runs, "keys", steps=3, texts=list(WHOLE.values()))
    made_up(runs, "well", steps=3, texts=list(WHOLE.values()))
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
    sheet = page.locator("dialog.keys dt").all_inner_texts()
    assert {"j / k", "J / K", "h / l", "[ / ]", "c", "m", "s", "n", "y", "?"} <= set(sheet)
    page.keyboard.press("Escape")
    expect(page.locator("dialog.keys")).to_have_count(0)
    page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    page.keyboard.press("y")
    page.wait_for_function("window.copied === location.href")


def test_two_visits_of_a_problem_differ_word_by_word_in_the_direction_that_is_chosen(site):
    a, b = WHOLE.values()
    page = site.open("/problem?run=keys&id=made/up/1&a=0.1.0&b=2.1.1")
    for first, second in ((a, b), (b, a)):
        wait_for_value(page.locator("[data-diff] .diff").all_text_contents, [first, second])
        pieces = word_difference(first, second)
        for side, tag in (("a", "del"), ("b", "ins")):
            expected = [text for kind, text in pieces if kind == side]
            assert page.locator(f"[data-diff] {tag}").all_text_contents() == expected and expected
        page.get_by_label("A", exact=True).select_option("2.1.1")
        page.get_by_label("B", exact=True).select_option("0.1.0")


def test_solve_rates_and_gaps_of_the_map_are_those_of_the_rows(site):
    groups = grouped(rows_of(site.runs / "whole"), "step", "group")
    page = site.open("/problems?run=whole&by=problem&sort=groups")
    for part in page.locator("[data-part]").all():
        steps = [int(text) for text in re.findall(r"\d+", part.locator("small").inner_text())]
        own = [rows for (step, _), rows in groups.items() if steps[0] <= step <= steps[-1]]
        mixed = sum(0 < num_correct(rows) < len(rows) for rows in own) / len(own)
        assert float(part.get_attribute("data-usable")) == pytest.approx(mixed)
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


def test_the_rollouts_of_a_filter_are_downloaded(site):
    wrong = [row["completion"] for row in rows_of(site.runs / "whole") if row["verdict"] != "correct"]
    page = site.open("/rollouts?run=whole&correct=no")
    page.wait_for_selector('.list[data-state="ready"]')
    with page.expect_download() as download:
        page.get_by_role("link", name="parquet", exact=True).click()
    assert pq.read_table(download.value.path())["completion"].to_pylist() == wrong


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


def test_an_alarm_appears_while_the_page_is_open(site):
    page = site.open("/overview?run=well")
    page.evaluate("window.same = true")
    expect(page.locator("[data-alarm]")).to_have_count(0)
    expect(page.locator('[data-tile="health"]')).to_contain_text("no alarms")
    write_alarms(site.runs / "well", [alarm("sudden")])
    page.wait_for_selector('[data-alarm="sudden"]')
    grow(site.runs / "well", 3, texts=list(WHOLE.values()))
    page.wait_for_selector('[data-tile="steps done"]:has-text("4 / 100")')
    expect(page.locator("[data-alarm]")).to_have_count(1)
    assert page.evaluate("window.same") is True


def test_what_a_tool_returned_is_marked_counted_and_escaped(site):
    page = site.open("/rollouts?run=called&rollout=0.0.0")
    expect(page.locator('.pane[data-rollout="0.0.0"] [data-fact="tool calls"]')).to_have_text("1, 1 failed")
    mark = page.locator(".pane mark.observation")
    expect(mark).to_have_count(1)
    assert mark.evaluate("one => one.textContent") == TOLD
    assert page.locator(".pane script").count() == 0
    page.goto(f"{site.url}/rollouts?run=called&rollout=0.0.1")
    expect(page.locator('.pane[data-rollout="0.0.1"] [data-fact="verdict"]')).to_be_visible()
    assert page.locator('.pane [data-fact="tool calls"]').count() == 0
