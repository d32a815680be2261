"""Every page in a real browser over a real run of the embedded base, compared with the shards."""

import re
import shutil
from statistics import fmean
from urllib.parse import parse_qs

import pytest

from reasoner.analysis.reflection import gallery, study, timeline, totals
from reasoner.evals.compare import compare_metrics, samples_by_problem
from reasoner.runs.metrics import read_evals, read_heldout, read_metrics
from reasoner.runs.rollout_table import RolloutTable
from tests.app.browsing import NASTY, expect, grow, text, wait_for_address, wait_for_value
from tests.app.library_of import grouped, rows_of, write_pipeline


def test_runs_are_listed_with_their_state_and_a_damaged_one_with_its_reason(site):
    page = site.open("/")
    assert "finished" in text(page, 'tr[data-run="real"]')
    assert "stopped" in text(page, 'tr[data-run="growing"]') or "starting" in text(page, 'tr[data-run="growing"]')
    assert "config.json is damaged" in text(page, "tr.damaged")
    pass_at_1 = read_heldout(site.runs / "real")["after"]["sampled"]["metrics"]["pass@1"]["value"]
    assert f"{100 * pass_at_1:.1f} %" in text(page, 'tr[data-run="real"]')
    page.get_by_role("button", name="step").click()
    page.get_by_label("choose real").check()
    page.get_by_label("choose other").check()
    page.get_by_role("button", name="compare").click()
    page.wait_for_url("**/compare?runs=real%2Cother")


def test_the_page_shows_a_pipeline_as_a_row_of_stages(site):
    write_pipeline(site.runs / "r1", data=NASTY)
    try:
        page = site.open("/")
        tiles = page.locator('[data-pipeline="r1"] [data-stage]')
        texts = [text.split("\n") for text in tiles.all_inner_texts()]
        assert texts[0][:3] == ["cold-sft", "done", "pass@1 62.5 %"]
        assert "12,345 tokens" in texts[1] and "accuracy 62.5 %" in texts[2] and "waiting" in texts[4]
        assert texts[3][1] in ("stopped", "starting")  # as its run
        assert NASTY[:30] in str(tiles.nth(1).get_attribute("title"))  # as text
        assert page.evaluate("window.PWNED") is None
        expect(page.locator('tr[data-run="r1"]')).to_have_count(0)  # a pipeline is no run
        page.wait_for_function("document.documentElement.scrollWidth <= innerWidth")
        page.locator('[data-stage="cold-sft"] a').click()
        page.wait_for_url("**/overview?run=real")
    finally:
        shutil.rmtree(site.runs / "r1")


def test_the_curves_are_the_metrics_and_the_shards(site):
    page = site.open("/overview?run=real")
    metrics, validations = read_metrics(site.runs / "real"), read_evals(site.runs / "real")
    rows = rows_of(site.runs / "real")

    def last(chart, line):
        return float(page.locator(f'[data-chart="{chart}"] [data-line="{line}"]').get_attribute("data-y"))

    assert last("Accuracy", "pass@1") == validations[-1]["sampled"]["metrics"]["pass@1"]["value"]
    assert last("Accuracy", "cons@4") == validations[-1]["sampled"]["metrics"]["cons@4"]["value"]
    assert last("Reward", "correct") == metrics[-1]["correct"]
    assert last("Reward", "reward") == pytest.approx(fmean(row["reward"] for row in rows if row["step"] == 2), abs=1e-6)
    wrong = [len(row["token_ids"]) for row in rows if row["step"] == 2 and row["verdict"] != "correct"]
    assert last("Response length", "wrong") == pytest.approx(fmean(wrong))
    assert "3 / 3" in text(page, '[data-tile="steps done"]')
    expect(page.locator('[data-chart="Reward"]')).to_have_attribute("data-points", "12")  # 4 lines of 3 steps
    # step 0 is the model before training, here, on the page of failures and in the names of rollouts
    expect(page.locator('[data-chart="Reward"] [data-range]')).to_have_text("step 0 to 2")
    expect(page.locator('[data-chart="Accuracy"] [data-range]')).to_have_text("step 0 to 3")
    site.open("/failures?run=real")
    expect(page.locator("[data-range]")).to_have_text("step 0 to 2")


def test_click_on_a_curve_opens_its_rollouts_and_back_returns(site):
    page = site.open("/overview?run=real")
    box = page.locator('[data-chart="Reward"] canvas').bounding_box()
    page.mouse.click(box["x"] + box["width"] - 15, box["y"] + box["height"] / 2)
    page.wait_for_url("**/rollouts?run=real&step=2")
    site.ready()
    page.wait_for_selector('.list[data-state="ready"]')
    expect(page.locator("[data-count]")).to_have_text("16")
    page.go_back()
    page.wait_for_url("**/overview?run=real")
    page.wait_for_selector('[data-chart="Reward"]')


GROWING = {
    "rollouts": '[data-count]:has-text("{1}")', "problems": 'canvas[data-cells="{0}"]',
    "reflection": '[data-chart="completions with wait"][data-points="{0}"]',
}  # fmt: skip


