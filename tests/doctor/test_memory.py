"""The doctor's memory: the formula against what a gradient takes, refusals."""

import json
import platform
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from transformers import PreTrainedModel

from reasoner.config.algorithm import AlgoConfig
from reasoner.config.learning import LoraConfig, OptimConfig, RewardConfig
from reasoner.config.recipes import RECIPES
from reasoner.config.resolve import resolve
from reasoner.config.schema import Config, DataConfig, EngineConfig, SamplingConfig
from reasoner.doctor import memory_advice
from reasoner.doctor.findings import Severity
from reasoner.doctor.memory import MemoryEstimate, passes_peak
from reasoner.doctor.memory_advice import memory_finding, processes_finding
from reasoner.doctor.preset_fit import meta_model
from tests.fixtures.reward_models import save_reward_model
from tests.fixtures.tiny import tiny_model, tiny_tokenizer

_NARROW = {
    "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 2048,
}  # fmt: skip


def qwen(name: str = "qwen2.5-0.5b", **changed: object) -> PreTrainedModel:
    """The model of a recipe without weights."""
    return meta_model({**RECIPES[name].shape, **changed})


def one_prompt(max_tokens: int, optim: OptimConfig, **parts: object) -> Config:
    """Settings of a step of one prompt."""
    sampling = SamplingConfig(max_tokens=max_tokens)
    return Config(data=DataConfig(prompts_per_step=1), sampling=sampling, optim=optim, **parts)


def need_of(model, cfg: Config, *, prompt: int, device: str = "cpu", total: int = 2**34) -> MemoryEstimate:
    return MemoryEstimate(model, cfg, prompt, device, total)


def test_activations_of_qwen_1_5b_take_126_kb_a_token_and_layer_in_bfloat16():
    """Measured with the kernel's count of resident memory."""
    cfg = one_prompt(128, OptimConfig(dtype="bfloat16", micro_batch_tokens=4096), algo=AlgoConfig(group_size=32))
    needs = [need_of(qwen("qwen2.5-math-1.5b", num_hidden_layers=layers), cfg, prompt=1).parts() for layers in (8, 9)]
    assert (needs[1]["activations"] - needs[0]["activations"]) / (32 * 128 + 1) == pytest.approx(126_000, rel=0.05)


def test_reward_models_are_resident_in_the_precision_of_the_trainer(tmp_path):
    policy = tiny_model(vocabulary=60, width=32)
    for name in ("a", "b"):
        save_reward_model(tmp_path / name, policy, tiny_tokenizer())
    numel = sum(p.numel() for p in policy.parameters()) + 32  # with the head
    with_models = RewardConfig(model=f"{tmp_path}/a=0.5,{tmp_path}/b")
    for dtype, size in (("float32", 4), ("bfloat16", 2)):
        cfg = Config(optim=OptimConfig(dtype=dtype))
        plain, own = (need_of(policy, one, prompt=40) for one in (cfg, replace(cfg, reward=with_models)))
        assert own.parts()["reward_models"] == 2 * size * numel == own.peak() - plain.peak()


@pytest.mark.slow
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other malloc libraries have other gaps")
def test_the_formula_is_within_a_tenth_of_what_an_update_takes():
    bench = Path(__file__).parents[2] / "bench" / "update_memory.py"
    sizes = ["--rows", "2", "--tokens", "512", "--at-once", "1", "--threads", "1"]
    command = [sys.executable, bench, "5M", *sizes]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    updates = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    assert [(one["is_recomputed"], one["rank"]) for one in updates] == [(False, 0), (False, 16), (True, 0), (True, 16)]
    for one in updates:
        assert one["predicted"] == pytest.approx(one["above"], rel=0.1)


def test_memory_parts_count_weights_gradients_optimiser_reference_and_critic():
    policy, cfg = tiny_model(vocabulary=300), Config(sampling=SamplingConfig(max_tokens=64))
    numel = sum(parameter.numel() for parameter in policy.parameters())
    part = need_of(policy, cfg, prompt=40).parts()
    assert [part[name] for name in ("weights", "gradients", "optimiser", "reference")] == [
        4 * numel, 4 * numel, 8 * numel, 4 * numel,
    ]  # fmt: skip
    assert need_of(policy, replace(cfg, algo=AlgoConfig(name="ppo")), prompt=40).parts()["critic"] == 12 * numel
    assert not need_of(policy, replace(cfg, algo=AlgoConfig(beta=0)), prompt=40).parts()["reference"]


