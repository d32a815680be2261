"""Predictions for N GPUs: laws of the memory, and the command."""

import json

import pytest
import torch

from reasoner.cli.main import main
from reasoner.config.presets import bytes_of_gpu
from reasoner.config.recipes import RECIPES
from reasoner.config.resolve import resolve
from reasoner.doctor.gpu_plan import STRATEGIES, RankMemory, rank_memory
from reasoner.doctor.preset_fit import meta_model
from reasoner.models.folder import num_parameters
from reasoner.models.resolve import BASE
from tests.fixtures.reward_models import save_reward_model
from tests.fixtures.tiny import tiny_model, tiny_tokenizer


def plan(name: str, gpu: str, processes: int, **settings: object) -> RankMemory:
    """The memory of a recipe's model with all weights trained in bfloat16, layers computed again."""
    values = {**(RECIPES[name].gpu or {}), "processes": processes, "engine.name": "vllm", "optim.dtype": "bfloat16"}
    values |= {"engine.dtype": "bfloat16", "optim.recompute": True, "lora.rank": 0, "lora.base_dtype": "float32"}
    cfg = resolve([("test", values | {"optim.micro_batch_tokens": 4096, "engine.gpu_memory": 0.3} | settings)]).config
    return rank_memory(meta_model(RECIPES[name].shape), cfg, bytes_of_gpu(gpu))


@pytest.mark.parametrize(
    ("name", "gpu", "processes", "weights"),
    [
        ("qwen2.5-0.5b", "a100", 1, "replicated"),
        ("qwen2.5-1.5b", "h100", 8, "replicated"),
        ("qwen2.5-7b", "h100", 1, None),
        ("qwen2.5-7b", "h100", 4, "sharded"),  # gathered needs 43 GiB of whole weights and gradients
        ("qwen2.5-7b", "h100", 8, "gathered"),
    ],
)
def test_first_way_that_fits(name, gpu, processes, weights):
    own = plan(name, gpu, processes)
    assert own.first_that_fits() == weights, own.peaks()


def test_many_ranks_never_have_a_whole_model():
    """Neither while they load the policy, the reference and the critic, nor afterwards."""
    many = {"engine.gpu_memory": 0.1, "optim.micro_batch_tokens": 256, "sampling.max_tokens": 256}
    whole = plan("qwen2.5-7b", "h100", 512, **many).parts("replicated")["weights"]
    for own in ({"algo.beta": 0.0}, {"algo.beta": 0.1}, {"algo.name": "ppo", "algo.beta": 0.1}):
        assert plan("qwen2.5-7b", "h100", 512, **many, **own).peak("sharded") < whole


def test_the_transformers_engine_keeps_its_weights_while_shards_are_trained():
    names = ({"engine.name": "transformers"}, {"engine.urls": "http://127.0.0.1:1", "engine.name": "remote"})
    own, servers = (plan("qwen2.5-7b", "h100", 8, **name) for name in names)
    assert own.peak("gathered") == servers.peak("gathered") + own.parts("gathered")["engine_weights"]


def test_reward_models_are_whole_on_every_rank(tmp_path):
    model = tiny_model(vocabulary=60, width=32, layers=2)
    folder = save_reward_model(tmp_path / "rm", model, tiny_tokenizer(), head=torch.ones(32), mean=0.0)
    without, with_model = (plan("qwen2.5-0.5b", "h100", 4, **{"reward.model": own}) for own in ("", str(folder)))
    for way in STRATEGIES:
        peaks = [own.peak(way) for own in (without, with_model)]
        assert peaks[1] - peaks[0] == 2 * num_parameters(folder) > 0


def test_reward_model_that_is_not_here_is_not_downloaded_and_an_unknown_gpu_is_refused(monkeypatch):
    monkeypatch.setattr("reasoner.doctor.memory.resolve_cached_model", lambda name, *, runs: None)
    with pytest.raises(ValueError, match=r"reward\.model .*org/rm"):
        plan("qwen2.5-0.5b", "h100", 4, **{"reward.model": "org/rm"}).peak("sharded")
    with pytest.raises(ValueError, match=r"'b300'.* rtx-4090, a100, h100, h200"):
        bytes_of_gpu("b300")


@pytest.mark.skipif(not (BASE / "model.safetensors").is_file(), reason="the embedded base is not built")
def test_command_predicts_without_running_anything(tmp_path, capsys):
    arguments = ["--model", "base", "--processes", "4", "--gpu", "a100", "--run.dir", str(tmp_path / "runs")]
    assert main(["doctor", *arguments, "--json", str(tmp_path / "plan.json")]) == 0
    out = capsys.readouterr().out
    assert "4 x a100 of 75 GiB, by a formula, not measured" in out
    report = json.loads((tmp_path / "plan.json").read_text())
    assert report["predicted_sharding"] == "replicated"
    assert set(report["predicted_peak"]) == set(STRATEGIES)
    assert not any("seconds" in name for name in report.keys() - {"seconds"})
    assert not (tmp_path / "runs").exists()
