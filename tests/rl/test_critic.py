"""GAE against brute force, the value loss, and a critic that learns, separate and on a shared backbone."""

from dataclasses import replace

import pytest
import torch

from reasoner.config.learning import CriticConfig
from reasoner.rl.advantages import gae
from reasoner.rl.batch import collate
from reasoner.rl.losses import value_loss
from reasoner.trainer.checkpoint import load, save
from reasoner.trainer.train import train_step
from reasoner.types import Completion, Prompt, RolloutGroup
from tests.fixtures.critics import ppo, shared, token_states
from tests.fixtures.tiny import tiny_model, tiny_tokenizer
from tests.fixtures.toys import PROBLEM, config, group, make_trainer, random_groups, score, take_step


def brute_force(rewards, values, length, gamma, lam):
    """sum over l of (gamma lambda)^l delta_(t + l), written out."""
    after = [*values[1:length], 0.0]
    delta = [rewards[t] + gamma * after[t] - values[t] for t in range(length)]
    return [sum((gamma * lam) ** (k - t) * delta[k] for k in range(t, length)) for t in range(length)]


@pytest.mark.parametrize("gamma", [1.0, 0.9])
@pytest.mark.parametrize("lam", [0.0, 0.95, 1.0])
def test_gae_equals_definition_on_rows_of_any_length(gamma, lam):  # trap 41
    generator = torch.Generator().manual_seed(0)
    lengths = torch.tensor([6, 1, 3, 5])
    mask = torch.arange(6) < lengths[:, None]
    rewards = torch.randn(4, 6, generator=generator) * mask
    values = torch.randn(4, 6, generator=generator)
    credit, returns = gae(rewards, values, mask, gamma=gamma, lam=lam)
    for row, length in enumerate(lengths.tolist()):
        expected = brute_force(rewards[row].tolist(), values[row].tolist(), length, gamma, lam)
        assert credit[row, :length].tolist() == pytest.approx(expected, abs=1e-5)
        assert returns[row, :length].tolist() == pytest.approx((credit + values)[row, :length].tolist(), abs=1e-5)
    assert (credit[~mask] == 0).all() and (returns[~mask] == 0).all()


def test_ppo_takes_the_end_of_a_truncated_completion_for_an_end():
    trainer = make_trainer(ppo())
    trainer.algorithm = replace(trainer.algorithm, scale="none")
    batch = collate([group([5, 6], [[7, 8], [9, 10], [7, 8], [9, 10]], [0.0] * 4)])
    batch = replace(batch, missing_eos=torch.tensor([True, False, True, False]), values=torch.full((4, 2), 0.5))
    ready = trainer.compute_advantages(batch)
    assert (ready.advantages == -0.5).all() and (ready.returns == 0).all()


LIMIT, SAMPLES, ENDS = 4, 64, 0  # a policy over four tokens, of which token 0 ends a completion


def sampled(policy, generator):
    """Sample a group from the policy: a finished completion earns 1 with probability 0.3, a truncated one never."""
    ids, logprobs = torch.tensor([[2, 3]]).repeat(SAMPLES, 1), []
    with torch.no_grad():
        for _ in range(LIMIT):
            step = policy(input_ids=ids).logits[:, -1].log_softmax(-1)
            token = torch.multinomial(step.exp(), 1, generator=generator)
            logprobs.append(step.gather(1, token))
            ids = torch.cat([ids, token], dim=1)
    completions, rewards = [], []
    for row, own in zip(ids[:, 2:].tolist(), torch.cat(logprobs, dim=1).tolist(), strict=True):
        has_end = ENDS in row
        length = row.index(ENDS) + 1 if has_end else LIMIT
        finish = "stop" if has_end else "length"
        completions.append(Completion("", tuple(row[:length]), tuple(own[:length]), finish, 0))
        rewards.append(float(has_end and torch.rand(1, generator=generator).item() < 0.3))
    return RolloutGroup(Prompt(PROBLEM, "", "", (2, 3)), tuple(completions), tuple(map(score, rewards)))


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_ppo_learns_to_end_completions_when_truncated_ones_earn_nothing(seed):
    generator = torch.Generator().manual_seed(seed)
    cfg = config(name="ppo", lr=1e-3, group_size=SAMPLES, minibatches=1)
    cfg = replace(cfg, critic=CriticConfig(lr=1e-2), sampling=replace(cfg.sampling, max_tokens=LIMIT))
    trainer = make_trainer(cfg, tiny_model(vocabulary=4, width=32, layers=1, seed=seed))
    shares = []
    for _ in range(45):
        rolled = sampled(trainer.model, generator)
        shares.append(sum(c.finish == "length" for c in rolled.completions) / SAMPLES)
        take_step(trainer, [rolled])
    assert shares[0] > 0.2 and sum(shares[-5:]) / 5 < 0.1