def test_pages_grow_while_a_writer_appends_without_a_reload(site):
    run = site.runs / "growing"
    for path, shown in GROWING.items():  # the overview: test_charts.py
        page = site.open(f"/{path}?run=growing")
        page.evaluate("window.same = true")
        step = len(read_metrics(run))
        grow(run, step, texts=["<think>2+2=5. Wait, 2+2=4.</think> <answer>4</answer>", "5", "6"])
        page.wait_for_selector(shown.format(step + 1, 6 * (step + 1)))
        assert page.evaluate("window.same") is True


def test_the_map_of_a_very_long_run_is_painted(site):
    steps = 30_000  # with four pixels each more than a canvas may be wide

    def lengthen(route):
        reply = route.fetch()
        route.fulfill(response=reply, json=reply.json() | {"steps": list(range(steps))})

    site.page.route("**/ask/problems", lengthen)
    page = site.open("/problems?run=growing")
    page.wait_for_selector("canvas[data-cells]")
    (width, first, last) = page.locator("canvas[data-cells]").evaluate(
        """canvas => {
            const alpha = (x) => canvas.getContext('2d').getImageData(x, 2, 1, 1).data[3];
            return [canvas.clientWidth, alpha(0), alpha(canvas.width - 1)];
        }"""
    )
    assert (width, first, last) == (4 * steps, 255, 255)


def test_group_page_shows_rewards_and_advantages(site):
    groups = list(grouped(rows_of(site.runs / "real"), "step", "group").values())
    mixed = next(own for own in groups if len({row["reward"] for row in own}) > 1)
    flat = [own for own in groups if len({row["reward"] for row in own}) == 1]
    page = site.open(f"/group?run=real&step={mixed[0]['step']}&group={mixed[0]['group']}")
    shown = page.evaluate("[...document.querySelectorAll('[data-advantage]')].map(e => +e.dataset.advantage)")
    assert sorted(shown) == sorted(row["advantage"] for row in mixed)
    assert sum(shown) == pytest.approx(0, abs=1e-3)
    expect(page.locator("[data-diff] .diff")).to_have_count(2)
    page.keyboard.press("l")
    wait_for_address(page, "rollout=")
    for own in flat[:1]:
        page = site.open(f"/group?run=real&step={own[0]['step']}&group={own[0]['group']}")
        assert "no gradient" in text(page, "[data-zero-variance]")


def test_reflection_page_shows_the_study(site):
    table = RolloutTable(site.runs / "real")
    study(table)
    wanted, cards = totals(timeline(table)), gallery(table)
    page = site.open("/reflection?run=real")
    page.wait_for_selector('[data-analyzed="3"]')
    for name, count in wanted["outcomes"].items():
        assert text(page, f'[data-bar="{name}"] b') == f"{count:,}"
    assert text(page, '[data-tile="cues"] b') == f"{sum(wanted['labels'].values()):,}"
    shown = page.evaluate("[...document.querySelectorAll('[data-card]')].map(c => [c.dataset.card, +c.dataset.score])")
    assert [name for name, _ in shown][:5] == [card["name"] for card in cards][:5]
    assert [score for _, score in shown] == sorted((score for _, score in shown), reverse=True)
    if shown:
        page.locator("[data-card] a").first.click()
        page.wait_for_selector(f'.pane[data-rollout="{shown[0][0]}"] mark.cue')


def test_runs_are_compared_problem_by_problem(site):
    page = site.open("/compare?run=real")
    expect(page.locator("#reasoner main")).to_contain_text("Choose two to six runs")
    expect(page.get_by_label("real", exact=True)).to_be_checked()
    page.get_by_label("other", exact=True).check()
    page.wait_for_url("**/compare?run=real&runs=real%2Cother")
    site.ready()
    folders, spec = [site.runs / name / "heldout" / "after" for name in ("other", "real")], "generated:heldout"
    for one in compare_metrics({spec: [samples_by_problem(folder, spec) for folder in folders]}):
        row = page.locator(f'[data-difference="{one.metric}"]')
        assert float(row.get_attribute("data-mean")) == pytest.approx(one.difference.mean)
        assert row.locator("td").all_inner_texts()[1:3] == [f"{100 * one.a:.1f} %", f"{100 * one.b:.1f} %"]
    heads = page.locator("table:has([data-difference]) th").all_inner_texts()
    assert heads[1:3] == ["other", "real"] and "seed" in text(page, "main")


# In the page: on a busy machine all tokens may be there before the test sees one.
STOP_AT_THE_FIRST_TOKEN = """() => {
    const results = document.querySelector('[data-results]');
    new MutationObserver((_, observer) => {
        if (!results.querySelector('.token')) return;
        observer.disconnect();
        [...document.querySelectorAll('button')].find((button) => button.textContent === 'stop').click();
    }).observe(results, {childList: true, subtree: true});
}"""


