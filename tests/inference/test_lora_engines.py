"""LoRA adapters in both engines: what they compute after a sync, and from a checkpoint's folder."""

import importlib.util
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

pytest.importorskip("peft")

from data.generated import problems
from reasoner.config.learning import LoraConfig
from reasoner.config.schema import EngineConfig
from reasoner.inference.factory import make_engine
from reasoner.inference.vllm_engine import VllmEngine
from reasoner.inference.vllm_model import memory_folder
from reasoner.models.folder import BaseModel, model_fingerprint
from reasoner.models.loading import load_policy, load_tokenizer
from reasoner.models.lora import adapter_of, add_adapter, merged_state, save_policy, trained_parameters
from reasoner.rollouts.prompts import load_template, render
from reasoner.trainer.parity import max_logprob_diff
from reasoner.types import SamplingParams
from tests.fixtures.tiny import save_tiny, tiny_model

CPU = torch.device("cpu")
SAMPLING = SamplingParams(num_samples=4, temperature=1.0, max_tokens=24)
NEEDS_VLLM = pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="vLLM is not installed")
RANK = 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return save_tiny(tmp_path_factory.mktemp("tiny"), heads=2, key_value_heads=1)


@pytest.fixture(scope="module")
def prompts(folder):
    tokenizer = load_tokenizer(folder)
    return [render(problem, load_template("r1-zero"), tokenizer) for problem in problems("train", 8)]


def policy_of(folder, seed):
    policy = load_policy(folder, device=CPU)
    add_adapter(policy, LoraConfig(rank=RANK), seed=seed)
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in trained_parameters(policy):
        if ".lora_B." in name:
            parameter.data.normal_(0, 0.01, generator=generator)
    return policy


def checkpoint(folder, path, policy):
    save_policy(policy, path, BaseModel("tiny", str(folder), model_fingerprint(folder)))
    load_tokenizer(folder).save_pretrained(path)
    return path


@pytest.mark.slow
@NEEDS_VLLM
def test_vllm_runs_each_adapter_it_is_sent_and_its_base_again(folder, prompts):
    engine = make_engine(EngineConfig(name="vllm"), folder, max_model_len=512, seed=0, adapter_rank=RANK)
    base = load_policy(folder, device=CPU)
    assert engine.accepts_adapter
    assert max_logprob_diff(engine, base, prompts, SAMPLING) < 1e-5
    for version in (1, 2):
        policy = policy_of(folder, version)
        assert max_logprob_diff(engine, policy, prompts, SAMPLING) > 1e-2  # a stale adapter would be noticed
        engine.update_weights(adapter_of(policy).weights(), version)
        assert max_logprob_diff(engine, policy, prompts, SAMPLING) < 1e-5
        (completion, *_), *_ = engine.generate(prompts, SAMPLING, [[0, 1, 2, 3] for _ in prompts])
        assert completion.policy_version == version
    engine.update_weights(base.state_dict().items(), version=0)
    assert max_logprob_diff(engine, base, prompts, SAMPLING) < 1e-5
    engine.close()


@pytest.mark.parametrize("name", ["transformers", pytest.param("vllm", marks=[NEEDS_VLLM, pytest.mark.slow])])
def test_engine_of_an_adapter_s_folder_samples_with_it_and_takes_merged_weights(name, folder, prompts, tmp_path):
    policy = policy_of(folder, 5)
    path = checkpoint(folder, tmp_path / "one", policy)
    engine = make_engine(EngineConfig(name=name), path, max_model_len=512, seed=0)
    assert engine.accepts_adapter == (name == "vllm")
    assert max_logprob_diff(engine, policy, prompts, SAMPLING) < 1e-5
    other = policy_of(folder, 6)
    engine.update_weights(merged_state(other), version=1)
    assert max_logprob_diff(engine, other, prompts, SAMPLING) < 1e-5
    engine.close()


@pytest.mark.slow
@NEEDS_VLLM
def test_vllm_adds_an_adapter_of_an_adapter_to_the_weights(folder, prompts, tmp_path):
    first = checkpoint(folder, tmp_path / "one", policy_of(folder, 5))
    second = policy_of(first, 6)
    path = checkpoint(first, tmp_path / "two", second)
    engine = make_engine(EngineConfig(name="vllm"), path, max_model_len=512, seed=0)
    assert not engine.accepts_adapter
    assert max_logprob_diff(engine, second, prompts, SAMPLING) < 1e-5
    with pytest.raises(ValueError, match="created without adapters"):
        engine.update_weights(adapter_of(second).weights(), version=1)
    engine.close()


@NEEDS_VLLM
def test_adapter_of_too_large_a_rank_is_refused(folder):
    with pytest.raises(ValueError, match=r"lora\.rank is 513.* 512"):
        make_engine(EngineConfig(name="vllm"), folder, max_model_len=512, seed=0, adapter_rank=513)


def test_adapter_is_in_memory_where_that_has_room_for_it(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=64))
    assert memory_folder(31, tmp_path) == tmp_path
    assert memory_folder(32, tmp_path) is memory_folder(1, tmp_path / "missing") is None


def test_weights_reach_vllm_a_layer_at_a_time():
    """Those of a merged adapter are computed as they are taken: a list would hold the model twice."""
    taken = []

    class Receiver:
        def apply_model(self, function):
            return [function(self)]

        def collective_rpc(self, method, kwargs):
            for count, (name, _) in enumerate(kwargs["weights_iterator"], 1):
                assert computed <= count + 1  # the first of the next layer tells that this one is complete
                taken.append(name)

    def weights():
        nonlocal computed
        for i in range(3):
            computed += 1
            yield f"layers.{i}.weight", torch.zeros(1)

    computed = 0
    engine = object.__new__(VllmEngine)
    engine._llm, engine._adapter, engine._meta_model = Receiver(), None, tiny_model(vocabulary=60)
    engine._has_weights = True
    engine.update_weights(weights(), version=1)
    assert taken == ["layers.0.weight", "layers.1.weight", "layers.2.weight"]
