"""Pipelines on the page of the runs: their stages, states and figures, as their files have them."""

import json
import shutil

import pytest

from reasoner.pipelines.state import DONE, FILE, RUNNING, PipelineState, StageRecord, write_state
from reasoner.runs import rollouts as store
from tests.app.browsing import NASTY
from tests.app.library_of import write_run

ESTIMATE = {"value": 0.625, "low": 0.5, "high": 0.75}
RM = ("reward-model", "train")
STAGES = (
    StageRecord("cold-sft", "cold start", ("sft",), "real", "base", False, DONE, 2.0, {"pass@1": ESTIMATE}),
    StageRecord("samples", NASTY, ("sample", NASTY), "r1-samples", "x", False, DONE, 0.5, {"sampled_tokens": 12_345}),
    StageRecord("rm", "reward", RM, "r1-rm", "base", False, RUNNING, 0.1, {"accuracy": ESTIMATE}),
    StageRecord("rl", "RL", ("train",), "r1-rl", "base", False),
)  # fmt: skip


def write_pipeline(folder):
    folder.mkdir()
    write_state(folder, PipelineState("r1", {}, STAGES))


def test_stages_have_their_states_and_figures(fresh):
    runs, call = fresh
    write_run(runs / "a", steps=4, written=1, indexed=False)
    write_pipeline(runs / "r1")
    with store.lock_run_dir(runs / "r1"):
        [row] = call("runs")["pipelines"]
    assert (row["name"], row["recipe"], row["fault"]) == ("r1", "r1", None)
    assert [stage["state"] for stage in row["stages"]] == ["done", "done", "running", "waiting"]
    assert row["stages"][0]["pass@1"] == ESTIMATE and row["stages"][1]["sampled_tokens"] == 12_345
    assert [one["name"] for one in call("runs")["runs"]] == ["a"]  # a pipeline is no run


def test_a_stage_whose_pipeline_was_killed_is_stopped(fresh):
    runs, call = fresh
    write_pipeline(runs / "r1")
    [row] = call("runs")["pipelines"]
    assert [stage["state"] for stage in row["stages"]] == ["done", "done", "stopped", "waiting"]


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("{", "pipeline.json is damaged"),
        (json.dumps({"format": 9, "recipe": "", "settings": {}, "stages": []}), "format 9"),
    ],
)
def test_a_damaged_pipeline_is_listed_with_the_reason(fresh, content, fault):
    runs, call = fresh
    write_pipeline(runs / "r1")
    (runs / "r1" / FILE).write_text(content)
    [row] = call("runs")["pipelines"]
    assert fault in row["fault"] and row["stages"] == []


def test_the_page_shows_a_pipeline_as_a_row_of_stages(site):
    write_pipeline(site.runs / "r1")
    try:
        page = site.open("/")
        tiles = page.locator('[data-pipeline="r1"] [data-stage]')
        texts = [text.split("\n") for text in tiles.all_inner_texts()]
        assert [text[1:4] for text in texts if text[0] != STAGES[1].part][:1] == [["cold-sft", "done", "pass@1 62.5 %"]]
        assert "12,345 tokens" in texts[1] and "accuracy 62.5 %" in texts[2] and "stopped" in texts[2]
        assert tiles.nth(1).locator("span").first.text_content() == NASTY  # as text
        assert page.evaluate("window.PWNED") is None
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        page.locator('[data-stage="cold-sft"] a').click()
        page.wait_for_url("**/overview?run=real")
    finally:
        shutil.rmtree(site.runs / "r1")
