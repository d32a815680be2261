"""The file of a pipeline, and the table that is made of it."""

import json
from dataclasses import replace

import pytest

from reasoner.recipes.results import sampled_tokens, table
from reasoner.recipes.stages import FILE, PipelineState, Stage, read_state, write_state


def estimate(value: float, half: float) -> dict[str, float]:
    return {"value": value, "low": value - half, "high": value + half}


def results(share: float) -> dict[str, object]:
    return {"pass@1": estimate(share, 0.1), "greedy": estimate(share, 0.2), "tokens": 80.0}


def stage(name: str, function: str, **values: object) -> Stage:
    return Stage(name, function, {"model": "base", "name": f"p-{name}", "runs": "runs"}, f"p-{name}", **values)


SAMPLES = stage("samples", "sample", results={"sampled_tokens": 12_000, "minutes": 1.5})
FIGURES = {"examples": 1_234, "minutes": 0.5, **results(0.6), "before": results(0.1)}
TUNING = stage("sft", "finetune", results=FIGURES)
CONTROL = stage("rl", "train", is_control=True, results={"sampled_tokens": 5, "minutes": 9.0, **results(0.5)})
STATE = PipelineState({"model": "base"}, (SAMPLES, TUNING, replace(CONTROL, results=None)))


def test_a_state_reads_back_as_it_was_written(tmp_path):
    assert read_state(tmp_path) == PipelineState()
    write_state(tmp_path, STATE)
    assert read_state(tmp_path) == STATE


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("format",), 1, "has the format 1; this version reads 3"),
        (("stages",), {}, "stages is {}; it must be a list"),
        (("stages", 0), "x", "a stage of .* is not a JSON object"),
        (("stages", 0, "arguments"), "lost", "arguments is 'lost'; it must be an object"),
        (("stages", 0, "results"), {"minutes": "1"}, "minutes is '1'; it must be a number"),
        (("stages", 0, "results"), {"sampled_tokens": "<b>"}, "sampled_tokens is '<b>'; it must be a number"),
        (("stages", 0, "results"), {"pass@1": {"value": 1}}, "must be an estimate"),
        (("stages", 0, "results"), {"before": {"greedy": 1}}, "greedy is 1; it must be an estimate"),
    ],
)
def test_a_damaged_state_is_refused_with_the_reason(tmp_path, place, value, message):
    write_state(tmp_path, STATE)
    stored = json.loads((tmp_path / FILE).read_text())
    inner = stored
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    (tmp_path / FILE).write_text(json.dumps(stored))
    with pytest.raises(ValueError, match=message):
        read_state(tmp_path)


def test_sampled_tokens_are_those_of_all_but_controls():
    stages = (CONTROL, SAMPLES, TUNING)
    assert [sampled_tokens(stages[:number]) for number in range(4)] == [0, 0, 12_000, 12_000]


def test_table_has_the_first_model_each_run_and_the_sums():
    lines = table([SAMPLES, TUNING, CONTROL]).splitlines()
    cells = [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in lines]
    assert cells[1:] == [
        ["samples", "12,000", "1.5"],
        ["base", "10.0 [0.0, 20.0]", "10.0 [-10.0, 30.0]", "80.0"],
        ["sft", "0", "0.5", "60.0 [50.0, 70.0]", "60.0 [40.0, 80.0]", "80.0", "1,234 examples"],
        ["rl", "5", "9.0", "50.0 [40.0, 60.0]", "50.0 [30.0, 70.0]", "80.0"],
        ["all stages but controls", "12,000", "2.0"],
    ]
