"""GAE against brute force, the value loss, and a critic that learns."""

from dataclasses import replace

import pytest
import torch

from reasoner.config.schema import CriticConfig
from reasoner.models.loading import completion_states, read_prompts
from reasoner.rl.advantages import gae
from reasoner.rl.algorithms import resolve
from reasoner.rl.batch import collate
from reasoner.rl.credit import token_rewards
from reasoner.rl.losses import value_loss
from reasoner.trainer.checkpoint import load, save
from reasoner.types import Completion, Group, Prompt
from tests.fixtures.tiny import tiny_model, tiny_tokenizer
from tests.fixtures.toys import PROBLEM, config, group, learner, random_groups, score


def brute_force(rewards, values, length, truncated, gamma, lam):
    """sum over l of (gamma lambda)^l delta_(t + l), written out."""
    after = [*values[1:length], values[length] if truncated else 0.0]
    delta = [rewards[t] + gamma * after[t] - values[t] for t in range(length)]
    return [sum((gamma * lam) ** (k - t) * delta[k] for k in range(t, length)) for t in range(length)]


@pytest.mark.parametrize("gamma", [1.0, 0.9])
@pytest.mark.parametrize("lam", [0.0, 0.95, 1.0])
def test_gae_is_its_definition_on_rows_of_any_length(gamma, lam):  # trap 41
    generator = torch.Generator().manual_seed(0)
    lengths = torch.tensor([6, 1, 3, 5])
    mask = torch.arange(6) < lengths[:, None]
    rewards = torch.randn(4, 6, generator=generator) * mask
    values = torch.randn(4, 7, generator=generator)
    truncated = torch.tensor([False, True, True, False])
    found, returns = gae(rewards, values, mask, gamma=gamma, lam=lam, bootstrapped=truncated)
    for row, length in enumerate(lengths.tolist()):
        wanted = brute_force(rewards[row].tolist(), values[row].tolist(), length, bool(truncated[row]), gamma, lam)
        assert found[row, :length].tolist() == pytest.approx(wanted, abs=1e-5)
        assert returns[row, :length].tolist() == pytest.approx(
            (found + values[:, :-1])[row, :length].tolist(), abs=1e-5
        )
    assert (found[~mask] == 0).all() and (returns[~mask] == 0).all()


def test_gae_bootstraps_after_a_graded_end_only_where_it_is_told_to():
    rewards, values, mask = torch.zeros(2, 2), torch.full((2, 3), 0.5), torch.ones(2, 2).bool()
    credit, returns = gae(rewards, values, mask, gamma=1.0, lam=1.0)
    assert credit.tolist() == [[-0.5, -0.5], [-0.5, -0.5]] and (returns == 0).all()
    credit, returns = gae(rewards, values, mask, gamma=1.0, lam=1.0, bootstrapped=torch.tensor([True, False]))
    assert credit.tolist() == [[0.0, 0.0], [-0.5, -0.5]] and returns[0].tolist() == [0.5, 0.5]


@pytest.mark.parametrize(("bootstrap", "advantage", "target"), [(False, -0.5, 0.0), (True, 0.0, 0.5)])
def test_ppo_credits_a_truncated_completion_as_graded_unless_bootstrap_truncated(bootstrap, advantage, target):
    made = learner(ppo(bootstrap_truncated=bootstrap))
    made.algorithm = replace(made.algorithm, scale="none")
    batch = collate([group([5, 6], [[7, 8], [9, 10], [7, 8], [9, 10]], [0.0] * 4)])
    batch = replace(batch, truncated=torch.tensor([True, False, True, False]), values=torch.full((4, 3), 0.5))
    ready = made.credit(batch)
    assert ready.advantages.tolist() == [[advantage] * 2, [-0.5] * 2] * 2
    assert ready.returns[0].tolist() == [target] * 2 and ready.returns[1].tolist() == [0.0] * 2


LIMIT, SAMPLES, ENDS = 4, 128, 0  # a policy over four tokens, one of which ends a completion


