"""The state of a pipeline in its file, and the table that is made of it."""

import json
from pathlib import Path

import pytest

from reasoner.pipelines.figures import table
from reasoner.pipelines.stages import Stage
from reasoner.pipelines.state import DONE, FILE, RUNNING, PipelineState, continue_records, read_state, write_state

SAMPLES = Stage("samples", "start", ("sample", "--model", "base"), Path("runs/p-samples"))
TUNING = Stage("sft", "start", ("sft", "--model", "base"), Path("runs/p-sft"))
CONTROL = Stage("rl", "control", ("train", "--model", "base"), Path("runs/p-rl"), is_control=True)
STAGES = (SAMPLES, TUNING, CONTROL)


def estimate(value: float, half: float) -> dict[str, float]:
    return {"value": value, "low": value - half, "high": value + half}


def results(share: float) -> dict[str, dict[str, float]]:
    return {"pass@1": estimate(share, 0.1), "greedy": estimate(share, 0.2), "tokens": estimate(80.0, 5.0)}


@pytest.fixture
def state() -> PipelineState:
    """The samples are drawn, the supervised run is under way, the control waits."""
    state = PipelineState("r1", {"model": "base"}, continue_records((), STAGES))
    state = state.with_stage("samples", state=DONE, minutes=1.5, figures={"sampled_tokens": 12_000})
    return state.with_stage("sft", state=RUNNING, minutes=0.25)


def test_a_state_reads_back_as_it_was_written(state, tmp_path):
    assert read_state(tmp_path) is None
    write_state(tmp_path, state)
    assert read_state(tmp_path) == state


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("format",), 2, "has the format 2; this version reads 1"),
        (("stages",), {}, "stages is {}; it must be a list"),
        (("stages", 0), "x", "a stage of .* is not a JSON object"),
        (("stages", 0, "state"), "lost", "state is 'lost'; it must be waiting, running, done or stopped"),
        (("stages", 0, "minutes"), "1", "minutes is '1'; it must be a number"),
        (("stages", 0, "figures"), {"sampled_tokens": "<b>"}, "sampled_tokens is '<b>'; it must be a number"),
        (("stages", 0, "figures"), {"pass@1": {"value": 1}}, "has no 'low'"),
        (("stages", 0, "figures"), {"before": {"greedy": 1}}, "greedy of a stage of .* is not a JSON object"),
    ],
)
def test_a_damaged_state_is_refused_with_the_reason(state, tmp_path, place, value, message):
    write_state(tmp_path, state)
    stored = json.loads((tmp_path / FILE).read_text())
    inner = stored
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    (tmp_path / FILE).write_text(json.dumps(stored))
    with pytest.raises(ValueError, match=message):
        read_state(tmp_path)


def test_stages_that_have_begun_are_kept_and_others_may_change(state, tmp_path):
    other_control = Stage("rl", "control", ("train", "--model", "other"), None)
    records = continue_records(state.stages, (SAMPLES, TUNING, other_control))
    assert records[:2] == state.stages[:2] and records[2].command == other_control.command
    (tmp_path / "metrics.jsonl").write_text("{}")
    with pytest.raises(ValueError, match="stage sft has begun with other settings"):
        continue_records(state.stages, (SAMPLES, Stage("sft", "start", ("sft", "--model", "other"), tmp_path)))
    with pytest.raises(ValueError, match="stage sft has begun, and these settings leave it out"):
        continue_records(state.stages, (SAMPLES,))


def test_a_setting_that_may_change_is_recorded_of_a_stage_that_is_not_done(state):
    command = (*TUNING.command, "--engine.name", "transformers")
    records = continue_records(state.stages, (SAMPLES, Stage("sft", "start", command, TUNING.run)))
    assert records[1].command == command and records[1].minutes == 0.25
    with pytest.raises(ValueError, match=r"stage sft is done, and was given other settings; .*STAGE:SETTING=VALUE"):
        done = state.with_stage("sft", state=DONE)
        continue_records(done.stages, (SAMPLES, Stage("sft", "start", command, TUNING.run)))


def test_tokens_sampled_before_a_stage_are_those_of_all_but_controls(state):
    state = state.with_stage("rl", figures={"sampled_tokens": 7})
    assert [state.sampled_tokens(stage.name) for stage in STAGES] == [0, 12_000, 12_000]
    assert PipelineState("r1", {}, state.stages[::-1]).sampled_tokens("samples") == 0


def test_table_has_the_first_model_each_part_and_the_sums(state):
    figures = {"examples": 1_234, **results(0.6), "before": results(0.1)}
    state = state.with_stage("sft", state=DONE, minutes=0.5, figures=figures)
    state = state.with_stage("rl", minutes=9.0, figures={"sampled_tokens": 5, **results(0.5), "before": results(0.1)})
    cells = [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in table(state).splitlines()]
    tokens = "80.0 [75.0, 85.0]"
    assert cells[1:] == [
        ["base", "10.0 [0.0, 20.0]", "10.0 [-10.0, 30.0]", tokens],
        ["start", "12,000", "2.0", "60.0 [50.0, 70.0]", "60.0 [40.0, 80.0]", tokens, "1,234 examples"],
        ["control", "5", "9.0", "50.0 [40.0, 60.0]", "50.0 [30.0, 70.0]", tokens],
        ["all stages but controls", "12,000", "2.0"],
    ]