def test_value_loss_takes_larger_of_plain_and_clipped_error():
    values, old, returns = torch.tensor([2.0, 0.1]), torch.tensor([0.0, 0.0]), torch.tensor([2.0, 1.0])
    assert value_loss(values, old, returns, clip=0.0).tolist() == pytest.approx([0.0, 0.405])
    assert value_loss(values, old, returns, clip=0.5).tolist() == pytest.approx([1.125, 0.405])


def test_critic_starts_at_zero_and_is_independent_of_micro_batches():
    cfg = ppo()
    batch = collate(random_groups())
    trainer = make_trainer(cfg)
    assert (trainer.critic.values(batch) == 0).all()
    take_step(trainer, batch)
    whole = trainer.critic.values(batch)
    trainer.critic.cfg = replace(cfg, optim=replace(cfg.optim, micro_batch_tokens=9))
    assert whole.abs().max() > 0
    assert torch.allclose(whole[batch.mask], trainer.critic.values(batch)[batch.mask], atol=1e-5)


def test_value_depends_only_on_prompt_and_earlier_tokens():
    trainer = make_trainer(ppo())
    take_step(trainer, random_groups())
    one, other = (trainer.critic.values(collate([group([5, 6], [[7, 8, own, 9], [9]], [0, 1])]))[0] for own in (10, 11))
    assert torch.allclose(one[:3], other[:3], atol=1e-6) and not torch.isclose(one[3], other[3])


def test_critic_learns_expected_returns_during_warmup():
    trainer = make_trainer(ppo(warmup_steps=1000, epochs=1, minibatches=1))
    groups = [group([5, 6], [[7, 8], [9, 10], [7, 11], [9, 12]], [1.0, 0.0, 1.0, 0.0])]
    weights = [p.clone() for p in trainer.model.parameters()]
    metrics = [take_step(trainer, groups) for _ in range(60)]
    assert metrics[0]["critic/loss"] == pytest.approx(0.25, abs=0.02)
    assert metrics[-1]["critic/loss"] == pytest.approx(
        0.0625, abs=0.005
    )  # before the first token the return is unknown
    assert metrics[-1]["critic/explained_variance"] == pytest.approx(0.5, abs=0.05)
    values = trainer.critic.values(collate(groups))
    assert values[0, 1] > 0.6 > 0.4 > values[1, 1]  # after the first token the return is known
    assert all(
        torch.equal(a, b) for a, b in zip(weights, trainer.model.parameters(), strict=True)
    )  # the critic warms up alone


@pytest.mark.parametrize(
    ("critic", "policy", "updates"),
    [
        ({"minibatches": 1, "epochs": 2}, {}, 2),
        ({"minibatches": 5, "epochs": 2}, {}, 10),
        ({"epochs": 1}, {}, 2),  # PPO has two passes over two minibatches
        ({}, {}, 4),
        ({}, {"epochs": 3, "minibatches": 1}, 3),
    ],
)
def test_critic_has_the_policys_passes_and_minibatches_unless_it_is_given_its_own(critic, policy, updates):
    cfg = ppo(**critic)
    trainer = make_trainer(replace(cfg, algo=replace(cfg.algo, **policy)))
    steps = []
    trainer.critic.optimizer.register_step_pre_hook(lambda *_: steps.append(1))
    metrics = take_step(trainer, random_groups(5))
    assert len(steps) == updates and 0 < metrics["critic/loss"] < 1


