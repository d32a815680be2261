"""Overview in a real browser: scores, readable and correct ticks, hidden series, a zoom that can be reset."""

import json
import re
import shutil
from itertools import pairwise

import pytest

from reasoner.runs import rollouts as store
from tests.app.browsing import expect, grow, made_up, wait_for_value
from tests.app.library_of import write_run
from tests.app.test_overview import give_reference, long_run

RUN = "curves"


@pytest.fixture(scope="module")
def real(runs):
    """A run of 40 steps whose values are small, large, constant and zero; `yes` in its band, `no` outside; `long`."""
    for name, low in (("yes", -1.0), ("no", 2.0)):
        give_reference(write_run(runs / name, steps=8, written=8), low=low, high=low + 3)
    write_heldout(runs / "no", before=0.1, after=0.8)
    long_run(runs, steps=8000)
    path = made_up(runs, RUN, steps=40, texts=["4", "5"]) / "metrics.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        step = line["step"]
        line |= {
            "correct": 0.2 + step / 100, "well_formed": 0.9, "reward/mean": 10.0 + step, "lr": 1e-6, "entropy": 0.5,
        }  # fmt: skip
        line |= {"frac_reward_zero_std": 0.0001 * step, "completions/clipped_ratio": 0.0, "tokens_per_second": 40_000.0}
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return runs


def chart(page, title):
    return page.locator(f'[data-chart="{title}"]')


def ticks(page, title, axis="y"):
    """The labels of an axis; [""] where nothing is drawn."""
    return (chart(page, title).get_attribute(f"data-{axis}ticks") or "").split("|")


def wait_for_reward(page, *, highest, points):
    """Wait until the chart of the reward ends at this label and has so many points."""
    reward = chart(page, "Reward")
    wait_for_value(lambda: (ticks(page, "Reward")[-1], reward.get_attribute("data-points")), (highest, points))


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


TICKS = """async (cases) => {
    const { ticksOf } = await import('/pages/axis.js');
    return cases.map((values) => ticksOf(...values));
}"""
RANGES = [
    (0, 0.004, {"isShare": True}), (0, 1, {"isShare": True}), (0.41, 0.43, {"isShare": True}),
    (0.98765, 0.98766, {"isShare": True}), (0, 60, {"isWhole": True}), (0, 3, {"isWhole": True}),
    (17, 19, {"isWhole": True}), (0, 1_000_000, {"isWhole": True}), (0, 74_400_000, {}), (123_456_000, 123_457_000, {}),
    (9e-7, 1.1e-6, {}), (0, 1.1e-5, {}), (-0.3, 0.7, {}), (0.0999, 0.1001, {}), (5e-5, 20, {"isLog": True}),
    (1e-9, 1e9, {"isLog": True}), (0.2, 0.9, {"isLog": True}), (0.2, 0.21, {"isLog": True, "isShare": True}),
]  # fmt: skip


def test_ticks_are_round_distinct_and_correct(site):
    page = site.open("/")
    cases = [[low, high, count, options] for low, high, options in RANGES for count in (2, 4, 8)]
    for ticks, case in zip(page.evaluate(TICKS, cases), cases, strict=True):
        check_ticks(ticks, *case)
    without_width = [[5, 5, 4], [1e9, 1e9 + 1e-6, 4]]
    assert [len(ticks) for ticks in page.evaluate(TICKS, without_width)] == [1, 1]


def check_ticks(ticks, low, high, count, options):
    places, texts = ([tick["at"] for tick in ticks], [tick["text"] for tick in ticks])
    assert 2 <= len(ticks) <= 2 * count + 4
    assert all(low - 1e-6 * abs(low) <= at <= high * (1 + 1e-6) for at in places)
    assert len(set(texts)) == len(texts)
    assert [value(text) for text in texts] == pytest.approx(places, rel=1e-9, abs=1e-18)  # nothing is rounded away
    if not options.get("isLog"):
        steps = {float(f"{b - a:.6g}") for a, b in pairwise(places)}
        assert len(steps) == 1 and f"{steps.pop():e}"[0] in "125"
    if options.get("isWhole"):
        assert all(at == int(at) for at in places) and all("." not in text for text in texts if text[-1].isdigit())


