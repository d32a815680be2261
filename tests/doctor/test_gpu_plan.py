"""Predictions for N GPUs: the arithmetic by hand, laws of the memory, and the command."""

import json
from dataclasses import replace

import pytest
import torch

from reasoner.cli.main import main
from reasoner.config.recipes import RECIPES
from reasoner.config.resolve import resolve
from reasoner.doctor.gpu_plan import GpuPlan
from reasoner.doctor.gpus import GPUS, Gpu, find_gpu
from reasoner.doctor.preset_fit import meta_model
from reasoner.doctor.rank_memory import STRATEGIES, first_that_fits
from reasoner.doctor.step_model import (
    ModelShape,
    StepWork,
    decode_seconds,
    gradient_seconds,
    latency_share,
    pass_seconds,
    ring_seconds,
    sampling_seconds,
    servers_from,
    step_time,
)
from reasoner.models.resolve import BASE
from reasoner.models.size import num_parameters
from reasoner.rl.algorithms import resolve_algorithm
from tests.fixtures.reward_models import save_reward_model
from tests.fixtures.tiny import tiny_model, tiny_tokenizer

# 10 TFLOP/s, of which passes reach 4; 1 TB/s, of which decoding reaches 0.7; links of 100 and 10 GB/s, 0.8 of them.
CARD = Gpu("80gb", 10e12, 1e12, 100e9, 10e9)
SHAPE = ModelShape(parameters=10**9, trained=10**9, keys_bytes=1000)
WORK = StepWork(prompts=16, group_size=8, prompt_tokens=100, mean_tokens=300, longest=1000)


def test_decoding_takes_the_slower_of_memory_and_arithmetic():
    assert decode_seconds(SHAPE, CARD, rows=1, context=0) == pytest.approx(2e9 / 0.7e12)
    assert decode_seconds(SHAPE, CARD, rows=1, context=10**6) == pytest.approx(3e9 / 0.7e12)
    assert decode_seconds(SHAPE, CARD, rows=1000, context=0) == pytest.approx(2e12 / 4e12)


def test_sampling_is_a_full_batch_for_the_mean_length_and_one_row_to_the_longest():
    full, tail = sampling_seconds(SHAPE, CARD, WORK, 4)
    step = decode_seconds(SHAPE, CARD, rows=32, context=250)  # four prompts of eight rows
    assert full == pytest.approx(2e9 * 400 / 4e12 + 300 * step)
    assert tail == pytest.approx(700 * decode_seconds(SHAPE, CARD, rows=1, context=1100))
    more, same = sampling_seconds(SHAPE, CARD, replace(WORK, prompts=512), 4)  # 1,024 rows: two batches of 512
    assert same == tail
    assert more == pytest.approx(2e9 * 12_800 / 4e12 + 600 * decode_seconds(SHAPE, CARD, rows=512, context=250))


@pytest.mark.parametrize(
    ("changes", "trained", "flops"),
    [
        ({}, 10**9, 6),
        ({"recompute": True}, 10**9, 8),
        ({"forward_passes": 2}, 10**9, 10),
        ({"epochs": 4, "minibatches": 2, "forward_passes": 1}, 10**9, 26),
        ({"critic_epochs": 2, "forward_passes": 1}, 10**9, 20),
        ({}, 10**6, 4),  # an adapter
    ],
)
def test_passes_are_divided_among_the_ranks(changes, trained, flops):
    tokens = 16 * (100 + 8 * 300)
    model, work = replace(SHAPE, trained=trained), replace(WORK, **changes)
    assert pass_seconds(model, CARD, work, 1) == pytest.approx(flops * 1e9 * tokens / 4e12)
    assert pass_seconds(model, CARD, work, 8) == pytest.approx(pass_seconds(model, CARD, work, 1) / 8)


