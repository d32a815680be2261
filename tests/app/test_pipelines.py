"""Pipelines on the page of the runs: their stages, states and figures, as their files have them."""

import json

import pytest

from reasoner.pipelines.state import FILE
from reasoner.runs.run_start import lock_run_dir
from tests.app.library_of import ESTIMATE, write_pipeline, write_run


def test_stages_have_their_states_and_figures(fresh):
    runs, call = fresh
    write_run(runs / "a", steps=4, written=1, indexed=False)
    write_pipeline(runs / "r1")
    with lock_run_dir(runs / "r1"):
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