def sampled(policy, generator):
    """A group of completions drawn from the policy: an ended one pays 1 with probability 0.3, a truncated one never."""
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
    return Group(Prompt(PROBLEM, "", "", (2, 3)), tuple(completions), tuple(map(score, rewards)))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_ppo_learns_to_end_where_truncated_completions_earn_nothing(seed):
    generator = torch.Generator().manual_seed(seed)
    cfg = config(name="ppo", lr=1e-3, group=SAMPLES, minibatches=1)
    cfg = replace(cfg, critic=CriticConfig(lr=1e-2), sampling=replace(cfg.sampling, max_tokens=LIMIT))
    made = learner(cfg, tiny_model(vocabulary=4, width=32, layers=1, seed=seed))
    shares = []
    for _ in range(60):
        rolled = sampled(made.policy, generator)
        shares.append(sum(c.finish == "length" for c in rolled.completions) / SAMPLES)
        made.update(made.credit(made.annotate(collate([rolled]))))
    assert shares[0] > 0.2 and sum(shares[-5:]) / 5 < 0.1


def test_the_value_loss_takes_the_worse_of_the_value_and_its_clip():
    values, old, returns = torch.tensor([2.0, 0.1]), torch.tensor([0.0, 0.0]), torch.tensor([2.0, 1.0])
    assert value_loss(values, old, returns, clip=0.0).tolist() == pytest.approx([0.0, 0.405])
    assert value_loss(values, old, returns, clip=0.5).tolist() == pytest.approx([1.125, 0.405])


def ppo(**critic):
    cfg = config(name="ppo", beta=0.0, lr=1e-3)
    return replace(cfg, critic=CriticConfig(**{"lr": 3e-3, "clip": 0.0, **critic}))


def test_a_new_critic_says_nothing_and_values_do_not_depend_on_micro_batches():
    cfg = ppo()
    batch = collate(random_groups())
    made = learner(cfg)
    assert (made.critic.values(batch) == 0).all()
    made.update(made.credit(made.annotate(batch)))
    whole = made.critic.values(batch)
    made.critic.cfg = replace(cfg, optim=replace(cfg.optim, micro_batch_tokens=9))
    inside = torch.arange(whole.shape[1]) <= batch.lengths[:, None]
    assert whole.abs().max() > 0
    assert torch.allclose(whole[inside], made.critic.values(batch)[inside], atol=1e-5)


def test_a_value_knows_the_prompt_and_the_tokens_before_it_alone():
    made = learner(ppo())
    made.update(made.credit(made.annotate(collate(random_groups()))))
    one, other = (made.critic.values(collate([group([5, 6], [[7, 8, last], [9]], [0, 1])]))[0] for last in (10, 11))
    assert torch.allclose(one[:3], other[:3], atol=1e-6) and not torch.isclose(one[3], other[3])


def test_the_critic_learns_what_completions_are_worth():
    made = learner(ppo(warmup_steps=1000))
    groups = [group([5, 6], [[7, 8], [9, 10], [7, 11], [9, 12]], [1.0, 0.0, 1.0, 0.0])]
    weights = [p.clone() for p in made.policy.parameters()]
    told = [made.update(made.credit(made.annotate(collate(groups)))) for _ in range(60)]
    assert told[0]["critic/loss"] == pytest.approx(0.25, abs=0.02)
    assert told[-1]["critic/loss"] == pytest.approx(0.0625, abs=0.005)  # before the first token nobody can know
    assert told[-1]["critic/explained"] == pytest.approx(0.5, abs=0.05)
    values = made.critic.values(collate(groups))
    assert values[0, 1] > 0.6 > 0.4 > values[1, 1]  # after the first token all is known
    assert all(torch.equal(a, b) for a, b in zip(weights, made.policy.parameters(), strict=True))  # it warms up alone


def test_the_policy_follows_its_critic():
    made = learner(ppo())
    groups = [group([5, 6], [[7, 8], [9, 10], [7, 11], [9, 12]], [1.0, 0.0, 1.0, 0.0])]
    batch = collate(groups)
    before = made._all_logprobs(made.policy, batch)
    for _ in range(15):
        made.update(made.credit(made.annotate(collate(groups))))
    moved = ((made._all_logprobs(made.policy, batch) - before) * batch.mask).sum(dim=1)
    assert moved[0] > moved[1] and moved[2] > moved[3]


def test_whitened_rewards_have_deviation_one_and_no_reward_stays_none():
    batch = collate(random_groups())
    white, plain = (
        token_rewards(batch, resolve(cfg.algo), cfg, beta=0.0)[batch.mask] for cfg in (ppo(whiten_rewards=True), ppo())
    )
    assert (white[plain == 0] == 0).all() and (white[plain != 0] > plain[plain != 0]).all()
    assert white.std(correction=0).item() == pytest.approx(1, abs=1e-4)


