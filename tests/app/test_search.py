"""A search in a real browser: rows show an excerpt, the pane marks every hit, and text stays text."""

from itertools import pairwise

import pytest

from reasoner.runs import rollouts as store
from tests.app.browsing import NASTY, expect, made_up, wait_for_value
from tests.app.library_of import save_byte_tokenizer

FAR = "So it goes on and on. " * 200  # more than a pane of text
TEXTS = [
    f"<think>The waiter is here 🎉🎉. {FAR}Then\n\twait at the café.</think> <answer>4</answer>",
    f"<think>{FAR}{NASTY} wait</think> <answer>$x + 1$ \\(x + wait\\)</answer>",
    "<think>no such word</think> wait",
]
INSIDE = """e => {
    const mark = e.getBoundingClientRect(), pane = e.closest('.pane')?.getBoundingClientRect();
    return pane && mark.top >= pane.top && mark.bottom <= pane.bottom;
}"""
PANE = '.pane[data-state="ready"][data-rollout="{}"]'


@pytest.fixture(scope="module")
def real(runs):
    made_up(runs, "words", steps=30, texts=TEXTS)
    made_up(runs, "many", steps=1, texts=["word " * 5_000, "5"])
    made_up(runs, "party", steps=1, texts=["<think>🎉🎉 2+2=5. Wait, 2+2=4.</think> <answer>4</answer>", "5"])
    with_tokens(made_up(runs, "tokens", steps=1, texts=TEXTS))
    return runs


def with_tokens(run):
    """Give the rollouts of step 0 their tokens: a byte each."""
    tokenizer = save_byte_tokenizer(run)
    rows = store.read(run, 0)
    for row in rows:
        ids = tokenizer.encode(row["completion"].removeprefix("<think>")).ids
        row |= {"token_ids": ids, "logprobs": [-0.25] * len(ids), "tokens": len(ids)}
    store.write_shard(store.shard_path(run, 0), rows)


def search(site, path):
    page = site.open(path)
    page.wait_for_selector('.list[data-state="ready"]')
    return page


def expect_marks(page, where, *texts):
    """Wait until these are the marked hits, with every space."""
    wait_for_value(page.locator(f"{where} mark.hit").all_text_contents, list(texts))


# What is typed, a row, what its excerpt has, its marks.
SEARCHES = [
    ("wait", "0.0.0", "<think>The waiter is here", ["wait"]),
    ("wait at", "0.0.0", "on and on. Then wait at the café.", ["wait at"]),
    ("pwned", "0.0.1", 'onerror="window.PWNED=1"> ${6*7}', ["PWNED"] * 4),
]


# At once: the list may be drawn again between two questions.
BOXES = "names => names.map(name => document.querySelector(name).getBoundingClientRect().toJSON())"


def test_a_row_of_a_search_shows_the_first_hit_and_marks_it(site):
    page = search(site, "/rollouts?run=words")
    assert page.locator('.row[data-rollout="0.0.0"] .head').text_content().startswith("The waiter is here")
    expect(page.locator(".rz mark")).to_have_count(0)
    for words, name, excerpt, hits in SEARCHES:
        page.get_by_label("text").fill(words)
        page.keyboard.press("Enter")
        row = f'.row[data-rollout="{name}"]'
        page.wait_for_selector(f"{row} mark.hit:text-is('{hits[0]}')")
        assert excerpt in page.locator(f"{row} .head").text_content()
        expect_marks(page, row, *hits)
        mark, line = page.evaluate(BOXES, [f"{row} mark.hit", f"{row} .head"])
        assert line["x"] <= mark["x"] and mark["x"] + mark["width"] <= line["x"] + line["width"]  # not cut off


def test_every_row_of_a_long_search_has_its_own_excerpt(site):
    page = search(site, "/rollouts?run=words&text=wait")
    page.locator(".list").evaluate("list => { list.scrollTop = list.scrollHeight; }")
    page.wait_for_selector('.row[data-rollout="29.1.2"] mark.hit')
    tops = page.locator(".row").evaluate_all("rows => rows.map(r => [r.offsetTop, r.offsetHeight])")
    assert all(top + height <= following for (top, height), (following, _) in pairwise(tops))


# What is opened, the marks of it, and their texts.
MARKED = [
    ("run=words&rollout=0.0.0&text=wait", "mark.hit", ["wait", "wait"]),  # behind two emojis: characters, not halves
    ("run=words&rollout=0.0.0&text=think", "mark.hit", ["think", "think"]),  # in tags, which are shown then
    ("run=words&rollout=0.0.1&text=wait&formulas=1", ".formulas mark.hit", ["wait"]),
    ("run=tokens&rollout=0.0.0&text=wait&colour=logprobs", ".token.hit", [*"waitwait"]),
    ("run=party&rollout=0.0.0&text=wait", "mark.cue mark.hit", ["Wait"]),  # the one mark within the other
    ("run=party&rollout=0.0.0&text=wait", ".spans li b", ["Wait"]),
    ("run=many&rollout=0.0.0&text=word", "mark.hit", ["word"] * 5_000),
]


def test_pane_marks_every_hit(site):
    for path, where, texts in MARKED:
        page = search(site, f"/rollouts?{path}")
        wait_for_value(page.locator(f".pane {where}").all_text_contents, texts)
    page = search(site, "/rollouts?run=words&text=wait&rollout=0.0.1&formulas=1")
    expect(page.locator(".pane .formulas .formula.hit")).to_have_attribute("title", "\\(x + wait\\)")
    expect(site.open("/group?run=party&step=0&group=0").locator("mark.cue").first).to_have_text("Wait")


def test_pane_scrolls_from_hit_to_hit(site):
    page = search(site, "/rollouts?run=words&text=wait&rollout=0.0.0")
    expect(page.locator(f"{PANE.format('0.0.0')} [data-hits='2']")).to_have_count(1)
    for number in (1, 0):  # the first one is current when the rollout opens
        page.keyboard.press(".")
        expect(page.locator(".pane mark.hit").nth(number)).to_have_class("hit current")
        wait_for_value(lambda: page.locator(".pane .current").evaluate(INSIDE), True)


def test_hostile_text_with_marks_in_it_stays_text(site):
    for view in ("", "&formulas=1", "&colour=logprobs"):
        page = search(site, f"/rollouts?run=tokens&text=script&rollout=0.0.1{view}")
        page.wait_for_selector(f"{PANE.format('0.0.1')} .hit")
        shown = page.locator(".pane").text_content()
        assert '<img src=x onerror="window.PWNED=1"> ${6*7} {{6*7}} `back`' in shown
        assert "</script><script>window.PWNED=2</script>" in shown
        assert page.evaluate("window.PWNED") is None
        assert page.evaluate("document.querySelectorAll('#reasoner img, #reasoner script').length") == 0
        assert "\u202e" not in page.locator(".list").text_content()
