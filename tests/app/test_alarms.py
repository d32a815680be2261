"""Alarms in a real browser: in the list of runs, as text on the overview, and updated while the run continues."""

import pytest

from reasoner.runs.health import Alarm, record
from tests.app.browsing import NASTY, expect, grow, made_up

SAID = ["<think>2+2=4.</think> <answer>4</answer>", "5"]


def alarm(name, *, step=1):
    return Alarm(name, step, step, 0.5, 0.3, f"when {name}", f"meaning {name}", f"help {name}")


@pytest.fixture(scope="module")
def real(runs):
    """Runs that were made up: `well` has no alarm, `nasty` two."""
    made_up(runs, "well", steps=3, texts=SAID)
    record(made_up(runs, "nasty", steps=3, texts=SAID), [alarm("first"), alarm(NASTY, step=2)])
    return runs


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
    record(site.runs / "well", [alarm("sudden")])
    page.wait_for_selector('[data-alarm="sudden"]')
    grow(site.runs / "well", 3, texts=SAID)
    page.wait_for_selector('[data-tile="steps done"]:has-text("4 / 100")')
    expect(page.locator("[data-alarm]")).to_have_count(1)
    assert page.evaluate("window.same") is True
