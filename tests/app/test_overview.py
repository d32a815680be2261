"""The list of runs and the curves of one run, compared with counts over the shards."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from statistics import fmean, median

import pytest

from reasoner.recipes.stages import FILE
from reasoner.runs.bands import SECONDS, Band
from reasoner.runs.health import new_alarms, write_alarms
from reasoner.runs.metrics import read_metrics
from reasoner.runs.reference import REFERENCE, Reference, write_reference
from reasoner.runs.run_dir import find_run
from reasoner.runs.run_start import lock_run_dir, open_run
from tests.app.library_of import STEPS, grouped, num_correct, rows_of, until, write_pipeline, write_run


def test_list_of_runs_has_the_state_of_each_and_the_newest_first(call, folder, rows):
    page = call("runs")
    by_name = {row["name"]: row for row in page["runs"]}
    assert {name: row["status"] for name, row in by_name.items()} == {
        "whole": "finished", "other": "finished", "stopped": "stopped", "damaged": "damaged", "empty": "starting",
        "theirs": "imported",
    }  # fmt: skip
    assert "config.json is damaged" in by_name["damaged"]["fault"] and by_name["whole"]["fault"] is None
    assert (by_name["stopped"]["step"], by_name["stopped"]["steps"]) == (3, 2 * STEPS)
    assert (by_name["whole"]["step"], by_name["whole"]["algorithm"]) == (8, "grpo")
    assert by_name["theirs"]["algorithm"] == "rows"
    correct = [num_correct(own) / len(own) for own in grouped(rows, "step").values()]
    assert by_name["whole"]["correct"] == correct  # of the shards
    assert by_name["whole"]["metrics"] == {"pass@1": 0.4} and by_name["empty"]["correct"] == []
    assert page["folder"] == str(folder / "runs")
    times = [(folder / "runs" / row["name"] / "config.json").stat().st_mtime for row in page["runs"]]
    assert times == sorted(times, reverse=True)


def test_another_stage_than_rl_stands_in_the_place_of_the_algorithm_and_a_model_folder_is_no_run(fresh):
    runs, call = fresh
    for name, stage in (("tuned", "sft"), ("taste", "reward-model"), ("drawn", "sample")):
        open_run(runs / name, {"algo.name": "grpo", "steps": 1}, {}, resuming=False, stage=stage)
    rows = {row["name"]: row["algorithm"] for row in call("runs")["runs"]}
    assert rows == {"tuned": "sft", "taste": "reward-model", "drawn": "sample"}
    (runs / "small").mkdir()
    (runs / "small" / "config.json").write_text('{"model_type": "llama"}')
    (runs / "small" / "model.safetensors").touch()
    assert {row["name"] for row in call("runs")["runs"]} == rows.keys()
    with pytest.raises(ValueError, match="small is the folder of a model"):
        find_run("small", runs)


NO_FORMAT = json.dumps({"format": 9, "settings": {}, "stages": []})


@pytest.mark.parametrize(("content", "fault"), [("{", "pipeline.json is damaged"), (NO_FORMAT, "format 9")])
def test_a_damaged_pipeline_is_listed_with_the_reason(fresh, content, fault):
    runs, call = fresh
    write_pipeline(runs / "r1")
    (runs / "r1" / FILE).write_text(content)
    [row] = call("runs")["pipelines"]
    assert fault in row["fault"] and row["stages"] == []


def test_time_left_is_given_for_live_runs_only(fresh):
    runs, call = fresh
    run = write_run(runs / "a", steps=10, written=4, analysed=False)
    assert call("runs")["runs"][0]["seconds_left"] is None
    with lock_run_dir(run):
        (row,) = call("runs")["runs"]
    assert row["status"] == "live" and row["seconds_left"] == 6 * median([2.0, 3.0, 4.0, 5.0])


def test_time_left_is_that_of_the_tokens_where_they_end_the_run_sooner(fresh):
    runs, call = fresh
    path = long_run(runs, steps=50) / "config.json"  # 20 tokens in 2 seconds each
    stored = json.loads(path.read_text())
    stored["config"] |= {"steps": 10_000, "max_train_tokens": 50 * 20 + 100}
    path.write_text(json.dumps(stored))
    with lock_run_dir(path.parent):
        assert call("runs")["runs"][0]["seconds_left"] == pytest.approx(5 * 2)


def test_a_run_without_rollouts_has_an_overview_alone(call):
    for query in ("rollouts", "problems", "reflection", "notes"):
        with pytest.raises(ValueError, match="empty has no rollouts"):
            call(query, run="empty")
    page = call("overview", run="empty")
    assert page["steps"] == page["metrics"] == page["validations"] == page["alarms"] == []


def test_a_damaged_run_with_a_checkpoint_is_left_out_of_the_models(fresh):
    runs, call = fresh
    for name in ("good", "bad"):
        write_run(runs / name, steps=2, written=1, analysed=False)
        (runs / name / "checkpoints" / "step-000004").mkdir(parents=True)
    (runs / "bad" / "config.json").write_text("{")
    assert [(m["model"], m["steps"]) for m in call("models")["models"]] == [("base", []), ("good", ["4"])]


# ------------------------------------------------------------------------------------------------------------- overview


def test_step_averages_are_those_of_the_rows(call, rows):
    page = call("overview", run="whole")
    assert [step["step"] for step in page["steps"]] == list(range(STEPS))
    for step, own in zip(page["steps"], grouped(rows, "step").values(), strict=True):
        lengths = sorted(row["tokens"] for row in own)
        of = {flag: [row["tokens"] for row in own if (row["verdict"] == "correct") is flag] for flag in (True, False)}
        assert step["rollouts"] == len(own)
        assert step["tokens_correct"] == (pytest.approx(fmean(of[True])) if of[True] else None)
        assert step["tokens_wrong"] == (pytest.approx(fmean(of[False])) if of[False] else None)
        assert step["tokens_p95"] == min(n for n in lengths if sum(m <= n for m in lengths) >= 0.95 * len(lengths))


def test_an_overview_since_a_step_is_the_end_of_the_whole_one(call):
    whole, end = call("overview", run="whole"), call("overview", run="whole", since=5)
    for name in ("steps", "metrics", "validations"):
        assert end[name] == [line for line in whole[name] if line["step"] >= 5]
    assert [look["step"] for look in whole["validations"]] == [0, 4]
    look = whole["validations"][1]
    assert look["metrics"]["pass@1"]["value"] == 0.4 and look["greedy"] == {"value": 0.2}


def long_run(runs, *, steps):
    """A run of many steps with metrics alone: each takes 2 seconds and samples 20 tokens; validated at 0 and 4,001."""
    run = write_run(runs / "long", steps=steps, written=0, analysed=False)
    lines = [
        {"step": step, "correct": step / steps, "time/step": 2.0, "num_tokens": 20 * (step + 1)}
        for step in range(steps)
    ]
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    estimate = {"problems": 3, "metrics": {"pass@1": {"value": 0.5, "low": 0.4, "high": 0.6}}}
    shared = {"sampled": estimate, "greedy": estimate, "measures": {"validation/loss": 2.5}}
    validations = [{"step": step, **shared} for step in (0, 4001)]
    (run / "evals.jsonl").write_text("".join(json.dumps(line) + "\n" for line in validations))
    return run


def test_lines_of_a_long_run_have_the_totals_of_all_its_steps(fresh):
    runs, call = fresh
    long_run(runs, steps=8000)
    lines = call("overview", run="long")["metrics"]
    assert len(lines) == 4001 and (lines[0]["step"], lines[-1]["step"]) == (0, 7999)
    assert all(line["total_seconds"] == 2 * (line["step"] + 1) for line in lines)
    (end,) = call("overview", run="long", since=7999)["metrics"]
    assert end["total_seconds"] == 16_000


def test_the_curve_of_a_long_run_in_the_list_ends_with_its_last_step(fresh):
    runs, call = fresh
    long_run(runs, steps=130)
    assert call("runs")["runs"][0]["correct"][-1] == 129 / 130


def give_reference(run: Path, *, low: float, high: float) -> None:
    """A reference of 20 steps whose band of right answers is [low, high]."""
    band = Band(*((value,) * 20 for value in ((low + high) / 2, low, high)))
    write_reference(run / REFERENCE, Reference("mine", (0, 1, 2, 3), {}, {"seed": 0}, {"correct": band, SECONDS: band}))


def test_a_run_is_shown_beside_its_reference(fresh):
    runs, call = fresh
    run = write_run(runs / "a", steps=8, written=8)
    assert call("overview", run="a")["reference"] is None
    give_reference(run, low=-1.0, high=2.0)
    shown = call("overview", run="a")["reference"]
    assert shown["is_inside"] and shown["bands"]["correct"]["low"] == [-1.0] * 20
    give_reference(run, low=2.0, high=3.0)
    assert not call("overview", run="a")["reference"]["is_inside"]
    (run / REFERENCE).write_text("{")
    assert REFERENCE in call("overview", run="a")["reference"]["text"]


def test_the_metrics_are_read_again_only_where_they_changed(fresh, monkeypatch):
    runs, call = fresh
    run = write_run(runs / "a", steps=20, written=3, analysed=False)
    reads = []
    monkeypatch.setattr("app.overview.read_metrics", lambda folder: reads.append(folder) or read_metrics(folder))
    pages = [call("overview", run="a", since=2) for _ in range(5)]
    assert len(reads) == 1 and all(page["metrics"] == pages[0]["metrics"] for page in pages)
    with (run / "metrics.jsonl").open("a") as file:
        file.write(json.dumps({"step": 3, "correct": 0.5}) + "\n")
    assert [line["step"] for line in call("overview", run="a", since=2)["metrics"]] == [2, 3]
    assert len(reads) == 2


def test_alarms_are_listed_newest_first_with_their_state(fresh):
    runs, call = fresh
    run = write_run(runs / "a", steps=20, written=6, analysed=False)  # 40 % of the completions are cut off at each step
    (recorded,) = [alarm for n in range(1, 7) for alarm in new_alarms(read_metrics(run)[:n])]
    write_alarms(run, [recorded])
    assert call("runs")["runs"][0]["alarms"] == 1
    assert call("overview", run="a", since=5)["alarms"] == [asdict(recorded) | {"is_active": True}]
    assert (recorded.name, recorded.step, recorded.since) == ("truncation", 2, 0)
    write_alarms(run, [recorded, replace(recorded, name="later", step=6)])
    with (run / "metrics.jsonl").open("a") as file:
        file.writelines(json.dumps({"step": step, "completions/clipped_ratio": 0.0}) + "\n" for step in (6, 7, 8))
    alarms = call("overview", run="a")["alarms"]
    assert [(one["name"], one["is_active"]) for one in alarms] == [("later", False), ("truncation", False)]


def test_an_imported_run_can_be_shown(call, folder):
    theirs = rows_of(folder / "runs" / "theirs")
    assert call("rollouts", run="theirs")["total"] == len(theirs) == 8
    assert [step["step"] for step in call("overview", run="theirs")["steps"]] == [3, 4]
    assert call("problems", run="theirs", by="problem")["rows"][0]["rate"] == 0.5
    page = call("rollout", run="theirs", name="3.1.0", with_formulas=True)
    assert page["completion"] == theirs[2]["completion"] and page["tokens"] is None
    assert until(lambda: call("reflection", run="theirs")["num_analyzed"] == 2)