def test_collectives_follow_the_way_to_hold_the_weights():
    assert ring_seconds(8e9, 1, CARD) == 0
    assert ring_seconds(8e9, 2, CARD) == pytest.approx(4e9 / 80e9)
    assert ring_seconds(8e9, 16, CARD) == pytest.approx(7.5e9 / 8e9)  # over the network
    ring = ring_seconds(4e9, 4, CARD)
    work = replace(WORK, micro_batch_tokens=5000)  # 40,000 tokens on four ranks: two micro-batches each
    times = [gradient_seconds(SHAPE, CARD, work, 4, weights) for weights in STRATEGIES]
    assert times == pytest.approx([2 * ring, 2 * ring, 2 * 3 * ring])
    # Eight optimiser steps on 5,000 tokens of each rank, three of a critic on 3,333: one micro-batch each.
    ppo = replace(work, epochs=2, minibatches=4, critic_epochs=1, critic_minibatches=3, forward_passes=2)
    ppo = replace(ppo, prompts=32)
    times = [gradient_seconds(SHAPE, CARD, ppo, 4, weights) for weights in STRATEGIES]
    assert times == pytest.approx([22 * ring, (22 + 2) * ring, (8 * 3 * 1 + 3 * 3 * 2 + 2 * 4) * ring])


@pytest.mark.parametrize(
    ("algo", "forward", "updates"),
    [
        ({"algo.beta": 0.0}, 0, 1),
        ({"algo.name": "ppo", "algo.beta": 0.0, "critic.epochs": 2, "critic.minibatches": 3}, 2, None),
        ({"algo.name": "ppo", "algo.beta": 0.1}, 3, 8),  # the critic has the policy's passes and minibatches
        ({"algo.name": "ppo", "algo.critic_backbone": "shared", "algo.beta": 0.1}, 3, None),
    ],
    ids=str,
)
def test_work_of_a_step_counts_the_epochs_of_policy_and_critic(algo, forward, updates):
    own = plan("qwen2.5-0.5b", "h100", 1, **algo)
    critic = 6 if "critic.epochs" in algo else 0
    assert own.work().forward_passes == forward
    assert own.work().updates == (updates or own.algorithm.updates + critic)


def test_exchange_counts_the_statistics_of_tokens():
    tokens = 16 * 8 * 300
    without, with_three = (step_time(SHAPE, CARD, replace(WORK, token_values=n), 4, "replicated") for n in (0, 3))
    assert with_three.exchange - without.exchange == pytest.approx(3 / 4 * 12 * tokens / 1e9)
    stored, dropped = (plan("qwen2.5-0.5b", "h100", 4, **{"run.token_stats": own}).work() for own in (True, False))
    assert stored.token_values >= 2 and dropped.token_values == 0


def test_servers_pay_once_the_longest_completion_is_half_of_a_step():
    work = replace(WORK, longest=4000)
    shares = {n: latency_share(SHAPE, CARD, work, n, "replicated") for n in (1, 2, 4, 8)}
    single = decode_seconds(SHAPE, CARD, rows=1, context=4100)
    assert shares[4] == pytest.approx(4000 * single / step_time(SHAPE, CARD, work, 4, "replicated").total)
    assert shares[1] < shares[2] < shares[4] < 0.5 < shares[8]
    assert servers_from(SHAPE, CARD, work, "replicated") == 8
    assert servers_from(SHAPE, CARD, replace(WORK, prompts=10**6), "replicated") is None


def plan(name: str, gpu: str, processes: int, **settings: object) -> GpuPlan:
    """The plan of a recipe's model with all weights trained in bfloat16, layers computed again."""
    values = {**(RECIPES[name].gpu or {}), "processes": processes, "engine.name": "vllm", "optim.dtype": "bfloat16"}
    values |= {"engine.dtype": "bfloat16", "optim.recompute": True, "lora.rank": 0, "lora.base_dtype": "float32"}
    cfg = resolve([("test", values | {"optim.micro_batch_tokens": 4096, "engine.gpu_memory": 0.3} | settings)]).config
    return GpuPlan(gpu, GPUS[gpu], cfg, meta_model(RECIPES[name].shape), resolve_algorithm(cfg.algo))


@pytest.mark.parametrize(
    ("name", "gpu", "processes", "weights"),
    [
        ("qwen2.5-0.5b", "a100", 1, "replicated"),
        ("qwen2.5-1.5b", "h100", 8, "replicated"),
        ("qwen2.5-7b", "h100", 1, None),
        ("qwen2.5-7b", "h100", 8, "sharded"),  # gathered needs 57 GiB of whole weights and gradients
        ("qwen2.5-7b", "h200", 8, "gathered"),
    ],
)
def test_first_way_that_fits(name, gpu, processes, weights):
    own = plan(name, gpu, processes)
    peaks = {way: own.memory().peak(way) for way in (STRATEGIES if processes > 1 else STRATEGIES[:1])}
    assert first_that_fits(peaks, own.available) == weights, peaks


