"""Pipelines on the page of the runs: their stages and results, as their files have them."""

import json

import pytest

from reasoner.recipes.stages import FILE
from tests.app.library_of import write_pipeline


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