def test_critic_computes_in_optim_dtype_with_float32_values():
    batch = collate(random_groups())
    whole, half = (
        make_trainer(replace(ppo(), optim=replace(ppo().optim, dtype=kind))) for kind in ("float32", "bfloat16")
    )
    for trainer in (whole, half):
        torch.manual_seed(0)
        torch.nn.init.normal_(trainer.critic.head.weight, std=0.1)
    gap = (whole.critic.values(batch) - half.critic.values(batch))[batch.mask].abs()
    assert 0 < gap.max() < 0.1
    assert half.critic.values(batch).dtype == torch.float32


def critic_after(cfg, **state):
    """Change of the critic's weights by one update."""
    trainer = make_trainer(cfg)
    trainer.restore(trainer.state() | state)
    before = torch.cat([p.detach().flatten().clone() for p in trainer.critic.own.parameters()])
    take_step(trainer, random_groups())
    return torch.cat([p.detach().flatten() for p in trainer.critic.own.parameters()]) - before


@pytest.mark.parametrize("critic_backbone", ["separate", "shared"])
def test_critic_learning_rate_follows_schedule(critic_backbone):
    cfg = ppo(epochs=1, minibatches=1) if critic_backbone == "separate" else shared()
    plain = critic_after(cfg)
    warm = critic_after(replace(cfg, optim=replace(cfg.optim, warmup_steps=4)))
    atol = 1e-3 * float(plain.abs().max())
    assert torch.allclose(warm, plain / 4, atol=atol)


@pytest.mark.parametrize(
    "algo", [{}, {"critic_backbone": "shared"}, {"entropy_coef": 0.1}, {"kl_in": "loss", "kl": "k3"}]
)
def test_critic_warmup_leaves_policy_unchanged(algo):
    cfg = config(name="ppo", beta=0.05, lr=1e-2, **algo)
    cfg = replace(cfg, critic=CriticConfig(lr=1e-2, warmup_steps=2))
    trainer = make_trainer(cfg, reference=tiny_model(vocabulary=60, width=32, layers=2, seed=5).requires_grad_(False))
    batch = collate(random_groups())
    before = [p.clone() for p in trainer.model.parameters()]
    losses = [take_step(trainer, batch)["critic/loss"] for _ in range(2)]
    assert losses[1] < losses[0]
    assert all(torch.equal(a, b) for a, b in zip(before, trainer.model.parameters(), strict=True))
    take_step(trainer, batch)
    assert any((a != b).any() for a, b in zip(before, trainer.model.parameters(), strict=True))


def test_adaptive_beta_is_unchanged_without_measured_kl():
    """No KL is computed in critic warm-up, nor in a step of equal rewards with the KL in the reward."""
    cfg = config(name="ppo", beta=0.05, kl_target=0.1)
    other = tiny_model(vocabulary=60, width=32, layers=2, seed=5).requires_grad_(False)
    trainer = make_trainer(replace(cfg, critic=CriticConfig(lr=1e-3, warmup_steps=6)), reference=other)
    batch = collate(random_groups())
    assert [take_step(trainer, batch)["beta"] for _ in range(6)] == [0.05] * 6
    assert take_step(trainer, batch)["beta"] != 0.05


def test_skipped_update_clears_gradients_of_shared_backbone():
    trainer = make_trainer(shared())
    ready = trainer.compute_advantages(trainer.compute_logprobs(collate(random_groups())))
    assert train_step(trainer, replace(ready, advantages=ready.advantages * float("inf")))["skipped_updates"] == 1
    assert all(
        p.grad is None or not p.grad.any() for p in (*trainer.critic.own.parameters(), *trainer.model.parameters())
    )