def test_the_critic_computes_in_the_learners_precision():
    batch = collate(random_groups())
    whole, half = (learner(replace(ppo(), optim=replace(ppo().optim, dtype=kind))) for kind in ("float32", "bfloat16"))
    for made in (whole, half):
        torch.manual_seed(0)
        torch.nn.init.normal_(made.critic.head.weight, std=0.1)
    inside = torch.arange(int(batch.lengths.max()) + 1) <= batch.lengths[:, None]
    gap = (whole.critic.values(batch) - half.critic.values(batch))[inside].abs()
    assert 0 < gap.max() < 0.1
    assert half.critic.values(batch).dtype == torch.float32


def critic_after(cfg, **state):
    """The critic's own weights after one update, less those before it."""
    made = learner(cfg)
    made.restore(made.state() | state)
    before = torch.cat([p.detach().flatten().clone() for p in made.critic.own.parameters()])
    made.update(made.credit(made.annotate(collate(random_groups()))))
    return torch.cat([p.detach().flatten() for p in made.critic.own.parameters()]) - before


@pytest.mark.parametrize("trunk", ["own", "shared"])
def test_the_critics_learning_rate_follows_schedule_and_rollback(trunk):
    cfg = ppo() if trunk == "own" else shared()
    plain = critic_after(cfg)
    warm = critic_after(replace(cfg, optim=replace(cfg.optim, warmup_steps=4)))
    rolled = critic_after(cfg, lr_scale=0.5)
    atol = 1e-3 * float(plain.abs().max())
    assert torch.allclose(warm, plain / 4, atol=atol) and torch.allclose(rolled, plain / 2, atol=atol)


@pytest.mark.parametrize("algo", [{}, {"trunk": "shared"}, {"entropy": 0.1}, {"kl_in": "loss", "kl": "k3"}])
def test_in_critic_warmup_the_policy_stays_as_it_is(algo):
    cfg = config(name="ppo", beta=0.05, lr=1e-2, **algo)
    cfg = replace(cfg, critic=CriticConfig(lr=1e-2, warmup_steps=2))
    made = learner(cfg, reference=tiny_model(vocabulary=60, width=32, layers=2, seed=5).requires_grad_(False))
    batch = collate(random_groups())
    before = [p.clone() for p in made.policy.parameters()]
    losses = [made.update(made.credit(made.annotate(batch)))["critic/loss"] for _ in range(2)]
    assert losses[1] < losses[0]
    assert all(torch.equal(a, b) for a, b in zip(before, made.policy.parameters(), strict=True))
    made.update(made.credit(made.annotate(batch)))
    assert any((a != b).any() for a, b in zip(before, made.policy.parameters(), strict=True))


def test_an_adaptive_beta_stays_where_no_kl_was_measured():
    """In critic warm-up nothing is computed, and a step of equal rewards with the KL in the reward computes nothing."""
    cfg = config(name="ppo", beta=0.05, kl_target=0.1)
    other = tiny_model(vocabulary=60, width=32, layers=2, seed=5).requires_grad_(False)
    made = learner(replace(cfg, critic=CriticConfig(lr=1e-3, warmup_steps=6)), reference=other)
    batch = collate(random_groups())
    assert [made.update(made.credit(made.annotate(batch)))["beta"] for _ in range(6)] == [0.05] * 6
    assert made.update(made.credit(made.annotate(batch)))["beta"] != 0.05


def test_an_adaptive_penalty_stays_in_critic_warmup_and_after_a_skipped_update():
    cfg = config(name="ppo", trust="penalty", surrogate="ratio", penalty_target=0.1, epochs=1, minibatches=1)
    made = learner(replace(cfg, critic=CriticConfig(lr=1e-3, warmup_steps=1)))
    batch = collate(random_groups())
    figures = [made.update(made.credit(made.annotate(batch)))]
    ready = made.credit(made.annotate(batch))
    figures.append(made.update(replace(ready, advantages=ready.advantages * float("inf"))))
    assert [own["penalty"] for own in figures] == [1.0, 1.0] and figures[1]["skipped_updates"] == 1


