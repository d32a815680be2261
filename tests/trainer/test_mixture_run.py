"""A run on a mixture of the user's files with a reward function of a file, and the same run with an interruption."""

import json
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.fixtures.forkserver import finish
from tests.fixtures.trainings import flags

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

SMALL = {
    "data.prompts_per_step": 4, "algo.group_size": 2,
    "sampling.max_tokens": 16, "validation.interval": 0, "eval.heldout_problems": 1, "eval.samples": 1,
    "run.save_interval": 2, "threads": 1,
}  # fmt: skip


def test_mixture_is_trained_on_by_weight_with_a_function_of_a_column_and_resumed_to_the_byte(tmp_path: Path) -> None:
    sums = [{"task": f"What is {n} + 5?", "gold": n + 5, "kind": "sum"} for n in range(20, 40)]
    products = [{"task": f"What is {n} * 5?", "gold": f"It is \\boxed{{{5 * n}}}", "kind": "product"} for n in range(9)]
    (tmp_path / "sums.jsonl").write_text("".join(json.dumps(row) + "\n" for row in sums))
    (tmp_path / "products.json").write_text(json.dumps({"data": products}))
    (tmp_path / "heldout.jsonl").write_text(json.dumps({"task": "what is 25 + 5", "gold": 30}) + "\n")
    function = "def is_sum(completions, kind):\n    return [float(one == 'sum') for one in kind]\n"
    (tmp_path / "rewards.py").write_text(function)
    names = ("sums.jsonl", "products.json", "heldout.jsonl")
    sums_spec, products_spec, heldout = (f"{tmp_path}/{name}?question=task&answer=gold" for name in names)
    common = ["--model", "base", "--data", f"{sums_spec}=0.75,{products_spec}=0.25", "--eval.heldout", heldout]
    common += ["--reward.functions", f"{tmp_path}/rewards.py:is_sum=0.5", "--run.dir", tmp_path / "runs"]
    common += flags(SMALL)

    messages = finish("train", *common, "--steps", 3, "--run.name", "whole").errors()
    assert "75.0% " in messages and "sums.jsonl?question=task&answer=gold (20 problems" in messages
    assert "contamination: heldout: 1 of 1 stand in the training set (1 exact)" in messages
    for step in range(3):
        rows = pq.read_table(tmp_path / f"runs/whole/rollouts/step-{step:06d}.parquet").to_pylist()
        assert Counter("+" in row["question"] for row in rows) == {True: 6, False: 2}
        parts = [{part["name"]: part["value"] for part in row["rewards"]} for row in rows]
        assert [part["is_sum"] for part in parts] == ["+" in row["question"] for row in rows]

    finish("train", *common, "--steps", 2, "--run.name", "part")
    finish("train", "--resume", tmp_path / "runs" / "part", "--steps", 3)
    for name in ("metrics.jsonl", "rollouts/step-000002.parquet"):
        assert (tmp_path / "runs/part" / name).read_bytes() == (tmp_path / "runs/whole" / name).read_bytes()
