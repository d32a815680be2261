"""Runs on environments: ten tasks of reasoning-gym, and an environment of Prime Intellect's `verifiers`."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.e2e.test_resume import content, finish, kill
from tests.fixtures.environments import library_rewards, write_interpreter
from tests.fixtures.forkserver import finish as finish_command

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]
TEN = (
    "basic_arithmetic+chain_sum+count_bits+fraction_simplification+gcd+lcm+letter_counting+products+simple_equations"
    "+spell_backward"
)
SMALL = (
    "--engine.name", "transformers", "--steps", 3, "--run.save_interval", 1, "--data.prompts_per_step", 16,
    "--sampling.max_tokens", 64,
)  # fmt: skip


@pytest.fixture(params=["gym", "env"])
def spec(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "env":
        return f"env:sums?size=16&env_python={write_interpreter(tmp_path)}"
    if find_spec("reasoning_gym") is None:
        pytest.skip("reasoning-gym is not installed")
    return f"gym:{TEN}?level=0&size=48"


def test_three_steps_are_resumed_to_equal_bytes_and_evaluated(spec: str, tmp_path: Path) -> None:
    settings = (*SMALL, "--data.train", spec)
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    finish(whole, *settings)
    kill(cut, "rollouts/step-000001.parquet", settings)
    finish(cut, *settings, resume=True)
    assert content(cut) == content(whole)
    rows = [row for step in range(3) for row in rollouts(whole / "a", step)]
    assert len(rows) == 3 * 16 * 4 and {row["verifier"] for row in rows} == {"environment"}
    parts = [{part["name"]: part["value"] for part in row["rewards"]} for row in rows]
    for row, own in zip(rows, parts, strict=True):
        assert row["reward"] == pytest.approx(own["correct"] + 0.2 * own["format"])
        if spec.startswith("env:"):
            assert own["correct"] == pytest.approx(own["rubric/exact"] + 0.5 * own["rubric/near"])
    own_scores = rubric_scores(rows, tmp_path) if spec.startswith("env:") else gym_scores(rows)
    assert [own["correct"] for own in parts] == pytest.approx(own_scores, abs=1e-6)  # stored in 32 bits
    assert len(set(own_scores)) > 1
    path = tmp_path / "eval.json"
    arguments = ("--problems", 4, "--pass@1", "--json", path, "--out", tmp_path / "evals")
    finish_command("eval", "--model", whole / "a", "--data", spec, *arguments)
    assert json.loads(path.read_text())


def rollouts(run: Path, step: int) -> list[dict]:
    return pq.read_table(run / "rollouts" / f"step-{step:06d}.parquet").to_pylist()


def gym_scores(rows: Sequence[Mapping[str, Any]]) -> list[float]:
    """The scores of rollouts by reasoning-gym's own composite of the ten tasks at level 0."""
    from reasoning_gym.composite import DatasetSpec
    from reasoning_gym.factory import create_curriculum, create_dataset

    specs = []
    for name in TEN.split("+"):
        curriculum = create_curriculum(name)
        curriculum.set_global_level(0)
        config = asdict(curriculum.generate_configuration())
        specs.append(DatasetSpec(name, 1.0, {key: config[key] for key in config.keys() - {"seed", "size"}}))
    library = create_dataset("composite", datasets=specs, size=48, seed=20250101)
    entries = [library[number_of(row)] for row in rows]
    assert [entry["question"].strip() for entry in entries] == [row["question"].strip() for row in rows]
    assert {entry["metadata"]["source_dataset"] for entry in entries} == {*TEN.split("+")}
    pairs = [(row["extracted"], entry) for row, entry in zip(rows, entries, strict=True)]
    return [0.0 if answer is None else float(library.score_answer(answer, entry)) for answer, entry in pairs]


def rubric_scores(rows: Sequence[Mapping[str, Any]], folder: Path) -> list[float]:
    """The rewards of rollouts by the library of the environment `sums`."""
    return library_rewards(folder / "python", [(number_of(row), [row["completion"]]) for row in rows])


def number_of(row: Mapping[str, Any]) -> int:
    """The number of a rollout's problem in its environment."""
    return int(row["problem_id"].rpartition("/")[2])