def test_shared_backbone_gradient_sums_both_losses_for_any_micro_batches():
    cfg = shared(vf_coef=0.3)
    batch, norms_by_micro = collate(random_groups()), []
    for micro in (10_000, 9):
        trainer = make_trainer(replace(cfg, optim=replace(cfg.optim, micro_batch_tokens=micro, lr=0.0)))
        torch.manual_seed(0)
        torch.nn.init.normal_(trainer.critic.head.weight, std=0.1)
        ready = trainer.compute_advantages(trainer.compute_logprobs(batch))
        alone = replace(ready, returns=trainer.critic.values(ready))  # nothing to learn for the critic
        norms = [train_step(trainer, with_it)["grad_norm"] for with_it in (ready, alone)]
        trainer.model.zero_grad()
        weighted = replace(ready, weights=trainer.policy_loss.weights(ready))
        states = token_states(trainer.model, batch)
        (0.3 * trainer.critic.loss(states, weighted)).backward()
        value = torch.cat([p.grad.flatten() for p in trainer.model.parameters() if p.grad is not None])
        norms_by_micro.append((*norms, float(value.norm())))
    assert norms_by_micro[0] == pytest.approx(norms_by_micro[1], rel=1e-4)
    both, policy, value = norms_by_micro[0]
    assert abs(policy - value) < both <= policy + value and value > 0.01 * policy


def test_shared_backbone_critic_learns_and_policy_improves():
    trainer = make_trainer(shared())
    groups = [group([5, 6], [[7, 8], [9, 10], [7, 11], [9, 12]], [1.0, 0.0, 1.0, 0.0])]
    batch = collate(groups)
    before = trainer.passes.all_logprobs(batch)
    metrics = [take_step(trainer, batch) for _ in range(40)]
    assert metrics[0]["critic/loss"] == pytest.approx(0.25) and metrics[-1]["critic/loss"] < 0.1
    assert sum(p.numel() for p in trainer.critic.own.parameters()) == 33  # the head alone
    moved = ((trainer.passes.all_logprobs(batch) - before) * batch.mask).sum(dim=1)
    assert moved[0] > moved[1] and moved[2] > moved[3]


@pytest.mark.parametrize("cfg", [ppo(), shared()], ids=["separate", "shared"])
def test_critic_resumes_with_optimizer_state(tmp_path, cfg):
    straight, first, second = make_trainer(cfg), make_trainer(cfg), make_trainer(cfg)
    for trainer in (straight, first):
        train_step(trainer, trainer.compute_advantages(trainer.prepare_batch(random_groups(seed=1))))
    path = save(tmp_path, 1, first, tiny_tokenizer(), keep=1)
    second.model.load_state_dict(first.model.state_dict())
    load(path, second)
    for trainer in (straight, second):
        train_step(trainer, trainer.compute_advantages(trainer.prepare_batch(random_groups(seed=2))))
    own, resumed = ([*one.model.parameters(), *one.critic.own.parameters()] for one in (straight, second))
    assert all(torch.equal(a, b) for a, b in zip(own, resumed, strict=True))


def test_update_of_the_critic_without_a_finite_gradient_is_counted():
    trainer = make_trainer(ppo(epochs=3, minibatches=1))
    ready = trainer.compute_advantages(trainer.compute_logprobs(collate(random_groups())))
    before = [parameter.clone() for parameter in trainer.critic.own.parameters()]
    figures = train_step(trainer, replace(ready, returns=ready.returns * float("inf")))
    assert figures["skipped_updates"] == 3
    assert all(torch.equal(a, b) for a, b in zip(before, trainer.critic.own.parameters(), strict=True))
    assert train_step(trainer, ready)["skipped_updates"] == 0


def test_checkpoint_of_before_the_first_step_leaves_no_moments(tmp_path):
    trainer = make_trainer(ppo())
    path = save(tmp_path, 0, trainer, tiny_tokenizer(), keep=1)
    take_step(trainer, random_groups())
    optimizers = (trainer.optimizer, trainer.critic.optimizer)
    assert all(optimizer.state_dict()["state"] for optimizer in optimizers)
    assert load(path, trainer) == 0
    assert [optimizer.state_dict()["state"] for optimizer in optimizers] == [{}, {}]
