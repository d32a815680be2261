"""A short training run through the command line, on the embedded base, with the real engines, workers and files."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import torch

from reasoner.models.loading import load_policy, load_tokenizer
from reasoner.models.resolve import BASE
from reasoner.runs.metric_names import METRICS, TIMES
from reasoner.runs.metrics import read_evals, read_metrics
from reasoner.trainer.checkpoint import list_checkpoints
from tests.fixtures.forkserver import ROOT, finish
from tests.fixtures.trainings import flags

SMALL = {
    "data.prompts_per_step": 4, "algo.group_size": 4, "sampling.max_tokens": 48, "validation.interval": 2,
    "validation.problems": 4, "eval.heldout_problems": 4, "validation.samples": 2, "eval.samples": 2,
    "run.save_interval": 1, "threads": 1,
}  # fmt: skip
NO_VLLM = pytest.mark.skipif(find_spec("vllm") is None, reason="no vLLM")


@pytest.fixture(scope="module", params=["transformers", pytest.param("vllm", marks=[NO_VLLM, pytest.mark.slow])])
def folder(request, tmp_path_factory) -> Path:
    runs = tmp_path_factory.mktemp("runs")
    where = {"model": "base", "steps": 2, "run.dir": runs, "run.name": "a", "engine.name": request.param}
    words = ["train", *flags(where | SMALL)]
    if request.param == "vllm":  # it starts processes, which a fork of a process with torch in it may not
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        subprocess.run([sys.executable, "-m", "reasoner", *words], cwd=ROOT, env=environment, check=True)
    else:
        finish(*words)
    return runs / "a"


def test_a_run_leaves_its_settings_metrics_rollouts_and_checkpoints(folder):
    stored = json.loads((folder / "config.json").read_text())
    assert stored["config"]["algo.group_size"] == 4
    assert (stored["origin"]["algo.group_size"], stored["origin"]["optim.lr"]) == ("command line", "preset base")
    lines = read_metrics(folder)
    assert [line["step"] for line in lines] == [0, 1]
    assert all(line.keys() <= (METRICS | TIMES).keys() for line in lines)
    assert lines[0]["parity/logprob_diff_max"] < 1e-3
    assert lines[0]["sampling/logprob_diff_max"] < 1e-3
    rows = pq.read_table(folder / "rollouts" / "step-000001.parquet").to_pylist()
    assert len(rows) == 16
    for group in range(4):
        advantages = [row["advantage"] for row in rows if row["group"] == group]
        assert abs(sum(advantages)) < 1e-4
    assert all(len(row["token_ids"]) == len(row["logprobs"]) for row in rows)
    assert {row["policy_version"] for row in rows} == {1}
    learnt = [row for row in rows if row["loss"] is not None]
    updates = stored["config"]["algo.minibatches"]  # the metric is their mean
    assert sum(value for row in learnt for value in row["loss"]) == pytest.approx(updates * lines[1]["loss"], abs=1e-5)
    assert all(len(row["entropy"]) == len(row["kl"]) == len(row["token_ids"]) == row["tokens"] for row in learnt)
    assert (folder / "tokenizer.json").is_file()


def test_the_checkpoint_is_a_model_that_has_learnt_something(folder):
    path = list_checkpoints(folder)[-1]
    assert path.name == "step-000002"
    trained, base = (load_policy(p, device=torch.device("cpu")) for p in (path, BASE))
    assert any(not torch.equal(a, b) for a, b in zip(trained.parameters(), base.parameters(), strict=True))
    assert load_tokenizer(path).get_vocab() == load_tokenizer(BASE).get_vocab()


def test_validation_keeps_the_best_policy(folder):  # trap 46
    first, last = read_evals(folder)[0], read_evals(folder)[-1]
    assert first["step"] == 0 and last["step"] == 2
    assert {"pass@1", "cons@2"} <= first["sampled"]["metrics"].keys()
    best = json.loads((folder / "checkpoints" / "best" / "best.json").read_text())
    scores = [look["sampled"]["metrics"]["pass@1"]["value"] for look in read_evals(folder) if look["step"]]
    assert best == {"steps_done": best["steps_done"], "validation/pass@1": max(scores)}
    assert load_tokenizer(folder / "checkpoints" / "best").get_vocab() == load_tokenizer(BASE).get_vocab()
