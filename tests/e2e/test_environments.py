"""Runs on environments: ten tasks of reasoning-gym, and an environment of Prime Intellect's `verifiers`."""

import json
from importlib.util import find_spec
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from reasoner.models.resolve import BASE
from tests.e2e.test_resume import content, finish, kill
from tests.fixtures.environments import write_interpreter
from tests.fixtures.forkserver import TRAINING, forkserver

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(not (BASE / "model.safetensors").is_file(), reason="the embedded base is not built"),
]
TEN = (
    "basic_arithmetic+chain_sum+count_bits+fraction_simplification+gcd+lcm+number_sorting+products+simple_equations"
    "+spell_backward"
)
SMALL = (
    "--engine.name",
    "transformers",
    "--steps",
    3,
    "--run.save_interval",
    1,
    "--data.prompts_per_step",
    4,
    "--validation.interval",
    0,
)


@pytest.fixture(params=["gym", "env"])
def spec(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "env":
        return f"env:sums?size=12&env_python={write_interpreter(tmp_path)}"
    if find_spec("reasoning_gym") is None:
        pytest.skip("reasoning-gym is not installed")
    return f"gym:{TEN}?level=0&size=60"


def test_three_steps_are_resumed_to_equal_bytes_and_evaluated(spec: str, tmp_path: Path) -> None:
    settings = (*SMALL, "--data.train", spec, "--eval.heldout_problems", 0)
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    finish(whole, *settings)
    kill(cut, "step 1", settings)
    finish(cut, *settings, resume=True)
    assert content(cut) == content(whole)
    rows = [row for step in range(3) for row in rollouts(whole / "a", step)]
    assert len(rows) == 3 * 4 * 4 and {row["verifier"] for row in rows} == {"environment"}
    for row in rows:
        parts = {part["name"]: part["value"] for part in row["rewards"]}
        assert row["reward"] == pytest.approx(parts["correct"] + 0.2 * parts["format"])
        if spec.startswith("env:"):
            assert parts["correct"] == pytest.approx(parts["rubric/exact"] + 0.5 * parts["rubric/near"])
    path = tmp_path / "eval.json"
    arguments = ("--problems", 4, "--pass@1", "--json", path)
    command = forkserver(TRAINING).start("eval", "--model", whole / "a", "--data", spec, *arguments)
    assert command.wait(timeout=280) == 0, command.errors()[-2000:]
    assert json.loads(path.read_text())


def rollouts(run: Path, step: int) -> list[dict]:
    return pq.read_table(run / "rollouts" / f"step-{step:06d}.parquet").to_pylist()
