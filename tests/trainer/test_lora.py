"""Training with LoRA: every kind of algorithm moves the adapter alone, learns, and resumes to the same bytes."""

from dataclasses import replace

import pytest
import torch

pytest.importorskip("peft")

from reasoner.config.algorithm import AlgoConfig
from reasoner.config.check import check_run
from reasoner.config.learning import LoraConfig, OptimConfig
from reasoner.config.schema import Config
from reasoner.models.folder import BaseModel
from reasoner.models.loading import token_logprobs
from reasoner.models.lora import add_adapter, has_adapter, load_weights, merged_state, policy_state
from reasoner.rl.batch import collate
from reasoner.trainer.checkpoint import damage, load, room_needed, save
from tests.fixtures.tiny import tiny_model, tiny_tokenizer
from tests.fixtures.toys import config, group, make_trainer, random_groups, take_step

LORA = LoraConfig(rank=4)


def lora_trainer(cfg):
    """A trainer of an adapter, whose reference is the policy itself, as reasoner.trainer.components builds it."""
    cfg = replace(cfg, lora=LORA)
    policy = tiny_model(vocabulary=60, width=32, layers=2)
    add_adapter(policy, cfg.lora, seed=cfg.seed)
    base = BaseModel("tiny", "nowhere", "0" * 16)
    return make_trainer(cfg, policy, policy if cfg.algo.beta > 0 else None, base_model=base)


ALGORITHMS = {
    "grpo": {"name": "grpo", "beta": 0.05}, "dapo": {"name": "dapo"}, "gspo": {"name": "gspo"},
    "trpo": {"name": "trpo"}, "ppo": {"name": "ppo"}, "ppo shared": {"name": "ppo", "critic_backbone": "shared"},
}  # fmt: skip


@pytest.mark.parametrize("name", ALGORITHMS)
def test_step_moves_the_adapter_and_leaves_the_base(name):
    made = lora_trainer(config(**ALGORITHMS[name]))
    before = {name: tensor.clone() for name, tensor in made.model.state_dict().items()}
    for seed in range(2):
        metrics = take_step(made, random_groups(seed=seed))
    assert metrics["grad_norm"] > 0 and not metrics["skipped_updates"]
    moved = {name for name, tensor in made.model.state_dict().items() if not torch.equal(tensor, before[name])}
    assert moved == {name for name in before if ".lora_" in name}
    states = made.optimizer.state_dict()["state"]
    assert len(states) in (0, len(moved))  # TRPO's step has no moments
    if made.critic is not None and not made.critic.shared:
        assert all(".lora_" in name or name.startswith("head.") for name, _ in made.critic.trained)
        frozen = made.critic.base_model.layers[0].self_attn.q_proj.base_layer.weight
        assert frozen is made.model.model.layers[0].self_attn.q_proj.base_layer.weight
        copied = made.critic.base_model.layers[0].self_attn.q_proj.lora_B["default"].weight
        assert copied is not made.model.model.layers[0].self_attn.q_proj.lora_B["default"].weight
        assert copied.abs().max() > 0


def test_reference_logprobs_are_those_of_the_base_to_the_bit():
    made = lora_trainer(config(beta=0.1))
    for seed in range(2):
        take_step(made, random_groups(seed=seed))
    batch = collate(random_groups(seed=3))
    base = make_trainer(config())
    assert torch.equal(made.compute_logprobs(batch).ref_logprobs, base.passes.all_logprobs(batch))
    assert not torch.equal(made.passes.all_logprobs(batch), base.passes.all_logprobs(batch))


@pytest.mark.parametrize("name", ["grpo", "ppo", "ppo shared"])
def test_resumed_trainer_ends_with_the_same_bits_and_stores_no_base(tmp_path, name):
    cfg = config(**ALGORITHMS[name])
    made, other = lora_trainer(cfg), lora_trainer(cfg)
    take_step(made, random_groups(seed=0))
    path = save(tmp_path, 1, made, tiny_tokenizer(), keep=2)
    assert not damage(path)
    load_weights(other.model, path)
    assert load(path, other) == 1
    for one in (made, other):
        take_step(one, random_groups(seed=1))
    own, resumed = (policy_state(one.model) for one in (made, other))
    assert all(torch.equal(a, b) for (_, a), (_, b) in zip(own, resumed, strict=True))
    stored = sum(file.stat().st_size for file in path.rglob("*.safetensors"))
    assert stored < 1.3 * room_needed(made, keep=1)[0]


def test_policy_state_is_the_adapter_or_the_merged_weights():
    made = lora_trainer(config())
    take_step(made, random_groups())
    assert dict(policy_state(made.model)).keys() == tiny_model(vocabulary=60, width=32, layers=2).state_dict().keys()
    assert all(".lora_" in name for name, _ in policy_state(made.model, sends_adapter=True))


def test_toy_learns_with_lora_and_keeps_its_reference():
    """The answer token 7 after the prompt is rewarded: its probability rises from under 5 % to over 50 %."""
    made = lora_trainer(config(lr=2e-2, beta=0.01))
    generator = torch.Generator().manual_seed(0)

    @torch.no_grad()
    def probability(policy):
        ids, one = torch.tensor([[5, 6]]), torch.tensor([1])
        answer = torch.tensor([[7]])
        return float(token_logprobs(policy, ids, one + 1, one - 1, answer, one, temperature=1.0)[0].exp())

    first = probability(made.model)
    for _ in range(40):
        others = torch.randint(8, 60, (3,), generator=generator).tolist()
        take_step(made, [group([5, 6], [[7], *([token] for token in others)], [1, 0, 0, 0])])
    assert first < 0.05 and probability(made.model) > 0.5
    plain = tiny_model(vocabulary=60, width=32, layers=2)
    assert not has_adapter(plain)
    plain.load_state_dict(dict(merged_state(made.model)))
    assert abs(probability(plain) - probability(made.model)) < 1e-4


@pytest.mark.parametrize(
    "cfg",
    [
        Config(lora=LORA, algo=AlgoConfig(ref_sync_steps=4)),
        Config(lora=replace(LORA, base_dtype="bfloat16")),  # passes in float32
        Config(lora=LoraConfig(base_dtype="bfloat16"), optim=OptimConfig(dtype="bfloat16")),  # weights that are trained
    ],
)
def test_reference_that_follows_and_base_in_bfloat16_that_does_not_fit_are_refused(cfg):
    with pytest.raises(ValueError, match=r"lora\.(rank|base_dtype) .* needs "):
        check_run(cfg)
    lora = replace(LORA, base_dtype="bfloat16")
    check_run(replace(cfg, lora=lora, optim=OptimConfig(dtype="bfloat16"), algo=AlgoConfig()))
