"""What the importers of all systems have in common: hostile text, records of the origin, refusals."""

import json

import pytest

from reasoner.cli.main import main
from reasoner.runs import rollouts as store
from reasoner.runs.importers import import_run
from reasoner.runs.metric_names import METRICS
from reasoner.runs.metrics import read_metrics
from tests.fixtures.full_disk import largest_file
from tests.fixtures.rollouts import group, write
from tests.runs.foreign_files import HOSTILE, WELL_FORMED, lines, record, trl_step


def test_hostile_text_round_trips_and_lone_surrogates_are_replaced(tmp_path, imported):
    hostile = HOSTILE + "\ud800"  # json.dumps writes it as \ud800, which json.loads gives back
    rewards = {"\ud800": 1.0, "huge": 10**400}
    one = record(hostile, hostile, 1.0, 0, gold=hostile, extracted=hostile, rewards=rewards)
    lines(tmp_path / "dump" / "0.jsonl", [one, record("q", "", float("nan"), 0)])
    first, second = store.read(imported("rows"), 0)
    whole = HOSTILE + "\ufffd"
    assert [first[name] for name in ("prompt", "question", "completion", "gold", "extracted")] == [whole] * 5
    assert dict(first["rewards"]) == {"\ufffd": 1.0}
    assert (second["prompt"], second["rewards"], second["verdict"]) == ("q", [], "refused")


def test_rows_are_taken_as_they_are_and_completed_from_each_other(tmp_path, imported):
    given = {
        "question": "2 + 2?", "gold": "4", "problem_id": "p1", "source": "mine", "subject": "sums", "level": 2,
        "verdict": "correct", "layer": "rational", "extracted": "4", "well_formed": False, "advantage": 0.25,
        "rewards": {"accuracy": 1.0, "length": -0.5}, "prompt_token_ids": [1, 2], "token_ids": [3, 4, 5],
        "logprobs": [-0.5, -0.25, -1.0], "finish": "stop", "policy_version": 6, "unknown": "left out",
    }  # fmt: skip
    chat = [{"role": "user", "content": "3 + 3?"}]
    records = [record("Q", "4", 0.5, 6, **given), record(chat, "6", 1.0, 7), record(chat, "7", 0.0, 7)]
    lines(tmp_path / "dump" / "all.jsonl", records)
    run = imported("rows")
    (whole,) = store.read(run, 6)
    parts = whole.pop("rewards")
    assert parts == [("accuracy", 1.0), ("length", -0.5)]
    kept = {name: value for name, value in given.items() if name not in ("rewards", "unknown")}
    assert {name: whole[name] for name in given if name in whole} == kept
    assert (whole["reward"], whole["tokens"], whole["group"], whole["sample"]) == (0.5, 3, 0, 0)
    first, second = store.read(run, 7)
    assert (first["question"], first["source"], first["tokens"]) == ("3 + 3?", "rows", None)
    assert [row["advantage"] for row in (first, second)] == [0.5, -0.5]
    assert first["rewards"] == [("reward", 1.0)] and [row["verdict"] for row in (first, second)] == ["refused"] * 2
    assert read_metrics(run)[0]["completions/mean_length"] == 3 and read_metrics(run)[0]["correct"] == 1.0


def test_rewards_that_differ_by_rounding_alone_have_no_variance(tmp_path, imported):
    lines(tmp_path / "dump" / "0.jsonl", [record("q", "4", reward, 0) for reward in (0.1 + 0.2, 0.3)])
    assert read_metrics(imported("rows"))[0]["frac_reward_zero_std"] == 1


def test_an_export_of_a_run_can_be_imported(tmp_path, imported):
    (tmp_path / "own" / "rollouts").mkdir(parents=True)
    write(tmp_path / "own", 3, [group("1+1", "2", [("2", True), ("3", False)])])
    own = store.read(tmp_path / "own", 3)
    (tmp_path / "dump").mkdir()
    store.shard_path(tmp_path / "own", 3).rename(tmp_path / "dump" / "all.parquet")
    assert store.read(imported("rows"), 3) == own


