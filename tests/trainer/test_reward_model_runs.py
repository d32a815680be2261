"""`reasoner train --reward.model`: a run with a reward model through the command line."""

import pyarrow.parquet as pq
import pytest
import torch

from reasoner.models.loading import load_policy, load_tokenizer
from reasoner.models.resolve import BASE
from reasoner.runs.metrics import read_metrics
from reasoner.trainer.checkpoint import list_checkpoints
from tests.fixtures.forkserver import finish
from tests.fixtures.reward_models import save_reward_model
from tests.fixtures.trainings import flags

SMALL = {
    "model": "base", "data.prompts_per_step": 2, "algo.group_size": 4, "sampling.max_tokens": 24,
    "validation.interval": 0, "eval.heldout_problems": 0, "run.save_interval": 2, "threads": 1, "run.name": "a",
    "engine.name": "transformers", "reward.correct": 0, "reward.format": 0, "steps": 2, "algo.beta": 0,
}  # fmt: skip


def trained(runs, **settings):
    """The folder of a finished run."""
    more = {name.replace("__", "."): value for name, value in settings.items()}
    finish("train", *flags(SMALL | {"run.dir": runs} | more))
    return runs / "a"


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Reward models on the embedded base: one that scores everything alike, and one with a random head."""
    folder, policy = tmp_path_factory.mktemp("models"), load_policy(BASE, device=torch.device("cpu"))
    head = torch.randn(160, generator=torch.Generator().manual_seed(0)) / 10
    for name, own in {"constant": None, "random": head}.items():
        save_reward_model(folder / name, policy, load_tokenizer(BASE), head=own)
    return folder


@pytest.mark.slow  # parts of rewards: tests/rollouts/test_reward_models.py; the setting: test_settings_are_read.py
def test_constant_reward_model_moves_no_weight_and_is_a_part_of_every_rollout(models, tmp_path):
    name = f"{models}/constant"
    run = trained(tmp_path, reward__model=f"{name}=2", reward__missing_end=0)
    for line in read_metrics(run):
        assert (line["reward/model"], line["reward/mean"], line["frac_reward_zero_std"]) == (0, 0, 1)
    rows = pq.read_table(run / "rollouts" / "step-000001.parquet").to_pylist()
    assert all({"name": f"model:{name}", "value": 0.0} in row["rewards"] for row in rows)
    after, before = (load_policy(path, device=torch.device("cpu")) for path in (list_checkpoints(run)[-1], BASE))
    assert all(torch.equal(a, b) for a, b in zip(after.parameters(), before.parameters(), strict=True))


@pytest.mark.slow
def test_ppo_with_reward_model_critic_from_it_resumes_with_equal_bytes(models, tmp_path):
    name = f"{models}/random"
    settings = {
        "algo__name": "ppo", "reward__model": f"{name}=0.5", "critic__init": name, "algo__beta": 0.05,
        "algo__kl_target": 3, "steps": 3, "run__save_interval": 1,
    }  # fmt: skip
    whole = trained(tmp_path / "whole", **settings)
    parts = trained(tmp_path / "parts", **settings | {"steps": 2})
    finish("train", "--resume", parts, "--steps", 3)
    lines = read_metrics(whole)
    assert all({"reward/model", "kl/response", "critic/explained_variance"} <= line.keys() for line in lines)
    for file in ("metrics.jsonl", "rollouts/step-000002.parquet", "checkpoints/step-000003/model.safetensors"):
        assert (whole / file).read_bytes() == (parts / file).read_bytes(), file


@pytest.mark.slow
def test_reward_model_that_changed_is_refused_on_resume(models, tmp_path):
    own = save_reward_model(tmp_path / "rm", load_policy(BASE, device=torch.device("cpu")), load_tokenizer(BASE))
    run = trained(tmp_path, reward__model=own, steps=1)
    save_reward_model(own, load_policy(BASE, device=torch.device("cpu")), load_tokenizer(BASE), mean=1.0)
    refusal = finish("train", "--resume", run, "--steps", 2, status=2).errors()
    assert f"reward.model is '{own}' as before, but its content has changed" in refusal
