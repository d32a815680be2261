"""Charts in a real browser: readable and correct ticks, series that can be hidden, a zoom that can be reset."""

import json
import re
from itertools import pairwise

import pytest

from tests.app.browsing import grow, made_up

RUN = "curves"


@pytest.fixture(scope="module")
def real(tmp_path_factory, chromium):
    """A run of 40 steps whose values are small, large, constant and zero."""
    runs = tmp_path_factory.mktemp("charts") / "runs"
    path = made_up(runs, RUN, steps=40, texts=["4", "5"]) / "metrics.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        step = line["step"]
        line |= {
            "correct": 0.2 + step / 100,
            "well_formed": 0.9,
            "reward/mean": 10.0 + step,
            "lr": 1e-6,
            "entropy": 0.5,
        }
        line |= {"frac_reward_zero_std": 0.0001 * step, "completions/clipped_ratio": 0.0, "tokens_per_second": 40_000.0}
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return runs


def chart(page, title):
    return page.locator(f'[data-chart="{title}"]')


def ticks(page, title, axis="y"):
    return chart(page, title).get_attribute(f"data-{axis}ticks").split("|")


def drag(page, title, start, end):
    """From one share of the canvas's width to another."""
    box = chart(page, title).locator("canvas").bounding_box()
    page.mouse.move(box["x"] + start * box["width"], box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + end * box["width"], box["y"] + 50, steps=4)
    page.mouse.up()


def value(text):
    """What a label says."""
    number, unit = re.fullmatch(r"(-?[\d.,]+(?:e-?\d+)?)([kMG]| %)?", text).groups()
    return float(number.replace(",", "")) * {None: 1, "k": 1e3, "M": 1e6, "G": 1e9, " %": 0.01}[unit]


TICKS = "async (values) => (await import('/pages/axis.js')).ticksOf(...values)"
RANGES = [
    (0, 0.004, {"isShare": True}),
    (0, 1, {"isShare": True}),
    (0.41, 0.43, {"isShare": True}),
    (0.98765, 0.98766, {"isShare": True}),
    (0, 60, {"isWhole": True}),
    (0, 3, {"isWhole": True}),
    (17, 19, {"isWhole": True}),
    (0, 1_000_000, {"isWhole": True}),
    (0, 74_400_000, {}),
    (123_456_000, 123_457_000, {}),
    (9e-7, 1.1e-6, {}),
    (0, 1.1e-5, {}),
    (-0.3, 0.7, {}),
    (0.0999, 0.1001, {}),
    (5e-5, 20, {"isLog": True}),
    (1e-9, 1e9, {"isLog": True}),
    (0.2, 0.9, {"isLog": True}),
    (0.2, 0.21, {"isLog": True, "isShare": True}),
]


def test_ticks_are_round_distinct_and_correct(site):
    page = site.open("/")
    for low, high, options in RANGES:
        for count in (2, 4, 8):
            check_ticks(page.evaluate(TICKS, [low, high, count, options]), low, high, count, options)
    for arguments in ([5, 5, 4], [1e9, 1e9 + 1e-6, 4]):  # no width
        assert len(page.evaluate(TICKS, arguments)) == 1


def check_ticks(ticks, low, high, count, options):
    places, texts = (
        [tick["at"] for tick in ticks],
        [tick["text"] for tick in ticks],
    )
    assert 2 <= len(ticks) <= 2 * count + 4
    assert all(low - 1e-6 * abs(low) <= at <= high * (1 + 1e-6) for at in places)
    assert len(set(texts)) == len(texts)
    assert [value(text) for text in texts] == pytest.approx(places, rel=1e-9, abs=1e-18)  # nothing is rounded away
    if not options.get("isLog"):
        steps = {float(f"{b - a:.6g}") for a, b in pairwise(places)}
        assert len(steps) == 1 and f"{steps.pop():e}"[0] in "125"
    if options.get("isWhole"):
        assert all(at == int(at) for at in places) and all("." not in text for text in texts if text[-1].isdigit())