def test_trpo_keeps_no_moments_and_its_conjugate_gradient_takes_more_than_they_would():
    """And its passes store what others compute again."""
    policy, cfg = qwen(**_NARROW), one_prompt(16, OptimConfig(), algo=AlgoConfig(name="trpo", group_size=2))
    part, numel = need_of(policy, cfg, prompt=1).parts(), policy.num_parameters()
    assert part["optimiser"] == 0 and part["checkpoint"] == 4 * numel
    assert part["gradients"] == 52 * numel
    recomputed = replace(cfg, optim=OptimConfig(recompute=True))
    assert need_of(policy, recomputed, prompt=1).parts()["activations"] == part["activations"]


def test_memory_parts_count_the_adapter_alone_with_lora():
    policy, lora = tiny_model(vocabulary=300, width=64, layers=2), LoraConfig(rank=2)
    numel = sum(parameter.numel() for parameter in policy.parameters())
    # a layer: queries and output 64 -> 64, keys and values 64 -> 32, gate and up 64 -> 192, down 192 -> 64
    adapter = 2 * 2 * (2 * (64 + 64) + 2 * (64 + 32) + 3 * (64 + 192))
    part = need_of(policy, Config(lora=lora, algo=AlgoConfig(name="ppo", beta=0.1)), prompt=40).parts()
    assert [part[name] for name in ("weights", "gradients", "optimiser", "reference", "critic")] == [
        4 * (numel + adapter), 4 * adapter, 8 * adapter, 0, 12 * adapter,
    ]  # fmt: skip


def test_memory_that_is_not_there_is_red_and_names_the_settings_to_lower():
    policy = tiny_model(vocabulary=300)
    cfg = Config(optim=OptimConfig(micro_batch_tokens=8192), sampling=SamplingConfig(max_tokens=64))
    need = need_of(policy, cfg, prompt=40)
    assert memory_finding(need, need.peak()).severity is Severity.OK
    line = memory_finding(need, need.peak() - 1)
    assert (line.severity, line.suggestion) == (Severity.ERROR, "--optim.micro_batch_tokens 4096")
    assert line.message.endswith("it does not fit; lower --optim.micro_batch_tokens 4096")
    lowered = need_of(policy, replace(cfg, optim=OptimConfig(micro_batch_tokens=4096)), prompt=40)
    assert lowered.peak() < need.peak()
    nothing = memory_finding(need, 1000)
    assert nothing.severity is Severity.ERROR and not nothing.suggestion
    assert nothing.message.endswith("take a smaller model")


@pytest.mark.parametrize("share", [0.1, 0.15])  # of 16 GiB; the weights are 1.8, and vLLM takes 1 beside them
def test_a_share_of_the_gpu_that_does_not_hold_the_engine_is_red(share):
    cfg = resolve([("test", {"engine.gpu_memory": share, "engine.name": "vllm", "sampling.max_tokens": 256})]).config
    line = memory_finding(need_of(qwen(), cfg, prompt=100, device="cuda", total=2**34), 2**34)
    assert (line.severity, line.suggestion) == (Severity.ERROR, f"--engine.gpu_memory {share + 0.2:g}")


def test_gradients_are_not_counted_beside_the_engine_that_samples():
    policy = tiny_model(vocabulary=300)
    cfg = Config(sampling=SamplingConfig(max_tokens=64), optim=OptimConfig(micro_batch_tokens=1))
    cfg = replace(cfg, engine=replace(cfg.engine, name="transformers"))
    need = need_of(policy, cfg, prompt=40, device="cuda")
    part = need.parts()
    assert part["engine_logits"] == 4 * 4 * 300 * 256
    sampling = [part[name] for name in ("engine_cache", "engine_logits")]
    assert sum(sampling) > part["gradients"] + passes_peak(part)
    held = [part[name] for name in ("weights", "optimiser", "reference", "engine_weights")]
    assert need.peak() == sum(held) + sum(sampling)
    ahead = replace(need, cfg=replace(cfg, max_off_policy_steps=1))
    assert ahead.peak() == need.peak() + part["gradients"] + passes_peak(part)