def test_chat_samples_grades_and_stops(site):
    page = site.open("/chat?model=real&question=What%20is%205%20%2B%203%3F&gold=8")
    page.locator('[data-number="samples"]').fill("1")
    page.locator('[data-number="max_tokens"]').fill("60")
    page.get_by_role("button", name="ask").click()
    page.wait_for_selector('[data-chat="done"]')
    answers = page.locator("[data-answers]")
    assert answers.locator(".token").count() > 3 and answers.locator(".badge").count() >= 1
    expect(answers.locator("[role=status]")).to_have_text(re.compile("done · [01] of 1 correct"))
    page.locator('[data-number="samples"]').fill("16")
    page.locator('[data-number="max_tokens"]').fill("280")
    page.evaluate(STOP_AT_THE_FIRST_TOKEN)
    page.get_by_role("button", name="ask").click()
    page.wait_for_selector('[data-chat="stopped"]')
    assert page.locator("[data-results] .token").count() > 0


NARROW = {"width": 390, "height": 844}


def expect_no_sideways_scrolling(page, *case):
    is_within = "document.documentElement.scrollWidth <= innerWidth"
    wait_for_value(lambda: (*case, page.evaluate(is_within)), (*case, True))


HOSTILE_PLACES = {
    "/rollouts?run=nasty&rollout=0.0.0": [".pane .parts", ".pane .question"],
    "/rollouts?run=nasty&rollout=0.0.1": ['.pane [data-part="think"]'],
    "/group?run=nasty&step=0&group=0": ['[data-column="0.0.0"]', "[data-diff]"],
    "/problem?run=nasty&id=made/up/0": [".question"],
    "/reflection?run=nasty": ["[data-gallery]"],
    "/failures?run=nasty": ["[data-gallery]"],
    "/overview?run=nasty": ["[data-sync]"],
    "/notes?run=nasty": ["[data-note] .text"],
}


def test_hostile_text_is_shown_literally_within_a_narrow_window(site):
    site.page.set_viewport_size(NARROW)
    for path, where in ((path, where) for path, places in HOSTILE_PLACES.items() for where in places):
        page = site.open(path)
        page.wait_for_selector("[data-card]" if where == "[data-gallery]" else where)
        shown = page.evaluate("s => document.querySelector(s).textContent", where)
        for piece in ('onerror="window.PWNED=1">', "${6*7} {{6*7}} `back`", "$5 and $10"):
            assert piece in shown, (path, where, piece)
        assert "</script><script>window.PWNED=2</script>" in shown, (path, where)
        assert "\x00" in shown or "\ufffd" in shown or "⟨0000⟩" in shown
        assert page.evaluate("window.PWNED") is None, path
        unsafe = "document.querySelectorAll('#reasoner img, #reasoner script, #reasoner iframe').length"
        assert page.evaluate(unsafe) == 0, path
        expect_no_sideways_scrolling(page, path)


def test_fifty_thousand_tokens_are_shown_and_the_lists_are_safe(site):
    page = site.open("/rollouts?run=nasty&rollout=0.1.2")
    page.wait_for_selector('.pane[data-rollout="0.1.2"]')
    assert len(text(page, '[data-part="think"]')) > 240_000
    for path in ("/rollouts?run=nasty", "/problems?run=nasty&by=problem", "/"):
        page = site.open(path)
        assert page.evaluate("window.PWNED") is None
        assert "\u202e" not in page.evaluate("document.querySelector('main').textContent.split('rtl:')[0]")
    assert NASTY[:20] in site.ask("rollouts", run="nasty")["rows"][0]["head"]


def test_no_page_is_wider_than_the_window(site):
    for path in ("/", "/problems?run=real", "/evals", "/compare?runs=real,other", "/chat?model=real"):
        site.page.set_viewport_size(NARROW)
        page = site.open(path)
        for width in (390, 1440):
            page.set_viewport_size(NARROW | {"width": width})
            expect_no_sideways_scrolling(page, path, width)


def test_colour_theme_is_remembered(site):
    page = site.open("/overview?run=real")
    colour = "getComputedStyle(document.querySelector('.rz')).backgroundColor"
    before = page.evaluate(colour)
    page.get_by_label("dark or light").click()
    page.wait_for_function(f"before => {colour} !== before", arg=before)
    after = page.evaluate(colour)
    site.open("/overview?run=real", reload=True)
    wait_for_value(lambda: page.evaluate(colour), after)


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
    export = page.get_by_role("link", name="parquet", exact=True).get_attribute("href")
    assert parse_qs(export.partition("?")[2]) == {
        "run": ["real"], "format": ["parquet"], "subject": [some], "correct": ["no"],
    }  # fmt: skip
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


def test_tokens_are_sent_when_they_are_coloured_and_carry_their_figures(site):
    row = next(r for r in rows_of(site.runs / "real") if r["entropy"])
    with site.page.expect_request("**/ask/rollout") as plain:
        page = site.open(f"/rollouts?run=real&rollout={row['name']}")
    page.wait_for_selector('.pane[data-state="ready"]')
    with page.expect_request("**/ask/rollout") as coloured:
        page.get_by_label("colour").select_option("entropy")
    page.wait_for_selector(".tokens .token")
    assert [one.value.post_data_json["with_tokens"] for one in (plain, coloured)] == [False, True]
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