def test_import_records_its_origin_in_config_and_versions(tmp_path, imported):
    lines(tmp_path / "dump" / "0.jsonl", [record("q", "4", 1.0, 0)])
    run = imported("rows")
    stored = json.loads((run / "config.json").read_text())
    assert stored == {"format": 2, "config": {"model": "?", "imported": "rows", "source": "dump"}, "origin": {}}
    assert json.loads((run / "versions.json").read_text()) == {"imported_from": "rows"}
    assert read_metrics(run)[0].keys() <= METRICS.keys()
    assert sorted(path.name for path in run.iterdir()) == ["config.json", "metrics.jsonl", "rollouts", "versions.json"]


WHOLE = '{"step": 1, "prompt": "q", "completion": "4", "reward": 1}'
DAMAGES = [
    ("rows", "1.jsonl", WHOLE + '\n{"prompt": ', "1.jsonl, line 2: "),
    ("rows", "1.jsonl", "\n[1]\n", "1.jsonl, line 2: "),
    ("rows", "1.jsonl", '{"step": 1, "prompt": "q", "completion": "4"}\n', "1.jsonl, line 1: no 'reward'"),
    ("rows", "1.jsonl", WHOLE.replace("1,", "-1,"), "1.jsonl, line 1: step is -1"),
    ("rows", "1.jsonl", f"{WHOLE}\n{WHOLE.replace('1,', '0,')}", "1.jsonl, line 2: step 0 comes after step 1"),
    ("rows", "1.jsonl", WHOLE.replace("{", '{"verdict": "right", '), "1.jsonl, line 1: 'right'"),
    ("rows", "1.jsonl", WHOLE.replace("{", '{"level": "high", '), "step 1: "),
    ("rows", "1.jsonl", "[" * 100_000 + "\n", "1.jsonl, line 1: "),
    ("rows", "1.parquet", "PAR1 torn", "1.parquet: "),
    ("rows", "notes.txt", "", "has no file that can be read"),
    ("trl", "completions_00001.parquet", "PAR1 torn", "completions_00001.parquet: "),
    ("trl", "1.jsonl", "{}", "has no rollouts that trl dumped"),
    ("nemo", "notes.txt", "", "unknown system 'nemo'; known are trl, rows"),
]


@pytest.mark.parametrize(("system", "name", "text", "complaint"), DAMAGES)
def test_an_unreadable_dump_is_refused_with_its_place_and_leaves_no_folder(tmp_path, system, name, text, complaint):
    path = tmp_path / "dump" / name
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(ValueError) as caught:
        import_run(system, tmp_path / "dump", tmp_path / "runs" / "a")
    assert complaint in str(caught.value) and "\n" not in str(caught.value)
    assert not list(tmp_path.glob("runs/*"))


def test_folders_that_are_missing_or_in_use_are_refused(tmp_path):
    lines(tmp_path / "dump" / "0.jsonl", [record("q", "4", 1.0, 0)])
    with pytest.raises(ValueError, match="nowhere: there is no such file"):
        import_run("rows", tmp_path / "nowhere", tmp_path / "run")
    (tmp_path / "run").mkdir()
    assert import_run("rows", tmp_path / "dump", tmp_path / "run") == 1  # an empty folder is free
    before = (tmp_path / "run" / "config.json").stat().st_mtime_ns
    with pytest.raises(ValueError, match="run is in use"):
        import_run("rows", tmp_path / "dump", tmp_path / "run")
    assert (tmp_path / "run" / "config.json").stat().st_mtime_ns == before


def test_import_that_does_not_fit_leaves_nothing(tmp_path, capsys):
    trl_step(tmp_path / "dump", 1, [("2 + 2?", WELL_FORMED, (1.0, 1.0), 0.0)])
    command = ["import", "trl", str(tmp_path / "dump"), "--runs", str(tmp_path / "runs"), "--name", "a"]
    with largest_file(1000):
        assert main(command) == 1
    assert "cannot write" in capsys.readouterr().err and list((tmp_path / "runs").iterdir()) == []
    assert main(command) == 0
