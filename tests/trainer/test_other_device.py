"""The trainer and the transformers engine on a device that is not the CPU: no operation mixes tensors of both."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from reasoner.config.schema import EngineConfig
from reasoner.inference import sampling
from reasoner.inference.hf_engine import TransformersEngine
from reasoner.models import loading, lora
from reasoner.rl.algorithms import ALGORITHMS
from reasoner.rl.token_stats import TokenStats
from reasoner.trainer.train import train_step
from reasoner.types import Completion, SamplingParams
from tests.fixtures.other_device import DEVICE, MixedDevices, OtherDevice, move
from tests.fixtures.tiny import END, tiny_model, tiny_tokenizer
from tests.fixtures.toys import config, make_trainer, random_groups


@pytest.mark.parametrize(
    "mix",
    [
        lambda moved: moved + torch.ones(3),
        lambda moved: torch.cat([torch.ones(3), moved]),
        lambda moved: torch.where(torch.ones(3) > 0, moved, 0.0),
        lambda moved: moved.scatter(0, torch.arange(3), moved),
        lambda moved: torch.zeros_like(moved).numpy(),
    ],
)
def test_operation_on_tensors_of_two_devices_is_refused(mix):
    with OtherDevice(), pytest.raises(MixedDevices):
        mix(torch.ones(3).to(DEVICE))


def step(cfg, *, is_moved, stats):
    """The metrics of one training step with a reference; on DEVICE if `is_moved`."""
    place = move if is_moved else lambda model: model
    policy, reference = (place(tiny_model(vocabulary=60, width=32, seed=seed)) for seed in (0, 1))
    trainer = make_trainer(cfg, policy, reference.requires_grad_(False))
    trainer.tokenizer = tiny_tokenizer()
    # torch's fused optimiser has no kernel for the device
    trainer.optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-3, foreach=False)
    return train_step(trainer, trainer.compute_advantages(trainer.prepare_batch(random_groups())), stats)


CHANGES = {
    **{name: {"name": name} for name in ALGORITHMS},
    "critic on the policy's backbone": {"name": "ppo", "critic_backbone": "shared"},
    "minibatches, entropy, importance": {
        "name": "grpo", "minibatches": 2, "epochs": 2, "entropy_coef": 0.01, "importance_sampling": "sequence",
        "mask_truncated_completions": True, "ref_sync_steps": 1, "kl_target": 0.1,
    },
}  # fmt: skip
QUICK = ("ppo", "grpo_process", "minibatches, entropy, importance")


@pytest.mark.parametrize(
    "case", [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow]) for name in CHANGES]
)
def test_training_step_on_another_device_mixes_nothing_and_has_the_numbers_of_the_cpu(case):
    cfg = config(beta=0.04, micro=40, **CHANGES[case])
    expected = step(cfg, is_moved=False, stats=TokenStats(keeps_tokens=True))
    with OtherDevice():
        metrics = step(cfg, is_moved=True, stats=TokenStats(keeps_tokens=True))
    assert metrics == pytest.approx(expected, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_tiled_output_layer_on_another_device_mixes_nothing(monkeypatch, dtype):
    monkeypatch.setattr(loading, "MAX_LOGITS", 0)
    cfg = config(beta=0.04, micro=40, entropy_coef=0.01)
    cfg = replace(cfg, optim=replace(cfg.optim, dtype=dtype))
    expected = step(cfg, is_moved=False, stats=None)
    with OtherDevice():
        metrics = step(cfg, is_moved=True, stats=None)
    assert metrics == pytest.approx(expected, rel=1e-2, abs=1e-4)


@pytest.mark.parametrize(
    "sampling",
    [
        SamplingParams(num_samples=3, max_tokens=6, stop=("a",)),
        SamplingParams(num_samples=3, temperature=0.7, top_p=0.9, max_tokens=6),
        SamplingParams(num_samples=3, temperature=0, max_tokens=6),
    ],
)
def test_transformers_engine_on_another_device_samples_what_it_samples_on_the_cpu(tiny_folder, sampling):
    engine = TransformersEngine(tiny_folder, EngineConfig(), max_model_len=64)
    prompts = [group.prompt for group in random_groups(3)]
    seeds = [[10 * i + j for j in range(3)] for i in range(3)]

    def sample() -> list[Completion]:
        return [completion for group in engine.generate(prompts, sampling, seeds) for completion in group]

    expected = sample()
    with OtherDevice():
        move(engine._model)
        engine._device = DEVICE
        found = sample()
    assert [one.token_ids for one in found] == [one.token_ids for one in expected]
    assert END not in "".join(one.text for one in found)


def test_weights_are_loaded_by_way_of_the_cpu(tiny_folder, monkeypatch):
    """A GPU that held them twice could run out of memory."""
    devices = []

    def load_policy(path: Path, *, device: torch.device, mesh: None):
        devices.append(device)
        return loading.load_policy(path, device=device, mesh=mesh)

    monkeypatch.setattr(lora, "load_policy", load_policy)
    policy = tiny_model(vocabulary=len(tiny_tokenizer()), seed=3)
    with OtherDevice():
        move(policy)
        lora.load_weights(policy, tiny_folder)
        values = {name: tensor.cpu() for name, tensor in policy.state_dict().items()}
        assert {tensor.device for tensor in policy.state_dict().values()} == {DEVICE}
    stored = loading.load_policy(tiny_folder, device=torch.device("cpu")).state_dict()
    assert devices == [torch.device("cpu")]
    assert all(torch.equal(values[name], tensor) for name, tensor in stored.items())


def test_sums_of_top_p_on_another_device_are_those_of_the_cpu():
    probabilities = torch.randn(8, 5000, generator=torch.Generator().manual_seed(0)).softmax(dim=-1)
    expected = probabilities.double().cumsum(dim=-1)
    with OtherDevice():
        sums = torch.tensor(sampling._cumulative(probabilities.to(DEVICE)).tolist(), dtype=torch.float64)
    assert torch.allclose(sums, expected, rtol=0, atol=1e-11)
