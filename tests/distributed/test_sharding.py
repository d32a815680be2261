"""Weights in shards: the gradients and checkpoints of one process, in less memory."""

from importlib.util import find_spec

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel

from reasoner.config.algorithm import AlgoConfig
from reasoner.config.check import check_run
from reasoner.config.learning import OptimConfig
from reasoner.config.schema import Config
from reasoner.distributed.world import ALONE
from reasoner.models import sharding
from reasoner.models.loading import load_tokenizer
from reasoner.models.lora import load_weights, policy_state
from reasoner.models.sharding import DistributedModel, distribute
from reasoner.rl.algorithms import ALGORITHMS
from reasoner.trainer import checkpoint
from tests.distributed import shard_programs
from tests.distributed.programs import CASES, GROUPS, gradients
from tests.distributed.shard_programs import shards, toy_step, toy_trainer
from tests.distributed.test_gradients import assert_same, gradients_alone
from tests.fixtures.ranks import run_ranks
from tests.fixtures.tiny import tiny_model

WAYS = ("gathered", "sharded")
NAMES = [name for name in CASES if name != "trpo" and ("LoRA" not in name or find_spec("peft"))]
ALL = [(name, groups) for name in NAMES for groups in (GROUPS if name in ALGORITHMS else GROUPS[:1])]
_NAMES = ("grpo", "critic on the policy's backbone", "teacher with prompts of its own", "LoRA recomputed")
_SHARDED = [*((name, GROUPS[0]) for name in _NAMES if name in NAMES), ("teacher over the vocabulary", GROUPS[1])]
SOME = {"gathered": _SHARDED[:2], "sharded": _SHARDED}  # all nightly


@pytest.fixture(scope="module")
def alone():
    return gradients_alone(_SHARDED)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("shards")


@pytest.fixture(scope="module")
def two_ranks(folder):
    """What each of two ranks has, by the way of holding the weights."""
    ranks = run_ranks(2, shards, SOME, folder)
    assert all(isinstance(own, dict) for own in ranks), ranks
    return ranks


@pytest.mark.parametrize(("weights", "case", "groups"), [(way, *row) for way, rows in SOME.items() for row in rows])
def test_shards_have_the_gradient_of_one_process(alone, two_ranks, weights, case, groups):
    zero, one = (own[weights][0][SOME[weights].index((case, groups))] for own in two_ranks)
    assert_same(zero, alone[case, groups])
    for own, other in zip(zero[0], one[0], strict=True):
        assert np.array_equal(own, other, equal_nan=True)
    assert zero[1] == one[1]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("weights", ["replicated", *WAYS])
def test_every_algorithm_has_the_gradient_of_one_process(weights, size):
    rows = [*ALL, *(("trpo", groups) for groups in GROUPS if weights == "replicated")]
    expected = gradients(ALONE, rows)
    for own in run_ranks(size, gradients, rows, weights):
        assert isinstance(own, list), own
        for result, wanted in zip(own, expected, strict=True):
            assert_same(result, wanted)


@pytest.mark.parametrize("weights", WAYS)
def test_ranks_hold_half_of_the_weights_and_moments_move_every_weight_and_resume_with_the_same_bits(two_ranks, weights):
    results = [own[weights][1] for own in two_ranks]
    parameters = sum(parameter.numel() for parameter in toy_trainer(ALONE, "replicated").model.parameters())
    held = [result["bytes"] for result in results]
    assert sum(held) == 12 * parameters
    assert max(held) < 0.52 * 12 * parameters  # 61 tokens are not divided evenly
    for result in results:
        assert result["unmoved"] == [] and result["is tied"]
        assert result["gap"] == 0 and result["continued"] == result["resumed"]