def test_many_charts_share_one_listener_and_follow_the_theme(site_of_its_own):
    site_of_its_own.page.add_init_script(
        """(() => { window.listeners = 0; const add = window.addEventListener;
        window.addEventListener = function (type, ...rest) {
            if (type === 'themechange') window.listeners += 1;
            return add.call(this, type, ...rest);
        }; })()"""
    )
    page = site_of_its_own.open(f"/overview?run={RUN}")
    assert page.locator("figure.chart").count() > 10 and page.evaluate("window.listeners") == 1
    canvas = chart(page, "Reward").locator("canvas")
    before = canvas.evaluate("canvas => canvas.toDataURL()")
    page.evaluate("document.getElementById('reasoner').style.setProperty('--c1', 'rgb(1, 2, 3)')")
    page.evaluate("dispatchEvent(new Event('themechange'))")
    wait_for_value(lambda: canvas.evaluate("canvas => canvas.toDataURL()") != before, True)


def test_axis_of_many_points_has_their_range(site):
    page = site.open("/")
    text = page.evaluate(
        """async () => {
            const { chart } = await import('/pages/chart.js');
            const points = Array.from({length: 300000}, (_, i) => ({x: i, y: i % 7}));
            const figure = chart({title: 'many', lines: [{name: 'a', points}]});
            document.body.append(figure);
            figure.draw();
            return figure.querySelector('[data-range]').textContent;
        }"""
    )
    assert text == "step 0 to 299,999"


def test_axes_have_labels_of_their_own_in_the_units_of_the_values(site):
    page = site.open(f"/overview?run={RUN}")
    wait_for_value(lambda: ticks(page, "zero-variance"), ["0.0 %", "0.2 %", "0.4 %"])
    wait_for_value(lambda: ticks(page, "Reward", "x"), ["0", "5", "10", "15", "20", "25", "30", "35"])
    assert ticks(page, "truncated")[0] == "0 %" and "-" not in "".join(ticks(page, "truncated"))
    assert "1.0e-6" in ticks(page, "learning rate")
    expect(chart(page, "Response length").locator("figcaption")).to_have_text("Response length, tokens")


def test_legend_hides_a_series_and_rescales_the_axis(site):
    page = site.open(f"/overview?run={RUN}")
    key = chart(page, "Reward").locator('[data-line="reward"]')
    expect(key).to_have_attribute("aria-pressed", "true")
    wait_for_reward(page, highest="50", points="120")
    key.click()
    expect(key).to_have_attribute("aria-pressed", "false")
    wait_for_reward(page, highest="0.8", points="80")
    page.keyboard.press("Enter")
    expect(key).to_have_attribute("aria-pressed", "true")
    wait_for_reward(page, highest="50", points="120")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    expect(chart(page, "Reward").locator('[data-line="correct"]')).to_have_attribute("aria-pressed", "false")
    for name in ("reward", "well-formed"):
        chart(page, "Reward").locator(f'[data-line="{name}"]').click()
    expect(chart(page, "Reward")).to_have_attribute("data-points", "0")


def test_hidden_series_and_the_zoom_stay_when_the_run_grows(site):
    run = made_up(site.runs, "growing", steps=3, texts=["4", "5"])
    page = site.open("/overview?run=growing")
    key = chart(page, "Reward").locator('[data-line="reward"]')
    key.click()
    expect(key).to_have_attribute("aria-pressed", "false")
    drag(page, "Response length", 0.3, 0.8)
    page.wait_for_selector('[data-chart="Response length"][data-zoom]')
    zoom = chart(page, "Response length").get_attribute("data-zoom")
    key.focus()
    grow(run, 3, texts=["4", "5"])
    page.wait_for_selector('[data-tile="steps done"]:has-text("4 / 100")')
    expect(chart(page, "Reward")).to_have_attribute("data-points", "4")
    expect(key).to_have_attribute("aria-pressed", "false")
    expect(key).to_be_focused()
    expect(chart(page, "Response length")).to_have_attribute("data-zoom", zoom)


def test_metrics_that_come_after_the_rollouts_of_their_step_are_drawn(site, tmp_path):
    run, whole = (made_up(folder, "late", steps=n, texts=["4", "5"]) for folder, n in ((site.runs, 3), (tmp_path, 4)))
    page = site.open("/overview?run=late")
    shutil.copy(store.shard_path(whole, 3), store.shard_path(run, 3))
    expect(chart(page, "Response length").locator('[data-line="wrong"]')).to_have_attribute("data-x", "3")
    with (run / "metrics.jsonl").open("a") as file:
        file.write((whole / "metrics.jsonl").read_text().splitlines(keepends=True)[-1])
    expect(chart(page, "Reward").locator('[data-line="reward"]')).to_have_attribute("data-x", "3")


