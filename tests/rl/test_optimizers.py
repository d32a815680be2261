"""AdamW with moments in 8 bits: near the one in float32, a quarter of its size, the same steps after a checkpoint."""

from dataclasses import replace

import pytest
import torch

from reasoner.rl.batch import collate
from reasoner.rl.optimizers import make_adamw, optimizer_state
from reasoner.trainer import checkpoint
from reasoner.trainer.preflight import preflight
from tests.fixtures.tiny import tiny_model, tiny_tokenizer
from tests.fixtures.toys import config, make_trainer, random_groups, take_step


def eight_bit_trainer(model=None, **algo):
    pytest.importorskip("torchao", reason="the extra torchao")
    cfg = config(**algo)
    model = model or tiny_model(vocabulary=64, width=128, layers=2)
    return make_trainer(replace(cfg, optim=replace(cfg.optim, state_dtype="8bit")), model)


def take_steps(trainer, number, seed=0):
    for step in range(number):
        batch = collate(random_groups(seed=seed + step))
        take_step(trainer, batch)


def moment_bytes(optimizer, model):
    return sum(tensor.nbytes for tensor in optimizer_state(optimizer, list(model.named_parameters())).values())


def test_8bit_moments_take_under_a_third_of_float32_and_step_nearly_alike():
    quantized = eight_bit_trainer()
    plain = make_trainer(config(), tiny_model(vocabulary=64, width=128, layers=2))
    before = torch.cat([parameter.detach().flatten() for parameter in plain.policy.parameters()])
    updates = []
    for trainer in (quantized, plain):
        take_steps(trainer, 3)
        after = torch.cat([parameter.detach().flatten() for parameter in trainer.policy.parameters()])
        updates.append(after - before)
    assert torch.cosine_similarity(*updates, dim=0) > 0.95
    sizes = [moment_bytes(trainer.optimizer, trainer.policy) for trainer in (quantized, plain)]
    assert sizes[0] < sizes[1] / 3


@pytest.mark.parametrize("algo", [{}, {"name": "ppo"}])
def test_8bit_run_resumed_from_a_checkpoint_has_the_same_weights_to_the_bit(tmp_path, algo):
    whole = eight_bit_trainer(**algo)
    take_steps(whole, 2)
    path = checkpoint.save(tmp_path, 2, whole, tiny_tokenizer(), keep=1)
    assert not checkpoint.damage(path)
    resumed = eight_bit_trainer(**algo)
    resumed.policy.load_state_dict(whole.policy.state_dict())
    assert checkpoint.load(path, resumed) == 2
    assert moment_bytes(resumed.optimizer, resumed.policy) == moment_bytes(whole.optimizer, whole.policy)
    for trainer in (whole, resumed):
        take_steps(trainer, 2, seed=2)
    for one, other in zip(whole.policy.parameters(), resumed.policy.parameters(), strict=True):
        assert torch.equal(one, other)
    if whole.critic is not None:
        for name, tensor in whole.critic.state().items():
            assert torch.equal(tensor, resumed.critic.state()[name]), name


@pytest.mark.parametrize("state_dtype", ["float32", "8bit"])
def test_checkpoint_of_before_the_first_step_leaves_no_moments(tmp_path, state_dtype):
    if state_dtype == "8bit":
        pytest.importorskip("torchao", reason="the extra torchao")
    cfg = config(name="ppo")
    cfg = replace(cfg, optim=replace(cfg.optim, state_dtype=state_dtype))
    trainer = make_trainer(cfg, tiny_model(vocabulary=64, width=128, layers=2))
    path = checkpoint.save(tmp_path, 0, trainer, tiny_tokenizer(), keep=1)
    take_steps(trainer, 1)
    optimizers = (trainer.optimizer, trainer.critic.optimizer)
    assert all(optimizer.state_dict()["state"] for optimizer in optimizers)
    assert checkpoint.load(path, trainer) == 0
    assert [optimizer.state_dict()["state"] for optimizer in optimizers] == [{}, {}]


def test_float32_moments_are_those_of_torch_adamw():
    parameter = torch.nn.Parameter(torch.ones(3))
    optimizer = make_adamw([parameter], "float32", lr=0.1, weight_decay=0.0, fused=True)
    assert type(optimizer) is torch.optim.AdamW and optimizer.defaults["fused"]


def test_8bit_moments_without_torchao_are_refused_with_the_extra_that_has_it(tmp_path, monkeypatch):
    monkeypatch.setattr("reasoner.trainer.preflight.find_spec", lambda name: None)
    cfg = config()
    with pytest.raises(ValueError, match=r'optim\.state_dtype.*pip install "reasoner-rlvr\[torchao\]"'):
        preflight(replace(cfg, optim=replace(cfg.optim, state_dtype="8bit")), tmp_path / "run")