def test_axes_have_labels_of_their_own_in_the_units_of_the_values(site):
    page = site.open(f"/overview?run={RUN}")
    assert ticks(page, "zero-variance groups") == ["0.0 %", "0.2 %", "0.4 %"]
    assert ticks(page, "truncated completions")[0] == "0 %" and "-" not in "".join(ticks(page, "truncated completions"))
    assert "1.0e-6" in ticks(page, "learning rate")
    assert ticks(page, "Reward", "x") == ["5", "10", "15", "20", "25", "30", "35", "40"]
    assert chart(page, "Response length").locator("figcaption").inner_text() == "Response length, tokens"
    for plot in page.locator("[data-yticks]").all():
        for axis in ("data-xticks", "data-yticks"):
            texts = plot.get_attribute(axis).split("|")
            assert len(set(texts)) == len(texts), texts


def test_legend_hides_a_series_and_rescales_the_axis(site):
    page = site.open(f"/overview?run={RUN}")
    key = chart(page, "Reward").locator('[data-line="reward"]')
    assert key.get_attribute("aria-pressed") == "true"
    assert (ticks(page, "Reward")[-1], chart(page, "Reward").get_attribute("data-points")) == ("50", "120")
    key.click()
    assert key.get_attribute("aria-pressed") == "false"
    assert (ticks(page, "Reward")[-1], chart(page, "Reward").get_attribute("data-points")) == ("0.8", "80")
    page.keyboard.press("Enter")
    assert key.get_attribute("aria-pressed") == "true" and ticks(page, "Reward")[-1] == "50"
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    assert chart(page, "Reward").locator('[data-line="correct"]').get_attribute("aria-pressed") == "false"
    for name in ("reward", "well-formed"):
        chart(page, "Reward").locator(f'[data-line="{name}"]').click()
    assert chart(page, "Reward").get_attribute("data-points") == "0"


def test_hidden_series_stay_hidden_and_focused_when_the_run_grows(site):
    run = made_up(site.runs, "growing", steps=3, texts=["4", "5"])
    page = site.open("/overview?run=growing")
    key = chart(page, "Reward").locator('[data-line="reward"]')
    key.click()
    grow(run, 3, texts=["4", "5"])
    page.wait_for_selector('[data-tile="step"]:has-text("4 / 100")')
    assert key.get_attribute("aria-pressed") == "false"
    assert page.evaluate("document.activeElement.dataset.line") == "reward"
    assert chart(page, "Reward").get_attribute("data-points") == "4"


def test_zoom_shows_its_range_and_can_be_reset(site):
    page = site.open(f"/overview?run={RUN}")
    reward = chart(page, "Reward")
    range_text = reward.locator("[data-range]")
    assert range_text.inner_text() == "step 1 to 40" and not reward.locator(".reset").is_visible()
    drag(page, "Reward", 0.3, 0.6)
    first, last = map(int, re.fullmatch(r"step (\d+) to (\d+) of 1 to 40", range_text.inner_text()).groups())
    assert 8 <= first <= 14 and 20 <= last <= 27
    assert set(ticks(page, "Reward", "x")) <= {str(step) for step in range(first, last + 1)}
    reward.get_by_role("button", name="reset zoom").click()
    assert range_text.inner_text() == "step 1 to 40" and reward.get_attribute("data-zoom") is None
    assert not reward.locator(".reset").is_visible()
    drag(page, "Reward", 0.5, 1.3)  # let go outside the chart
    assert re.fullmatch(r"step \d+ to 40 of 1 to 40", range_text.inner_text())
    page.get_by_label("x axis").select_option("minutes")
    assert (
        range_text.inner_text().startswith("minutes") and "of" not in range_text.inner_text()
    )  # the zoom was of steps


def test_a_narrow_zoom_shows_at_least_one_whole_step(site):
    page = site.open(f"/overview?run={RUN}")
    drag(page, "Reward", 0.5, 0.515)
    first, last = map(
        int, re.match(r"step (\d+) to (\d+) of", chart(page, "Reward").locator("[data-range]").inner_text()).groups()
    )
    assert last == first + 1 and ticks(page, "Reward", "x") == [str(first), str(last)]


def test_values_that_are_not_above_zero_leave_the_logarithmic_axis_empty(site):
    page = site.open(f"/overview?run={RUN}&log=1")
    assert chart(page, "truncated completions").get_attribute("data-points") == "0"
    assert ticks(page, "zero-variance groups")[0] == "0.01 %"
