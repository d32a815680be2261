"""Reading rollouts in a real browser: ordered columns, colour scales, links to tokens, and tags."""

import re
import shutil
from operator import itemgetter
from pathlib import Path

import pytest

from reasoner.runs import rollouts as store
from tests.app.browsing import ROOT, expect, wait_for_address, wait_for_value
from tests.app.library_of import PROBLEMS, rows_of, write_run


@pytest.fixture(scope="module")
def real(runs):
    shutil.copy(ROOT / "reasoner" / "pretrain" / "model" / "tokenizer.json", write_run(runs / "whole", steps=8))
    return runs


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


def problems(page):
    return page.eval_on_selector_all(".names a", "links => links.map(link => link.dataset.problem)")


def test_a_problem_is_seen_among_its_family_and_new_problems_apart_from_known_ones(site):
    reply = site.ask("problems", run="whole", by="problem")
    page = site.open("/problems?run=whole&by=problem")
    for order, mark in (("-rate", "▾"), ("rate", "▴")):
        page.click(".name-heads button[title='order by rate']")
        page.wait_for_function("o => location.search.includes(`sort=${o}&`) || location.search.endsWith(o)", arg=order)
        expect(page.locator(".name-heads [aria-pressed=true]")).to_have_text(f"rate {mark}")
        names = [row["problem"] for row in site.ask("problems", run="whole", by="problem", sort=order)["rows"]]
        wait_for_value(lambda: problems(page), names)
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


def test_tokens_are_coloured_by_the_importance_ratio_where_it_was_stored(site):
    run = Path(shutil.copytree(site.runs / "whole", site.runs / "ratios"))
    (row, *_), ratios = store.read(run, 1), [0.25, 0.5, 1.0, 2.0, float("inf")]
    store.write_shard(store.shard_path(run, 1), [row | {"token_ids": range(5), "importance_ratio": ratios}])
    page = site.open("/rollouts?run=ratios&rollout=1.0.0&colour=importance_ratio")
    page.wait_for_selector("[data-legend=importance_ratio] .scale")
    scale = page.locator("[data-legend=importance_ratio] .scale")
    assert [float(scale.get_attribute(f"data-{end}")) for end in ("low", "high")] == pytest.approx([0.25, 4])
    assert scale.text_content() == "0.2504"  # the ends, with the colours between them
    colours = page.eval_on_selector_all(".token", "tokens => tokens.map(token => token.style.background)")
    shares = [re.search(r"--(\w+)\D+(\d+)%", colour) for colour in colours[:4]]
    assert [(share[1], int(share[2])) for share in shares] == [("bad", 60), ("bad", 30), ("bad", 0), ("good", 30)]
    page.locator(".token").nth(1).hover()
    expect(page.locator(".token").nth(1)).to_have_attribute("title", re.compile("importance ratio 0[.]5"))
    expect(page.get_by_label("colour", exact=True)).to_have_value("importance_ratio")
    page = site.open("/rollouts?run=whole&rollout=1.0.0&tok=1")
    options = page.get_by_label("colour", exact=True).locator("option").all_inner_texts()
    assert "importance ratio" not in options and "log-probability" in options


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
