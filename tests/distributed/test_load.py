"""A model that ranks load in shards: the weights, gradients and metrics of one that is loaded whole, in less memory."""

from importlib.util import find_spec

import numpy as np
import pytest
import torch

from reasoner.distributed.world import ALONE
from tests.distributed.load_programs import first_steps, peaks
from tests.fixtures.families import FAMILIES, save_family
from tests.fixtures.ranks import run_ranks
from tests.fixtures.tiny import save_tiny, tiny_model, tiny_tokenizer

# mixtral and qwen3_moe store one file's tensor an expert, and hold one for all; gpt_neox and gemma3 have buffers
SOME = ("gemma3_text", "gpt2", "mixtral", "qwen3_moe")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return {family: save_family(family, tmp_path_factory.mktemp(family)) for family in FAMILIES}


def check_same(alone, ranks):
    for one, *others in zip(alone, *ranks, strict=True):
        for loaded, metrics, gradient in others:
            assert loaded.keys() == one[0].keys()
            assert all(np.array_equal(loaded[name], own) for name, own in one[0].items())
            assert metrics == pytest.approx(one[1], rel=1e-3, abs=1e-5)
            assert np.linalg.norm(gradient - one[2]) < 1e-4 * np.linalg.norm(one[2])


@pytest.mark.parametrize("way", ["gathered", "sharded"])
def test_families_are_loaded_as_by_one_process(folders, way):
    cases = [(folders[family], {}) for family in SOME]
    ranks = run_ranks(2, first_steps, way, cases)
    assert all(isinstance(own, list) for own in ranks), ranks
    check_same(first_steps(ALONE, "replicated", cases), ranks)


def test_rank_that_loads_shards_never_has_the_whole_model(tmp_path):
    small, large = (tmp_path / name for name in ("small", "large"))
    save_tiny(small)
    model = tiny_model(vocabulary=1000, width=512, layers=16)
    num_bytes = 4 * sum(own.numel() for own in model.parameters())
    model.to(torch.bfloat16).save_pretrained(large)  # as most models are: what is loaded is no page of the file
    tiny_tokenizer().save_pretrained(large)
    del model
    ranks = run_ranks(2, peaks, small, large, "sharded")
    assert all(isinstance(own, tuple) for own in ranks), ranks
    for built, loaded in ranks:
        assert 0.5 * num_bytes < built < num_bytes  # with a pass, in which some layers are whole
        assert 0.5 * num_bytes < loaded < 0.6 * num_bytes