def test_shards_divide_what_stays_and_add_what_is_whole():
    memory, alone = plan("qwen2.5-7b", "h100", 8).memory(), plan("qwen2.5-7b", "h100", 1).memory()
    whole, gathered, sharded = alone.parts("replicated"), memory.parts("gathered"), memory.parts("sharded")
    for name in ("weights", "gradients", "optimiser"):
        assert gathered[name] == sharded[name] == pytest.approx(whole[name] / 8, abs=1)
    assert gathered["whole_weights"] == whole["weights"] and gathered["whole_gradients"] == whole["gradients"]
    # The embeddings (2 x 3584 x 152,064) and two of 28 layers, of 7.6e9 parameters.
    assert sharded["whole_weights"] / whole["weights"] == pytest.approx(0.143 + 2 / 28 * 0.857, abs=0.002)
    assert alone.peak("replicated") == alone.estimate.peak()
    peaks = [memory.peak(weights) for weights in STRATEGIES]
    assert peaks == sorted(peaks, reverse=True) and len(set(peaks)) == 3


def test_models_are_whole_before_they_are_sharded():
    """On many ranks loading decides: policy, float32 reference, the critic's copy of the policy."""
    many = {"engine.gpu_memory": 0.1, "optim.micro_batch_tokens": 256, "sampling.max_tokens": 256}
    whole = plan("qwen2.5-7b", "h100", 512, **many).memory().parts("replicated")["weights"]
    settings = {"none": {"algo.beta": 0.0}, "reference": {"algo.beta": 0.1, "algo.reference_dtype": "bfloat16"}}
    settings["both"] = {"algo.name": "ppo", "algo.beta": 0.1}
    peaks = {
        name: plan("qwen2.5-7b", "h100", 512, **many, **own).memory().peak("sharded") for name, own in settings.items()
    }
    assert peaks["none"] >= whole and peaks["reference"] == 2 * whole and peaks["both"] == 3 * whole


def test_reward_models_are_whole_on_every_rank(tmp_path):
    model = tiny_model(vocabulary=60, width=32, layers=2)
    folder = save_reward_model(tmp_path / "rm", model, tiny_tokenizer(), head=torch.ones(32), mean=0.0)
    without, with_model = (plan("qwen2.5-0.5b", "h100", 4, **{"reward.model": own}) for own in ("", str(folder)))
    for way in STRATEGIES:
        peaks = [own.memory().peak(way) for own in (without, with_model)]
        assert peaks[1] - peaks[0] == 2 * num_parameters(folder) > 0


def test_reward_model_that_is_not_here_is_not_downloaded(monkeypatch):
    monkeypatch.setattr("reasoner.doctor.memory.resolve_cached_model", lambda name, *, runs: None)
    with pytest.raises(ValueError, match=r"reward\.model names org/rm, which is not in the cache: download it first"):
        plan("qwen2.5-0.5b", "h100", 4, **{"reward.model": "org/rm"}).memory().peak("sharded")


def test_unknown_kind_of_gpu_is_refused():
    with pytest.raises(ValueError, match="--gpu is 'b300'; known are rtx-4090, a100, h100, h200"):
        find_gpu("b300")


@pytest.mark.skipif(not (BASE / "model.safetensors").is_file(), reason="the embedded base is not built")
def test_command_predicts_without_running_anything(tmp_path, capsys):
    arguments = ["--model", "base", "--processes", "4", "--gpu", "a100", "--run.dir", str(tmp_path / "runs")]
    assert main(["doctor", *arguments, "--json", str(tmp_path / "plan.json")]) == 0
    out = capsys.readouterr().out
    assert "4 x a100 of 75 GiB, by formulas and data sheets, not measured" in out
    report = json.loads((tmp_path / "plan.json").read_text())
    assert report["predicted_sharding"] == "replicated"
    assert set(report["predicted_peak"]) == set(STRATEGIES)
    assert sum(report["predicted_seconds"].values()) > 0
    assert not (tmp_path / "runs").exists()
