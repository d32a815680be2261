"""The answers of tools on the page of rollouts."""

import pytest

from reasoner.runs import rollouts as store
from tests.app.browsing import expect, made_up

ANSWER = "\n<script>alert(1)</script>\n"


@pytest.fixture(scope="module")
def real(runs):
    run = made_up(runs, "called", steps=1, texts=["<think>", "so"])
    completion = f"<think> 🎉 <python>2</python>{ANSWER} is 4"
    start, rows = completion.index(ANSWER), store.read(run, 0)
    rows[0] |= {"completion": completion, "observation_tokens": [0, 1], "tool_errors": 1}
    rows[0]["observation_text"] = [start, start + len(ANSWER)]
    store.write_shard(store.shard_path(run, 0), rows)
    return runs


def test_what_a_tool_returned_is_marked_counted_and_escaped(site):
    page = site.open("/rollouts?run=called&rollout=0.0.0")
    expect(page.locator('.pane[data-rollout="0.0.0"] [data-fact="tool calls"]')).to_have_text("1, 1 failed")
    mark = page.locator(".pane mark.observation")
    expect(mark).to_have_count(1)
    assert mark.evaluate("one => one.textContent") == ANSWER
    assert page.locator(".pane script").count() == 0
    page.goto(f"{site.url}/rollouts?run=called&rollout=0.0.1")
    expect(page.locator('.pane[data-rollout="0.0.1"] [data-fact="verdict"]')).to_be_visible()
    assert page.locator('.pane [data-fact="tool calls"]').count() == 0
    assert site.faults == []
