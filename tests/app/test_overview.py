"""The list of runs, and the curves of one: its figures are those of the shards, counted another way."""

import json
from collections import Counter
from dataclasses import asdict, replace
from statistics import fmean, median

import pytest

from reasoner.runs import rollouts as store
from reasoner.runs.health import alarms, record
from reasoner.runs.metrics import read_metrics
from tests.app.library_of import STEPS, grouped, num_right, rows_of, until, write_run


def test_the_list_of_runs_tells_how_each_stands(asked, folder):
    found = asked("runs")
    by_name = {row["name"]: row for row in found["runs"]}
    assert {name: row["status"] for name, row in by_name.items()} == {
        "whole": "finished",
        "other": "finished",
        "stopped": "stopped",
        "damaged": "damaged",
        "empty": "starting",
        "theirs": "imported",
    }
    assert "config.json is damaged" in by_name["damaged"]["fault"] and by_name["whole"]["fault"] is None
    assert (by_name["stopped"]["step"], by_name["stopped"]["steps"]) == (3, 2 * STEPS)
    assert (by_name["whole"]["step"], by_name["whole"]["algorithm"], by_name["theirs"]["algorithm"]) == (
        8,
        "grpo",
        "verl",
    )
    assert by_name["whole"]["metrics"] == {"pass@1": 0.4} and by_name["empty"]["correct"] == []
    assert found["folder"] == str(folder / "runs")


def test_runs_come_newest_first(asked, folder):
    times = [(folder / "runs" / row["name"] / "config.json").stat().st_mtime for row in asked("runs")["runs"]]
    assert times == sorted(times, reverse=True)


def test_the_curve_of_right_answers_is_that_of_the_shards(asked, rows):
    (row,) = [row for row in asked("runs")["runs"] if row["name"] == "whole"]
    assert row["correct"] == [num_right(own) / len(own) for own in grouped(rows, "step").values()]


def test_a_run_that_nobody_holds_has_no_time_left_and_a_live_one_has(fresh):
    runs, asked = fresh
    run = write_run(runs / "a", steps=10, written=4, indexed=False)
    assert asked("runs")["runs"][0]["left"] is None
    with store.held(run):
        (row,) = asked("runs")["runs"]
    assert row["status"] == "live" and row["left"] == 6 * median([2.0, 3.0, 4.0, 5.0])


@pytest.mark.parametrize("query", ["rollouts", "problems", "aha", "notes"])
def test_a_run_without_rollouts_says_so(asked, query):
    with pytest.raises(ValueError, match="empty has no rollouts"):
        asked(query, run="empty")


def test_a_run_without_rollouts_has_an_overview_all_the_same(asked):
    found = asked("overview", run="empty")
    assert found["steps"] == found["metrics"] == found["looks"] == found["alarms"] == []


def test_a_damaged_run_is_told_and_harms_no_other(asked):
    with pytest.raises(ValueError, match=r"config\.json is damaged"):
        asked("overview", run="damaged")
    assert asked("rollouts", run="whole", limit=1)["total"] == 12 * STEPS


def test_a_damaged_run_with_a_checkpoint_is_left_out_of_the_models(fresh):
    runs, asked = fresh
    for name in ("good", "bad"):
        write_run(runs / name, steps=2, written=1, indexed=False)
        (runs / name / "checkpoints" / "step-000004").mkdir(parents=True)
    (runs / "bad" / "config.json").write_text("{")
    assert [(m["model"], m["steps"]) for m in asked("models")["models"]] == [("base", []), ("good", ["4"])]


# ------------------------------------------------------------------------------------------------------------- overview


def test_step_averages_are_those_of_the_rows(asked, rows):
    found = asked("overview", run="whole")
    assert [step["step"] for step in found["steps"]] == list(range(STEPS))
    for step, own in zip(found["steps"], grouped(rows, "step").values(), strict=True):
        lengths = sorted(row["tokens"] for row in own)
        of = {flag: [row["tokens"] for row in own if (row["verdict"] == "correct") is flag] for flag in (True, False)}
        groups = grouped(own, "group").values()
        assert step["rollouts"] == len(own) and step["correct"] == num_right(own)
        assert step["well_formed"] == sum(row["well_formed"] for row in own)
        assert step["clipped"] == sum(row["finish"] == "length" for row in own)
        assert step["groups"] == len(groups)
        assert step["flat"] == sum(len({row["reward"] for row in group}) == 1 for group in groups)
        assert step["reward"] == pytest.approx(fmean(row["reward"] for row in own))
        assert step["tokens"] == pytest.approx(fmean(lengths))
        assert step["tokens_correct"] == (pytest.approx(fmean(of[True])) if of[True] else None)
        assert step["tokens_wrong"] == (pytest.approx(fmean(of[False])) if of[False] else None)
        assert step["tokens_p95"] == min(n for n in lengths if sum(m <= n for m in lengths) >= 0.95 * len(lengths))
        assert found["verdicts"][str(step["step"])] == Counter(row["verdict"] for row in own)
    assert sum(step["flat"] for step in found["steps"]) > 3


def test_an_overview_since_a_step_is_the_end_of_the_whole_one(asked):
    whole, end = asked("overview", run="whole"), asked("overview", run="whole", since=5)
    for name in ("steps", "metrics", "looks"):
        assert end[name] == [line for line in whole[name] if line["step"] >= 5]
    assert [look["step"] for look in whole["looks"]] == [0, 4]
    assert whole["looks"][1]["metrics"]["pass@1"]["value"] == 0.4 and whole["looks"][1]["greedy"] == {"value": 0.2}


def test_alarms_come_newest_first_and_say_whether_they_still_ring(fresh):
    runs, asked = fresh
    run = write_run(runs / "a", steps=20, written=6, indexed=False)  # 40 % of the completions are cut off at each step
    (told,) = [alarm for n in range(1, 7) for alarm in alarms(read_metrics(run)[:n])]
    record(run, [told])
    assert asked("runs")["runs"][0]["alarms"] == 1
    assert asked("overview", run="a", since=5)["alarms"] == [asdict(told) | {"rings": True}]
    assert (told.name, told.step, told.since) == ("cut off", 2, 0)
    record(run, [replace(told, name="later", step=6)])
    with (run / "metrics.jsonl").open("a") as file:
        file.writelines(json.dumps({"step": step, "completions/clipped_ratio": 0.0}) + "\n" for step in (6, 7, 8))
    assert [(a["name"], a["rings"]) for a in asked("overview", run="a")["alarms"]] == [
        ("later", False),
        ("cut off", False),
    ]


def test_damaged_alarms_are_the_fault_of_their_run(fresh):
    runs, asked = fresh
    run = write_run(runs / "a", steps=2, written=1, indexed=False)
    (run / "alarms.jsonl").write_text('{"name": "cut off"}\n')
    (row,) = asked("runs")["runs"]
    assert row["status"] == "damaged" and "alarms.jsonl, line 1 is damaged" in row["fault"]


def test_an_imported_run_can_be_looked_at(asked, folder):
    theirs = rows_of(folder / "runs" / "theirs")
    assert asked("rollouts", run="theirs")["total"] == len(theirs) == 8
    assert [step["step"] for step in asked("overview", run="theirs")["steps"]] == [3, 4]
    assert asked("problems", run="theirs", by="problem")["rows"][0]["rate"] == 0.5
    found = asked("rollout", run="theirs", name="3.1.0", rendered=True)
    assert found["completion"] == theirs[2]["completion"] and found["tokens"] is None
    assert until(lambda: asked("aha", run="theirs")["studied"] == 2)