def test_a_skipped_update_leaves_no_gradient_behind_on_a_shared_trunk():
    made = learner(shared())
    ready = made.credit(made.annotate(collate(random_groups())))
    assert made.update(replace(ready, advantages=ready.advantages * float("inf")))["skipped_updates"] == 1
    assert all(p.grad is None or not p.grad.any() for p in (*made.critic.own.parameters(), *made.policy.parameters()))


def test_a_critic_resumes_with_its_optimiser(tmp_path):
    straight, first = learner(ppo()), learner(ppo())
    for made in (straight, first):
        made.update(made.credit(made.annotate(collate(random_groups(seed=1)))))
    path = save(tmp_path, 1, first, tiny_tokenizer(), keep=1)
    second = learner(ppo(), tiny_model(vocabulary=60, width=32, layers=2))
    second.policy.load_state_dict(first.policy.state_dict())
    load(path, second)
    for made in (straight, second):
        made.update(made.credit(made.annotate(collate(random_groups(seed=2)))))
    for a, b in zip(straight.critic.own.parameters(), second.critic.own.parameters(), strict=True):
        assert torch.equal(a, b)


def shared(**critic):
    cfg = ppo(**critic)
    return replace(cfg, algo=replace(cfg.algo, trunk="shared", epochs=1, minibatches=1))


def test_on_a_shared_trunk_the_gradient_is_that_of_both_losses_whatever_the_micro_batches():
    cfg = shared(coefficient=0.3)
    batch, found = collate(random_groups()), []
    for micro in (10_000, 9):
        made = learner(replace(cfg, optim=replace(cfg.optim, micro_batch_tokens=micro, lr=0.0)))
        torch.manual_seed(0)
        torch.nn.init.normal_(made.critic.head.weight, std=0.1)
        ready = made.credit(made.annotate(batch))
        alone = replace(ready, returns=made.critic.values(ready)[:, :-1])  # nothing to learn for the critic
        norms = [made.update(with_it)["grad_norm"] for with_it in (ready, alone)]
        made.policy.zero_grad()
        weighed = replace(ready, weights=made._weights(ready))
        states = token_states(made.policy, batch)
        (0.3 * made.critic.loss(states, weighed)).backward()
        value = torch.cat([p.grad.flatten() for p in made.policy.parameters() if p.grad is not None])
        found.append((*norms, float(value.norm())))
    assert found[0] == pytest.approx(found[1], rel=1e-4)
    both, policy, value = found[0]
    assert abs(policy - value) < both <= policy + value and value > 0.01 * policy


def token_states(model, batch):
    prompts = read_prompts(model, batch.prompt_ids, batch.prompt_lengths)
    return completion_states(model, prompts, batch.prompt_of, batch.completion_ids)


def test_a_critic_on_the_policys_trunk_learns_and_the_policy_follows():
    made = learner(shared())
    groups = [group([5, 6], [[7, 8], [9, 10], [7, 11], [9, 12]], [1.0, 0.0, 1.0, 0.0])]
    batch = collate(groups)
    before = made._all_logprobs(made.policy, batch)
    told = [made.update(made.credit(made.annotate(batch))) for _ in range(40)]
    assert told[0]["critic/loss"] == pytest.approx(0.25) and told[-1]["critic/loss"] < 0.1
    assert sum(p.numel() for p in made.critic.own.parameters()) == 33  # a head, and nothing besides
    moved = ((made._all_logprobs(made.policy, batch) - before) * batch.mask).sum(dim=1)
    assert moved[0] > moved[1] and moved[2] > moved[3]


def test_a_shared_critic_resumes_with_its_optimiser(tmp_path):
    straight, first = learner(shared()), learner(shared())
    for made in (straight, first):
        made.update(made.credit(made.annotate(collate(random_groups(seed=1)))))
    path = save(tmp_path, 1, first, tiny_tokenizer(), keep=1)
    second = learner(shared())
    second.policy.load_state_dict(first.policy.state_dict())
    load(path, second)
    for made in (straight, second):
        made.update(made.credit(made.annotate(collate(random_groups(seed=2)))))
    for part in ("policy", "critic"):
        mine, its = (getattr(m, part) for m in (straight, second))
        mine, its = (m.own if part == "critic" else m for m in (mine, its))
        assert all(torch.equal(a, b) for a, b in zip(mine.parameters(), its.parameters(), strict=True))
