"""Pipelines on the page of the runs: their stages and results, as their files have them."""

import json

import pytest

from reasoner.recipes.stages import FILE
from tests.app.library_of import ESTIMATE, write_pipeline, write_run


def test_stages_have_their_runs_and_results(fresh):
    runs, call = fresh
    write_run(runs / "a", steps=4, written=1, analysed=False)
    write_pipeline(runs / "r1")
    [row] = call("runs")["pipelines"]
    assert (row["name"], row["recipe"], row["fault"]) == ("r1", "r1", None)
    assert [stage["is_done"] for stage in row["stages"]] == [True, True, True, False, False]
    assert row["stages"][0]["pass@1"] == ESTIMATE and row["stages"][1]["sampled_tokens"] == 12_345
    assert row["stages"][0]["run"] == "real" and row["stages"][1]["call"] == "sample(data='generated')"
    assert [one["name"] for one in call("runs")["runs"]] == ["a"]  # a pipeline is no run


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