@pytest.mark.parametrize(
    ("steps", "device", "rank", "engine", "copies"),
    [
        (1, "cpu", 0, EngineConfig(name="transformers"), 0),  # the engine takes the weights themselves
        (2, "cpu", 0, EngineConfig(name="transformers"), 2),
        (3, "cpu", 0, EngineConfig(name="transformers"), 3),
        (3, "cuda", 0, EngineConfig(name="transformers"), 0),  # in the machine's memory, not the GPU's
        (2, "cpu", 16, EngineConfig(name="transformers"), 2),  # merged weights
        (2, "cpu", 16, EngineConfig(name="vllm"), 0),  # the adapter
        (2, "cpu", 16, EngineConfig(urls="http://127.0.0.1:8000"), 2),
    ],
)
def test_copies_of_the_weights_that_wait_for_steps_ahead_are_counted(steps, device, rank, engine, copies):
    cfg = Config(sampling=SamplingConfig(max_tokens=64), engine=engine, lora=LoraConfig(rank=rank))
    plans = [replace(cfg, max_off_policy_steps=ahead) for ahead in (1, steps)]
    one, several = (need_of(qwen(), own, prompt=40, device=device) for own in plans)
    parameters = sum(parameter.numel() for parameter in one.model.parameters())
    a_copy = 4 * (parameters + 151_936 * 896)  # a tied output layer is sent under both of its names
    adapter = steps * one.parts()["gradients"] if rank and not copies else 0  # 4 bytes for each of its parameters
    assert several.peak() - one.peak() == copies * a_copy + adapter


@pytest.fixture
def has_all_extras(monkeypatch):
    monkeypatch.setattr(memory_advice, "find_spec", lambda name: object())


def lowered(cfg: Config, device: str = "cpu") -> list[str]:
    """What the settings are lowered to, one candidate after another."""
    candidates = memory_advice._lower(need_of(qwen(), cfg, prompt=100, device=device))
    return [memory_advice._setting_arguments(cfg, one.cfg) for one in candidates]


def test_settings_are_suggested_in_the_order_of_what_they_change(has_all_extras):
    assert lowered(Config(sampling=SamplingConfig(max_tokens=1024))) == [
        "--optim.micro_batch_tokens 8192", "--engine.gpu_memory 0.3", "--optim.recompute true",
        "--engine.dtype bfloat16", "--lora.rank 16", "--algo.beta 0", "--sampling.max_tokens 512",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("rank", "settings"), [(0, "--lora.rank 16 --lora.base_dtype bfloat16"), (8, "--lora.base_dtype bfloat16")]
)
def test_frozen_weights_are_held_in_the_precision_of_the_passes(has_all_extras, rank, settings):
    cfg = Config(optim=OptimConfig(dtype="bfloat16"), lora=LoraConfig(rank=rank))
    assert settings in lowered(cfg, "cuda")


def test_extras_that_are_not_installed_are_not_suggested(monkeypatch):
    monkeypatch.setattr(memory_advice, "find_spec", lambda name: None)
    text = " ".join(lowered(Config()))
    assert "lora" not in text and "recompute" in text


def test_micro_batches_are_as_large_as_later_settings_allow(has_all_extras):
    """All weights with their gradients do not fit: LoRA is suggested, and then micro-batches need not be smaller."""
    cfg = one_prompt(256, OptimConfig(micro_batch_tokens=4096), algo=AlgoConfig(group_size=16))
    cfg = replace(cfg, engine=EngineConfig(name="transformers"))
    lean = replace(cfg, lora=LoraConfig(rank=16), optim=replace(cfg.optim, recompute=True))
    line = memory_finding(need_of(qwen(), cfg, prompt=100), need_of(qwen(), lean, prompt=100).peak())
    assert "--optim.recompute true" in line.suggestion and "--lora.rank 16" in line.suggestion
    assert "micro_batch_tokens" not in line.suggestion and "max_tokens" not in line.suggestion


def test_processes_on_a_cpu_need_their_memory_together():
    estimate = need_of(tiny_model(vocabulary=300), Config(processes=4), prompt=40)
    peak = estimate.peak()
    assert processes_finding(estimate, 4 * peak).severity is Severity.OK
    short = processes_finding(estimate, 4 * peak - 1)
    assert short.severity is Severity.ERROR and short.suggestion == "--processes 1"
    on_gpu = replace(estimate, device="cuda")
    assert processes_finding(on_gpu, peak).severity is Severity.OK  # one GPU for each
