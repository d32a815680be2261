"""The page of failures in a real browser: its counts are those of the rules, and its examples are marked text."""

import re
from collections import Counter

import pytest

from reasoner.analysis.failures import Response, failure_of
from tests.app.browsing import NASTY, expect, made_up, wait_for_address, wait_for_value
from tests.app.library_of import rows_of, until, write_run


@pytest.fixture(scope="module")
def real(runs):
    write_run(runs / "whole", steps=4, written=4)
    texts = ["2+2=4", f"{NASTY} 2+2=5. <script>window.PWNED=4</script>", f"<think>{NASTY}</think>"]
    made_up(runs, "nasty", steps=1, texts=texts, question=NASTY)
    return runs


def analysed(site, run):
    """Open the page when all steps have been analysed."""
    assert until(lambda: len((reply := site.ask("failures", run=run))["timeline"]) == reply["num_steps"] > 0)
    return site.open(f"/failures?run={run}")


def causes_of(rows):
    """The cause of each failure by the rollout's name, without the index."""
    keys = ("completion", "gold", "verifier", "verdict", "extracted", "finish")
    failures = {row["name"]: failure_of(Response(*(row[key] for key in keys))) for row in rows}
    return {name: failure.cause for name, failure in failures.items() if failure is not None}


def test_the_page_counts_what_the_rules_find(site):
    causes = causes_of(rows_of(site.runs / "whole"))
    page = analysed(site, "whole")
    counts = page.eval_on_selector_all("tr[data-cause]", "rows => rows.map(r => [r.dataset.cause, +r.dataset.count])")
    assert {name: n for name, n in counts if n} == Counter(causes.values())
    last_step = Counter(cause for name, cause in causes.items() if name.startswith("3."))
    legend = page.eval_on_selector_all(".legend .key", "keys => keys.map(k => [k.dataset.line, Number(k.dataset.y)])")
    assert dict(legend) == {name: last_step[name] / 12 for name, n in counts if n}


def test_a_cause_selects_its_examples_and_opens_its_rollouts(site):
    causes = causes_of(rows_of(site.runs / "whole"))
    page = analysed(site, "whole")
    cause = Counter(causes.values()).most_common()[-1][0]
    own = [name for name, one in causes.items() if one == cause]
    page.click(f'tr[data-cause="{cause}"] button')
    cards = "cards => cards.map(card => card.dataset.card)"
    wait_for_value(lambda: page.eval_on_selector_all(".gallery article", cards), own[::-1][:12])
    causes_shown = page.eval_on_selector_all(".gallery article", "cards => cards.map(card => card.dataset.cause)")
    assert set(causes_shown) == {cause}
    wait_for_address(page, f"cause={cause.replace(' ', '+')}")
    page.click(f'tr[data-cause="{cause}"] a')
    page.wait_for_selector('.list[data-state="ready"]')
    expect(page.locator("[data-count]")).to_have_text(str(len(own)))


def test_hidden_causes_leave_the_stack(site):
    page = analysed(site, "whole")
    figure = page.locator('[data-chart="Failures by cause"]')
    expect(figure).to_have_attribute("data-yticks", re.compile(r"\|"))
    before = figure.get_attribute("data-yticks")
    for key in figure.locator(".key").all()[1:]:
        key.click()
    expect(figure).to_have_attribute("data-points", "4")
    expect(figure).not_to_have_attribute("data-yticks", before)


def test_a_slip_is_marked_and_hostile_text_is_text(site):
    page = analysed(site, "nasty")
    card = page.locator('article[data-card="0.0.1"]')
    expect(card.locator("mark")).to_have_text("2+2=5")
    expect(card.locator("[data-detail]")).to_have_text("calculation 1 of 1: 2+2 = 4, not 5")
    assert "<script>window.PWNED=4</script>" in card.inner_text()
    assert page.evaluate("window.PWNED") is None
