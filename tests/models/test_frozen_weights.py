"""Frozen weights in bfloat16 against the same values in float32: equal to the bit, half the bytes."""

from dataclasses import replace

import pytest
import torch

pytest.importorskip("peft")

from reasoner.config.learning import LoraConfig
from reasoner.models.folder import BaseModel, model_fingerprint
from reasoner.models.loading import load_policy, token_logprobs
from reasoner.models.lora import adapter_of, adapter_off, add_adapter, merged_state, save_policy, trained_parameters
from reasoner.rl.batch import collate
from reasoner.trainer.train import train_step
from tests.fixtures.tiny import tiny_llama, tiny_model, tiny_tokenizer
from tests.fixtures.toys import config, make_trainer, random_groups

CPU = torch.device("cpu")
LORA = LoraConfig(rank=4)


MODELS = {"qwen2": lambda: tiny_model(vocabulary=60, width=32, layers=2), "llama": tiny_llama}


def saved(tmp_path, name="qwen2", *, dtype):
    """Folder of a model whose weights are stored in the precision."""
    folder = tmp_path / name
    MODELS[name]().to(dtype).save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return folder


def trainer_of(folder, base_dtype, **algo):
    cfg = config(**algo)
    cfg = replace(cfg, lora=replace(LORA, base_dtype=base_dtype), optim=replace(cfg.optim, dtype="bfloat16"))
    policy = load_policy(folder, device=CPU, dtype=getattr(torch, base_dtype))
    add_adapter(policy, cfg.lora, seed=0)
    base = BaseModel("tiny", str(folder), model_fingerprint(folder))
    return make_trainer(cfg, policy, policy if cfg.algo.beta > 0 else None, base_model=base)


def step(trainer, seed):
    batch = trainer.compute_logprobs(collate(random_groups(2, seed=seed)))
    return batch, train_step(trainer, trainer.compute_advantages(batch))


ALGORITHMS = {
    "grpo": {"name": "grpo", "beta": 0.1}, "ppo": {"name": "ppo"},
    "ppo shared": {"name": "ppo", "critic_backbone": "shared"}, "trpo": {"name": "trpo"},
}  # fmt: skip


@pytest.mark.parametrize(("model", "algorithm"), [("llama", "grpo"), *(("qwen2", name) for name in ALGORITHMS)])
def test_training_on_a_base_stored_in_bfloat16_is_equal_to_the_bit(tmp_path, model, algorithm):
    folder = saved(tmp_path, model, dtype=torch.bfloat16)
    wide, narrow = (trainer_of(folder, dtype, **ALGORITHMS[algorithm]) for dtype in ("float32", "bfloat16"))
    for seed in range(2):
        (batch, metrics), (other_batch, other_metrics) = step(wide, seed), step(narrow, seed)
        assert metrics == other_metrics and metrics["grad_norm"] > 0
        if batch.ref_logprobs is not None:
            assert torch.equal(batch.ref_logprobs, other_batch.ref_logprobs)
    adapters = [adapter_of(trainer.model).tensors for trainer in (wide, narrow)]
    assert all(torch.equal(tensor, adapters[1][name]) for name, tensor in adapters[0].items())
    assert any(bool(tensor.any()) for name, tensor in adapters[0].items() if ".lora_B." in name)


def test_matrices_are_held_in_two_bytes_and_adapter_and_vectors_in_four(tmp_path):
    folder = saved(tmp_path, "llama", dtype=torch.float32)
    policy = trainer_of(folder, "bfloat16").model
    in_bytes = {name: parameter.element_size() for name, parameter in policy.named_parameters()}
    trained = {name for name, _ in trained_parameters(policy)}
    assert {in_bytes[name] for name in trained} == {4}
    assert {in_bytes[name] for name in in_bytes.keys() - trained} == {2, 4}
    assert all((in_bytes[name] == 4) == ("norm" in name) for name in in_bytes.keys() - trained)


def test_merged_weights_are_added_in_float32_to_the_base_that_is_held(tmp_path):
    trainer = trainer_of(saved(tmp_path, dtype=torch.float32), "bfloat16")
    for seed in range(2):
        step(trainer, seed)
    adapter, held = adapter_of(trainer.model), dict(trainer.model.named_parameters())
    for name, tensor in merged_state(trainer.model):
        layer = name.removesuffix(".weight")
        if layer not in adapter.layers or not name.endswith(".weight"):
            continue
        expected = held[f"{layer}.base_layer.weight"].float() + adapter.delta(layer)
        assert tensor.dtype == torch.float32 and torch.equal(tensor, expected)
    assert adapter.layers


def test_base_that_is_itself_an_adapter_is_merged_before_it_is_rounded(tmp_path):
    trainer = trainer_of(saved(tmp_path, dtype=torch.float32), "float32")
    step(trainer, 0)
    save_policy(trainer.model, tmp_path / "adapter", trainer.base_model)
    folder = tmp_path / "adapter"
    whole, held = (load_policy(folder, device=CPU, dtype=dtype) for dtype in (torch.float32, torch.bfloat16))
    weights = dict(held.named_parameters())
    for name, weight in whole.named_parameters():
        assert torch.equal(weights[name], weight.to(torch.bfloat16) if weight.ndim > 1 else weight)


def test_policy_without_its_adapter_is_the_base_that_is_held(tmp_path):
    folder = saved(tmp_path, dtype=torch.float32)
    trainer, base = trainer_of(folder, "bfloat16"), load_policy(folder, device=CPU, dtype=torch.bfloat16)
    step(trainer, 0)
    rows = torch.tensor([[5, 6, 7, 9]]), torch.tensor([4]), torch.tensor([0]), torch.tensor([[3, 4]]), torch.tensor([2])
    expected, _ = token_logprobs(base, *rows, temperature=1.0)
    with adapter_off(trainer.model):
        assert torch.equal(token_logprobs(trainer.model, *rows, temperature=1.0)[0], expected)
    assert not torch.equal(token_logprobs(trainer.model, *rows, temperature=1.0)[0], expected)