@pytest.mark.parametrize("weights", WAYS)
def test_checkpoint_of_shards_is_one_of_whole_tensors_for_one_process(two_ranks, folder, weights):
    result, path = two_ranks[0][weights][1], checkpoint.folder(folder / weights, 1)
    assert checkpoint.damage(path) == ""
    trainer, straight = toy_trainer(ALONE, "replicated"), toy_trainer(ALONE, "replicated")
    load_weights(trainer.model, path)
    assert checkpoint.load(path, trainer) == 1
    for name, tensor in policy_state(trainer.model):
        assert np.array_equal(tensor.numpy(), result["state"][name])
    toy_step(straight, 0)
    own = checkpoint.save(folder / "one", 1, straight, load_tokenizer(path), keep=1)
    for place, stem in (("", "model"), ("trainer", "optimizer"), ("trainer", "critic"), ("trainer", "reference")):
        whole = load_file(own / place / f"{stem}.safetensors").keys()
        one, other = (load_file(path / place / f"{stem}-0000{part}-of-00002.safetensors").keys() for part in (1, 2))
        assert one and other and not one & other and one | other == whole
    assert AutoModelForCausalLM.from_pretrained(path).state_dict().keys() == straight.model.state_dict().keys()
    assert toy_step(trainer, 1) == pytest.approx(result["continued"], rel=1e-3, abs=1e-5)


@pytest.mark.parametrize("weights", WAYS)
def test_critic_in_shards_starts_from_a_reward_model_as_a_whole_one_does(two_ranks, weights):
    expected = shard_programs.critic_from_reward_model(ALONE, "replicated")
    other = shard_programs.toy_reward_model().base_model.state_dict()
    assert np.array_equal(expected["trunk.embed_tokens.weight"], other["embed_tokens.weight"][:61].numpy())
    for own in two_ranks:
        assert own[weights][3].keys() == expected.keys()
        assert all(np.array_equal(own[weights][3][name], expected[name]) for name in expected)


@pytest.mark.skipif(find_spec("peft") is None, reason="peft is not installed")
@pytest.mark.parametrize("weights", WAYS)
def test_adapter_of_shards_is_that_of_one_process(two_ranks, weights):
    trainer = shard_programs.toy_adapter_trainer(ALONE, "replicated")
    untrained = dict(policy_state(trainer.model))
    for seed in (0, 1):
        toy_step(trainer, seed)
    expected = dict(policy_state(trainer.model))
    assert any(not torch.equal(untrained[name], tensor) for name, tensor in expected.items())
    for own in two_ranks:
        assert own[weights][2].keys() == expected.keys()
        for name, tensor in expected.items():
            np.testing.assert_allclose(own[weights][2][name], tensor.numpy(), atol=2e-5)


def test_run_in_shards_whose_engine_is_lost_on_one_rank_saves_its_last_step(tmp_path):
    results = run_ranks(2, shard_programs.lost_servers, "sharded", tmp_path, seconds=60)
    assert all(isinstance(own, tuple) for own in results), results
    lost = "EngineUnavailableError: no inference server is left"
    for gap, of_parity, of_sampling in results:
        assert gap == results[0][0] > 0 and of_parity == lost
        assert of_sampling == f"RuntimeError: sampling of step 1 failed: {lost}"
    path = checkpoint.folder(tmp_path, 1)
    assert checkpoint.list_checkpoints(tmp_path) == [path] and checkpoint.damage(path) == ""


def test_part_of_a_checkpoint_that_one_rank_cannot_write_is_an_error_of_all(tmp_path):
    first, last = run_ranks(2, shard_programs.failed_part, tmp_path, seconds=30)
    reason = "'str' object has no attribute 'data_ptr'"
    assert (first, last) == (f"OSError: cannot write {checkpoint.folder(tmp_path, 0)}: {reason}", f"OSError: {reason}")


def test_single_process_holds_the_whole_model():
    model = tiny_model(vocabulary=60)
    whole = distribute(model, "sharded", ALONE)
    assert whole.sharding == "replicated" and whole.model is model
    assert DistributedModel(model).num_passes([3, 1]) == [3, 1]


def test_what_shards_cannot_hold_is_refused():
    algo = AlgoConfig(trust="constrained")
    with pytest.raises(ValueError, match=r"optim\.sharding in .* needs algo\.trust"):
        check_run(Config(algo=algo, optim=OptimConfig(sharding="sharded")))
    check_run(Config(algo=algo))
    gpt2 = GPT2LMHeadModel(GPT2Config(vocab_size=8, n_embd=8, n_layer=1, n_head=1, n_positions=8))
    with pytest.raises(ValueError, match=r"GPT2LMHeadModel.* --optim.dtype float32, or --optim.sharding replicated"):
        sharding._mixed_precision(gpt2, "bfloat16")
    assert sharding._mixed_precision(gpt2, "float32").param_dtype is None
    assert sharding._mixed_precision(tiny_model(vocabulary=60), "bfloat16").param_dtype == torch.bfloat16
