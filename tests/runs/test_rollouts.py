"""The run folder: rows are read as they were written, and no run is overwritten."""

import importlib.util
import json
from array import array
from dataclasses import replace
from pathlib import Path

import pandas
import pytest
from datasets import load_dataset

from data import Problem
from reasoner.cli.main import main
from reasoner.runs import rollouts as store
from reasoner.runs.run_start import open_run
from reasoner.types import Completion, Prompt, RolloutGroup
from verifiers import RewardWeights, Score, Verdict
from verifiers.rewards import add_reward
from verifiers.score import RewardInput

WEIGHTS = RewardWeights(1.0, 0.2)


def group():
    prompt = Prompt(Problem("p/1", "2+2?", "4", "mine", "train", 1, "sums"), "Q 2+2?<think>", "<think>", (1, 2, 3))
    first = Completion("so 4", (5, 6), (-0.5, -0.25), "stop", 3)
    second = Completion("\x00\ud7ff👍", (7,), (-1.5,), "length", 3)
    scores = (Score(1.0, {}, Verdict.CORRECT, well_formed=True), Score(0.0, {}, Verdict.MALFORMED))
    rewarded = tuple(add_reward(RewardInput("", prompt.problem, score), WEIGHTS) for score in scores)
    return RolloutGroup(prompt, (first, second), rewarded)


def test_read_returns_the_rows_that_were_written(tmp_path):
    open_run(tmp_path / "a", {"steps": 2}, {"steps": "default"}, resuming=False)
    store.write_step(tmp_path / "a", 4, [group()], [0.75, -0.75])
    first, second = store.read(tmp_path / "a", 4)
    assert (first["prompt"], first["completion"]) == ("Q 2+2?<think>", "<think>so 4")
    assert (first["token_ids"], first["logprobs"], first["prompt_token_ids"]) == ([5, 6], [-0.5, -0.25], [1, 2, 3])
    assert (first["verdict"], first["advantage"], first["subject"], first["level"]) == ("correct", 0.75, "sums", 1)
    assert second["completion"] == "<think>\x00\ud7ff👍" and second["finish"] == "length"
    assert [row["sample"] for row in (first, second)] == [0, 1]
    assert dict(first["rewards"]) == {"correct": 1.0, "format": 1.0}
    assert first["reward"] == pytest.approx(1.2)
    assert set(first) == set(store.SCHEMA.names)
    assert not list((tmp_path / "a" / "rollouts").glob("*.partial"))


def test_a_step_without_rollouts_is_refused(tmp_path):
    with pytest.raises(ValueError, match="no rollouts of step 9"):
        store.read(tmp_path, 9)


def test_open_run_refuses_a_folder_in_use_unless_resuming(tmp_path):
    open_run(tmp_path / "a", {"steps": 2}, {}, resuming=False)
    with pytest.raises(ValueError, match=r"is in use.*--resume a"):
        open_run(tmp_path / "a", {"steps": 3}, {}, resuming=False)
    assert json.loads((tmp_path / "a" / "config.json").read_text())["config"] == {"steps": 2}
    open_run(tmp_path / "a", {"steps": 3}, {}, resuming=True)
    assert json.loads((tmp_path / "a" / "config.json").read_text())["config"] == {"steps": 3}


PARTS = [{"name": "correct", "value": 1.0}, {"name": "format", "value": 1.0}]


def with_datasets(files):
    return load_dataset("parquet", data_files=files, split="train", cache_dir=str(Path(files[0]).parent / "cache"))


def with_pandas(files):
    return pandas.concat([pandas.read_parquet(file) for file in files]).to_dict("records")


def with_polars(files):
    import polars

    return polars.read_parquet(files).to_dicts()


def with_duckdb(files):
    import duckdb

    return duckdb.read_parquet(files).order("step, sample").to_arrow_table().to_pylist()


@pytest.mark.parametrize("reader", [with_datasets, with_pandas, with_polars, with_duckdb])
def test_shards_and_exports_open_in_other_libraries(tmp_path, reader):
    library = reader.__name__.removeprefix("with_")
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    run, exported = tmp_path / "a", tmp_path / "all.parquet"
    open_run(run, {}, {}, resuming=False)
    for step in range(2):
        store.write_step(run, step, [group()], [0.75, -0.75])
    assert main(["rollouts", "export", str(run), str(exported)]) == 0
    for files in ([str(store.shard_path(run, step)) for step in range(2)], [str(exported)]):
        rows = list(reader(files))
        expected = [(step, *rest) for step in range(2) for rest in ((0, "correct"), (1, "malformed"))]
        assert [(row["step"], row["sample"], row["verdict"]) for row in rows] == expected
        assert [list(row["rewards"]) for row in rows[::2]] == [PARTS] * 2 and list(rows[0]["token_ids"]) == [5, 6]


def test_token_statistics_are_stored_with_their_completion(tmp_path):
    open_run(tmp_path / "a", {}, {}, resuming=False)
    store.write_step(tmp_path / "a", 0, [group()], [0.5, -0.5], {1: {"entropy": [0.25], "loss": [-0.125]}})
    first, second = store.read(tmp_path / "a", 0)
    assert (first["entropy"], first["tokens"]) == (None, 2)
    assert (second["entropy"], second["kl"], second["loss"]) == ([0.25], None, [-0.125])


def test_arrays_and_lists_of_numbers_are_stored_as_the_same_bytes(tmp_path):
    def in_arrays(one):
        return replace(one, token_ids=array("i", one.token_ids), logprobs=array("f", one.logprobs))

    lists, numbers = group(), [0.25, 1 / 3]
    arrays = replace(lists, completions=tuple(map(in_arrays, lists.completions)))
    for name, own, values in (("lists", lists, numbers), ("arrays", arrays, array("f", numbers))):
        open_run(tmp_path / name, {}, {}, resuming=False)
        store.write_step(tmp_path / name, 0, [own], [0.5, -0.5], {0: {"entropy": values}})
    lists, arrays = (store.shard_path(tmp_path / name, 0).read_bytes() for name in ("lists", "arrays"))
    assert lists == arrays
