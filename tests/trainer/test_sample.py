"""`reasoner sample`: a run folder with rollouts, an exported file that reads back, and a folder that is completed."""

import json
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from data import load
from data.environments.spec import EnvironmentRow
from reasoner.config.schema import EngineConfig, ToolsConfig
from reasoner.inference.model_spec import ModelSpec
from reasoner.runs.metrics import read_metrics
from reasoner.sft.sources import read_source
from reasoner.trainer.sample import SampleRequest, sample
from tests.fixtures.forkserver import finish


def reasoner(*arguments: object) -> str:
    return finish(*arguments).output()


@pytest.fixture(scope="module")
def samples(tmp_path_factory) -> Path:
    """The folder of the runs: run `a` has four samples of each of 40 problems, in two shards."""
    runs = tmp_path_factory.mktemp("runs")
    problems = "".join(f'{{"question": "What is {i} + 1?", "answer": "{i + 1}"}}\n' for i in range(12, 52))
    (runs / "sums.jsonl").write_text(problems)
    command = ["sample", "--model", "base", "--data", runs / "sums.jsonl", "--num-samples", 4, "--max-tokens", 32]
    command += ["--engine", "transformers", "--runs", runs, "--name", "a", "--seed", 3]
    out = reasoner(*command)
    assert f"rollouts: {runs / 'a'}" in out
    (runs / "command.json").write_text(json.dumps(list(map(str, command))))
    return runs


def shard(runs: Path, step: int) -> list[dict[str, object]]:
    return pq.read_table(runs / "a" / "rollouts" / f"step-{step:06d}.parquet").to_pylist()


def test_samples_are_rollouts_with_metrics_by_shard(samples):
    assert [len(shard(samples, step)) for step in (0, 1)] == [128, 32]
    lines = read_metrics(samples / "a")
    assert [line["step"] for line in lines] == [0, 1]
    rows = shard(samples, 0) + shard(samples, 1)
    assert lines[-1]["num_tokens"] == sum(len(row["token_ids"]) for row in rows)
    assert 0 < lines[0]["well_formed"] < 1
    assert len({row["problem_id"] for row in rows}) == 40


def test_problem_that_comes_again_in_another_shard_has_other_samples(tmp_path):
    spec = ModelSpec.of("base", runs=tmp_path, prompt=None, temperature=1.0, top_p=1.0, max_tokens=16)
    problems = load("one-step", limit=32)
    engine = EngineConfig(name="transformers")
    request = SampleRequest(model=spec, problems=[*problems, problems[0]], data="-", num_samples=2, engine=engine)
    sample(request, tmp_path / "a")
    first, again = (
        [row["token_ids"] for row in rows if row["problem_id"] == problems[0].id]
        for rows in (shard(tmp_path, 0), shard(tmp_path, 1))
    )
    assert len(again) == 2 and first != again


def test_problems_that_are_refused_leave_no_folder(tmp_path):
    tools = ToolsConfig(names="python", form="qwen3")
    spec = ModelSpec.of("base", runs=tmp_path, prompt="none", max_tokens=16, tools=tools)
    place = EnvironmentRow("{}", "", 0, has_turns=True, tools="{}")
    problems = [replace(load("one-step", limit=1)[0], columns={"environment": place})]
    with pytest.raises(ValueError):
        engine = EngineConfig(name="transformers")
        sample(SampleRequest(model=spec, problems=problems, data="-", num_samples=2, engine=engine), tmp_path / "a")
    assert not (tmp_path / "a").exists()


def test_exported_examples_are_those_of_the_selection(samples):
    written = [row for _, row in read_source("runs:a?where=ended&per_problem=2", samples).rows]
    assert 40 < len(written) <= 80
    export = samples / "again.parquet"
    selection = ("--as", "sft", "--where", "ended", "--per-problem", 2)
    out = reasoner("rollouts", "export", "a", export, "--runs", samples, *selection)
    assert f"{len(written)} examples" in out and "more of a problem" in out
    assert [row for _, row in read_source(str(export), samples).rows] == written


def test_completions_may_have_the_whole_context(samples):
    """As by default for a model whose context is below 32,768 tokens."""
    command = ["--data", samples / "sums.jsonl", "--problems", 1, "--num-samples", 1, "--max-tokens", 100_000]
    reasoner("sample", *command, "--engine", "transformers", "--runs", samples, "--name", "whole")
    (row,) = pq.read_table(samples / "whole" / "rollouts" / "step-000000.parquet").to_pylist()
    assert 0 < len(row["token_ids"]) < 512


def test_an_interrupted_folder_is_completed_with_the_same_samples(samples):
    before = shard(samples, 1)
    (samples / "a" / "rollouts" / "step-000001.parquet").unlink()
    reasoner(*json.loads((samples / "command.json").read_text()))
    assert shard(samples, 1) == before
    assert len(read_metrics(samples / "a")) == 2


def test_a_folder_of_other_samples_is_refused(samples):
    command = json.loads((samples / "command.json").read_text())
    command[command.index("--seed") + 1] = "4"
    refusal = finish(*command, status=2).errors()
    assert "is in use by another run, or by samples with other settings" in refusal


def test_problems_that_changed_are_not_mixed_into_a_folder(samples):
    command = json.loads((samples / "command.json").read_text())
    data, shard_of_a = samples / "sums.jsonl", samples / "a" / "rollouts" / "step-000001.parquet"
    text, whole = data.read_text(), shard_of_a.read_bytes()
    data.write_text(text.replace('"52"', '"53"'))
    shard_of_a.unlink()
    try:
        refusal = finish(*command, status=2).errors()
        assert "but its content has changed" in refusal and not shard_of_a.exists()
    finally:
        data.write_text(text)
        shard_of_a.write_bytes(whole)


def test_problems_that_are_left_out_change_no_sample_of_the_others(samples):
    command = json.loads((samples / "command.json").read_text())
    command[command.index("--name") + 1] = "b"
    reasoner(*command, "--skip", 38, "--problems", 5)
    rows = pq.read_table(samples / "b" / "rollouts" / "step-000000.parquet").to_pylist()
    last = shard(samples, 1)[-8:]
    key = ("problem_id", "token_ids")
    assert [[row[name] for name in key] for row in rows] == [[row[name] for name in key] for row in last]
    assert "has 40 problems" in finish(*command, "--skip", 40, status=2).errors()