def test_zoom_is_shared_shows_its_range_and_can_be_reset(site):
    page = site.open(f"/overview?run={RUN}")
    reward = chart(page, "Reward")
    range_text = reward.locator("[data-range]")
    expect(range_text).to_have_text("step 0 to 39")
    expect(reward.locator(".reset")).to_be_hidden()
    drag(page, "Reward", 0.3, 0.6)
    expect(range_text).to_have_text(re.compile(r"^step \d+ to \d+ of 0 to 39$"))
    first, last = map(int, re.findall(r"\d+", range_text.inner_text())[:2])
    assert 7 <= first <= 13 and 19 <= last <= 26
    assert set(ticks(page, "Reward", "x")) <= {str(step) for step in range(first, last + 1)}
    zooms = "charts => [...new Set(charts.map(chart => chart.dataset.zoom))]"
    shown = "figure.chart:not([hidden])"
    wait_for_value(lambda: page.eval_on_selector_all(shown, zooms), [reward.get_attribute("data-zoom")])
    reward.get_by_role("button", name="reset zoom").click()
    expect(range_text).to_have_text("step 0 to 39")
    wait_for_value(lambda: page.eval_on_selector_all(shown, zooms), [None])
    expect(reward.locator(".reset")).to_be_hidden()
    drag(page, "Reward", 0.5, 1.3)  # let go outside the chart
    expect(range_text).to_have_text(re.compile(r"^step \d+ to 39 of 0 to 39$"))
    reward.get_by_role("button", name="reset zoom").click()
    drag(page, "Reward", 0.5, 0.515)
    expect(range_text).to_have_text(re.compile(r"^step \d+ to \d+ of"))
    first, last = map(int, re.findall(r"\d+", range_text.inner_text())[:2])
    assert last == first + 1 and ticks(page, "Reward", "x") == [str(first), str(last)]  # a whole step at least
    page.get_by_label("x axis").select_option("minutes")
    expect(range_text).to_have_text(re.compile(r"^minutes(?!.*of)"))  # the zoom was of steps


def test_values_that_are_not_above_zero_leave_the_logarithmic_axis_empty(site):
    page = site.open(f"/overview?run={RUN}&log=1")
    expect(chart(page, "truncated")).to_have_attribute("data-points", "0")
    wait_for_value(lambda: ticks(page, "zero-variance")[0], "0.01 %")


def write_heldout(run, **scores):
    """The report of a run, with pass@1 on three held-out problems before and after it."""
    estimates = {side: {"value": value, "low": value, "high": value} for side, value in scores.items()}
    evals = {side: {"metrics": {"pass@1": own}, "problems": 3} for side, own in estimates.items()}
    (run / "report.json").write_text(json.dumps({side: {"sampled": own, "greedy": own} for side, own in evals.items()}))


def test_the_score_of_a_run_is_that_on_the_held_out_problems_and_before_the_latest_validation(site):
    for run, score in (("yes", "0.0 → 40.0 %"), ("no", "10.0 → 80.0 %")):
        tile = site.open(f"/overview?run={run}").locator('[data-tile="pass@1"] b')
        expect(tile).to_have_text(score)
        assert tile.bounding_box()["y"] < 700  # on the first screen
    site.open("/")
    for run, score in (("yes", "40.0 %"), ("no", "80.0 %")):
        expect(site.page.locator(f'tr[data-run="{run}"]')).to_contain_text(score)


def test_the_page_has_the_band_behind_the_curve_and_says_whether_it_is_left(site):
    for word in ("yes", "no"):
        page = site.open(f"/overview?run={word}")
        expect(page.locator('[data-tile="normal"] b')).to_have_text(word)
        band = page.locator('[data-chart="Accuracy"] [data-line="normal in training"]')
        expect(band).to_have_attribute("data-x", "7")


def test_the_axes_of_a_long_run_end_at_its_end_and_show_every_validation(site):
    page = site.open("/overview?run=long&x=tokens")
    # step 7,998 is not sent: the last step stands at the end of step 7,997
    expect(page.locator('[data-chart="Accuracy"] [data-range]')).to_have_text("tokens 0 to 159,960")
    # step 4,001 is not sent: the validation stands at the last line before it
    for title, line in (("Accuracy", "pass@1"), ("validation loss", "latest")):
        key = page.locator(f'[data-chart="{title}"] [data-line="{line}"]')
        expect(key).to_have_attribute("data-x", str(20 * 4000))
