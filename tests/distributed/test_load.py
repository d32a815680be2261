"""A model that ranks load in shards: the weights, gradients and metrics of one that is loaded whole, in less memory."""

from importlib.util import find_spec

import numpy as np
import pytest
import torch

from reasoner.config.learning import LoraConfig
from reasoner.distributed.world import ALONE
from reasoner.models.folder import BaseModel, model_fingerprint
from reasoner.models.loading import load_policy
from reasoner.models.lora import add_adapter, save_policy, trained_parameters
from tests.distributed.load_programs import CPU, first_steps, peaks, steps_and_traffic
from tests.fixtures.families import FAMILIES, save_family
from tests.fixtures.ranks import run_ranks
from tests.fixtures.tiny import save_tiny, tiny_model, tiny_tokenizer

# mixtral stores one file's tensor an expert, and holds one for all; gemma3 has buffers
SOME = ("gemma3_text", "gpt2", "mixtral")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_family("qwen3", tmp_path_factory.mktemp("qwen3"))


def saved_adapter(base, folder):
    policy = load_policy(base, device=CPU)
    add_adapter(policy, LoraConfig(rank=4), seed=0)
    for _, parameter in trained_parameters(policy):
        torch.nn.init.normal_(parameter, std=0.05)
    save_policy(policy, folder, BaseModel("base", str(base), model_fingerprint(base)))
    tiny_tokenizer().save_pretrained(folder)
    return folder


def check_same(alone, ranks, tolerance=1e-4):
    for one, *others in zip(alone, *ranks, strict=True):
        for loaded, metrics, gradient in others:
            assert loaded.keys() == one[0].keys()
            assert all(np.array_equal(loaded[name], own) for name, own in one[0].items())
            assert metrics == pytest.approx(one[1], rel=10 * tolerance, abs=1e-5)
            assert np.linalg.norm(gradient - one[2]) < tolerance * np.linalg.norm(one[2])


@pytest.mark.parametrize(
    ("families", "size", "way"),
    [
        (SOME, 2, "sharded"),
        *(pytest.param(FAMILIES, 3, way, marks=pytest.mark.slow) for way in ("gathered", "sharded")),
    ],
)
def test_families_are_loaded_as_by_one_process(tmp_path, families, size, way):
    cases = [(save_family(family, tmp_path / family), {}) for family in families]
    ranks = run_ranks(size, first_steps, way, cases)
    assert all(isinstance(own, list) for own in ranks), ranks
    check_same(first_steps(ALONE, "replicated", cases), ranks)


@pytest.mark.skipif(find_spec("peft") is None, reason="peft is not installed")
def test_frozen_weights_and_adapters_are_loaded_as_by_one_process(folder, tmp_path):
    """LoRA on a base in bfloat16; all weights from a folder that holds an adapter. The critic is a copy of either."""
    adapter = saved_adapter(folder, tmp_path)
    cases = [(folder, {"lora": 4, "dtype": "bfloat16", "algorithm": "ppo"}), (adapter, {"algorithm": "ppo"})]
    ranks = run_ranks(2, first_steps, "sharded", cases)
    assert all(isinstance(own, list) for own in ranks), ranks
    expected = first_steps(ALONE, "replicated", cases)
    check_same(expected[:1], [own[:1] for own in ranks], tolerance=0.05)
    check_same(expected[1:], [own[1:] for own in ranks])


@pytest.mark.parametrize("way", [pytest.param("gathered", marks=pytest.mark.slow), "sharded"])
def test_weights_travel_in_bfloat16_and_gradients_are_summed_in_float32(folder, way):
    expected, _, _ = steps_and_traffic(ALONE, "replicated", folder)
    ranks = run_ranks(2, steps_and_traffic, way, folder)
    assert all(isinstance(own, tuple) for own in ranks), ranks
    for gradient, precisions, gap in ranks:
        assert precisions == {"all_gather_single": {torch.bfloat16}, "reduce_scatter_single": {torch.float32}}
        # Embeddings are rounded too, which one process has in float32.
        assert np.linalg.norm(gradient - expected) < 0.05 * np.linalg.norm(expected)
        assert gap < 1e-6  # a parity check computes in bfloat16 too


def test_rank_that_loads_shards_never_has_the_whole_model(tmp_path):
    small, large = (tmp_path / name for name in ("small", "large"))
    save_tiny(small)
    model = tiny_model(vocabulary=1000, width=384, layers=16)
    num_bytes = 4 * sum(own.numel() for own in model.parameters())
    model.to(torch.bfloat16).save_pretrained(large)  # as most models are: what is loaded is no page of the file
    tiny_tokenizer().save_pretrained(large)
    del model
    ranks = run_ranks(2, peaks, small, large, "sharded")
    assert all(isinstance(own, tuple) for own in ranks), ranks
    for built, loaded in ranks:
        assert 0.4 * num_bytes < built < num_bytes  # with a pass, in which some layers are whole
        assert loaded < 0.6 * num_bytes
