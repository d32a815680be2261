"""Every row of the table: what it does before the first update, and that a row is all that a new one takes."""

from dataclasses import replace

import pytest
import torch

from reasoner.rl import algorithms
from reasoner.rl.algorithms import ALGORITHMS, Algorithm
from reasoner.rl.batch import collate
from reasoner.rl.losses import token_weights
from reasoner.rl.token_stats import Tally
from reasoner.trainer.checkpoint import load, save
from tests.fixtures.tiny import tiny_model, tiny_tokenizer
from tests.fixtures.toys import config, group, learner, random_groups

BY_GRADIENT = [name for name, row in ALGORITHMS.items() if row.trust != "constrained"]
STEPS = [[(1, 1.0), (2, 0.0)], [(0, 1.0)], [(3, 0.0)], [(0, 0.0), (1, 1.0)]]


def reference():
    return tiny_model(vocabulary=60, width=32, layers=2, seed=5).requires_grad_(False)


def gradient(cfg, groups, *, ref=None, steps=None):
    made = learner(cfg, reference=ref)
    made.optimizer.step = lambda: None  # keep the gradient to look at
    figures = made.update(made.credit(made.annotate(collate(groups, steps))))
    return torch.cat([p.grad.flatten() for p in made.policy.parameters()]), figures


def four(rewards=(1.0, 0.0, 0.0, 1.0)):
    return group([5, 6], [[7, 8, 9, 10], [11], [12, 13, 14, 15], [16, 17]], rewards)


@pytest.mark.parametrize("name", BY_GRADIENT)
def test_the_ratio_is_one_and_nothing_is_clipped_before_the_first_update(name):  # trap 29
    steps = STEPS if name == "grpo_process" else None
    found, figures = gradient(config(name=name, beta=0.05), [four()], ref=reference(), steps=steps)
    assert torch.isfinite(found).all() and found.abs().max() > 0
    assert figures["clip_ratio"] == 0
    assert figures["sampler/importance_mean"] == 1


@pytest.mark.parametrize("name", BY_GRADIENT)
def test_micro_batches_do_not_change_the_gradient_of_any_row(name):  # trap 21
    groups = random_groups(1) if name == "grpo_process" else random_groups()
    groups = [four()] if name == "grpo_process" else groups
    steps = STEPS if name == "grpo_process" else None
    whole, _ = gradient(config(name=name, beta=0.05), groups, ref=reference(), steps=steps)
    for tokens in (1, 13, 40):
        split, _ = gradient(config(name=name, beta=0.05, micro=tokens), groups, ref=reference(), steps=steps)
        assert torch.allclose(whole, split, atol=2e-6 * float(whole.abs().max()), rtol=1e-4)


def test_reinforce_is_grpo_without_a_clip_or_a_scale_at_one_update():
    """REINFORCE = PPO at ratio 1 = GRPO at one inner step, once they have the same baseline, scale and weights."""
    same = {"baseline": "group", "scale": "group", "weights": "sequence", "returns": "total", "kl_in": "loss"}
    groups = random_groups()
    found = [gradient(config(name=name, **same), groups)[0] for name in ("grpo", "reinforce", "cispo", "rloo")]
    for other in found[1:]:
        assert torch.allclose(found[0], other, atol=1e-7)


def test_kl_in_the_reward_is_a_penalty_on_each_token_before_returns():
    cfg = config(name="reinforce", beta=0.5, kl_in="reward", kl="k1", baseline="none")
    made = learner(cfg, reference=reference())
    batch = made.annotate(collate([four()]))
    found = made.credit(batch).advantages
    kl = (batch.sampler_logprobs - batch.ref_logprobs) * batch.mask
    rewards = torch.zeros_like(kl).scatter(1, batch.lengths[:, None] - 1, batch.rewards[:, None]) - 0.5 * kl
    assert torch.allclose(found, rewards.flip(1).cumsum(1).flip(1) * batch.mask, atol=1e-6)
    assert made.update(made.credit(batch))["kl"] != 0  # reported, and not in the loss as well
    assert not made._pulls


def test_the_moving_average_is_of_earlier_steps_alone():
    made = learner(config(name="reinforce", baseline="moving", moving_decay=0.5))
    seen = []
    for rewards in ((1.0, 1, 0, 0), (0.0, 0, 0, 0), (1.0, 1, 1, 1)):
        batch = made.credit(made.annotate(collate([four(rewards)])))
        seen.append((batch.rewards[:, None] - batch.advantages[:, :1]).mean().item())
        made.update(batch)
    assert seen == pytest.approx([0.0, 0.5, 0.25])
    again = learner(config(name="reinforce", baseline="moving"))
    again.restore(made.state())
    assert again.state() == made.state()


def test_an_entropy_bonus_pushes_up_the_entropy():
    made = learner(config(entropy=1.0, lr=1e-3))
    flat = [four((1.0, 1.0, 1.0, 1.0))]
    figures = [made.update(made.credit(made.annotate(collate(flat))))["entropy"] for _ in range(8)]
    assert figures[-1] > figures[0]


def test_importance_weights_multiply_the_loss_and_are_counted():
    groups = [four()]
    batch = collate(groups)
    plain, _ = gradient(config(), groups)
    made = learner(config(importance="token", importance_cap=2.0))
    made.optimizer.step = lambda: None
    own = made._all_logprobs(made.policy, batch).detach()
    doubled = replace(batch, sampler_logprobs=torch.where(batch.mask, own - 10.0, 0.0))  # every weight at the cap
    figures = made.update(made.credit(made.annotate(doubled)))
    found = torch.cat([p.grad.flatten() for p in made.policy.parameters()])
    assert torch.allclose(found, 2 * plain, rtol=1e-4, atol=1e-7)
    assert (figures["sampler/importance_mean"], figures["sampler/importance_capped"]) == (2.0, 1.0)


def stepped(cfg, groups):
    made = learner(cfg)
    batch = made.credit(made.annotate(collate(groups)))
    weights = token_weights(batch.mask, made.algorithm.weights, max_tokens=16)
    batch = replace(batch, weights=weights)
    before, _ = made._measure(batch)
    figures = made.update(batch)
    after, moved = made._measure(batch)
    return made, figures, before - after, moved


@pytest.mark.parametrize("delta", [1e-4, 1e-2])
def test_trpo_takes_a_step_that_lowers_its_surrogate_within_delta(delta):
    made, figures, gain, moved = stepped(config(name="trpo", delta=delta), [four(), *random_groups(2)])
    assert 0 < figures["policy_kl"] <= delta and moved == pytest.approx(figures["policy_kl"], rel=1e-4)
    assert figures["trust/share"] > 0 and gain > 0
    assert figures["policy_kl"] > delta / 20  # and it uses what it is allowed
    assert all(p.grad is None or not p.grad.any() for p in made.policy.parameters())


def test_trpo_takes_the_same_step_whatever_the_micro_batches():
    one, other = (stepped(config(name="trpo", delta=1e-3, micro=tokens), [four()])[0] for tokens in (10_000, 5))
    for a, b in zip(one.policy.parameters(), other.policy.parameters(), strict=True):
        assert torch.allclose(a, b, atol=1e-4)


@pytest.mark.parametrize("algo", [{"entropy": 0.05}, {"importance": "token"}, {"mask_truncated": True}, {"beta": 0.1}])
def test_the_line_search_measures_the_objective_that_the_gradient_is_of(algo):
    """The difference quotient of what is measured, along the gradient, is the gradient's own square."""
    cfg = config(name="trpo", micro=20, **algo)
    made = learner(cfg, reference=reference() if "beta" in algo else None)
    ready = made.credit(made.annotate(collate([four(), *random_groups(2)])))
    ready = replace(ready, truncated=torch.arange(len(ready)) % 3 == 0)
    found = []
    made._constrained = lambda batch, tally: found.append(batch)  # the gradient stays in the parameters
    made.update(ready)
    (weighed,) = found
    parameters = [p for p in made.policy.parameters() if p.grad is not None]
    gradient = torch.cat([p.grad.flatten() for p in parameters])
    values = []
    for sign in (1, -1):
        with torch.no_grad():
            for p in parameters:
                p.add_(p.grad, alpha=sign * 1e-3 / float(gradient.norm()))
        values.append(made._measure(weighed)[0])
        with torch.no_grad():
            for p in parameters:
                p.sub_(p.grad, alpha=sign * 1e-3 / float(gradient.norm()))
    assert (values[0] - values[1]) / 2e-3 == pytest.approx(float(gradient.norm()), rel=0.02)


def test_trpo_counts_a_gradient_that_is_not_finite_and_moves_nothing():
    made = learner(config(name="trpo"))
    ready = made.credit(made.annotate(collate([four()])))
    before = [p.clone() for p in made.policy.parameters()]
    figures = made.update(replace(ready, advantages=ready.advantages * float("inf")))
    assert figures["skipped_updates"] == 1 and figures["grad_norm"] == 0 and "trust/share" not in figures
    assert all(torch.equal(a, b) for a, b in zip(before, made.policy.parameters(), strict=True))


def test_trpo_leaves_the_policy_alone_where_there_is_nothing_to_learn():
    made = learner(config(name="trpo"))
    assert "trust/share" in made.update(made.credit(made.annotate(collate([four()]))))
    before = [p.clone() for p in made.policy.parameters()]
    figures = made.update(made.credit(made.annotate(collate([four((1.0, 1.0, 1.0, 1.0))]))))
    assert figures["grad_norm"] == 0 and "trust/share" not in figures  # nothing is told of the step before
    assert all(torch.equal(a, b) for a, b in zip(before, made.policy.parameters(), strict=True))


def test_a_penalty_keeps_the_policy_nearer_and_adapts_to_its_target():
    moved = {}
    for penalty in (0.0, 50.0):
        cfg = config(surrogate="ratio", trust="penalty", penalty=penalty, epochs=4, lr=3e-3)
        made = learner(cfg)
        batch = made.credit(made.annotate(collate([four()])))
        made.update(batch)
        moved[penalty] = made._measure(batch)[1]
    assert moved[50.0] < moved[0.0] / 2
    made = learner(config(surrogate="ratio", trust="penalty", penalty_target=1e-6, epochs=4, lr=3e-3))
    assert [made.update(made.credit(made.annotate(collate([four()]))))["penalty"] for _ in range(3)] == [2.0, 4.0, 8.0]


def test_the_pull_of_the_reference_adapts_and_the_reference_may_follow(tmp_path):
    cfg = config(beta=0.5, kl_target=1e-9, refresh_reference=2, lr=3e-3)
    made = learner(cfg, reference=reference())
    figures = [made.update(made.credit(made.annotate(collate([four()])))) for _ in range(3)]
    assert [told["beta"] for told in figures] == [1.0, 2.0, 1.0] and figures[0]["kl"] > 0
    assert figures[2]["kl"] == pytest.approx(0, abs=1e-9)  # after two steps the reference was the policy
    again = learner(cfg, reference=reference())
    load(save(tmp_path, 3, made, tiny_tokenizer(), keep=1), again)
    assert again.beta == 1.0
    for a, b in zip(again.reference.parameters(), made.reference.parameters(), strict=True):
        assert torch.equal(a, b)


def test_updates_stop_once_the_policy_is_far_enough():
    def norms(stop):
        made = learner(config(epochs=6, lr=3e-3, stop_kl=stop))
        batch = made.credit(made.annotate(collate([four()])))
        made.update(batch)
        return made._measure(batch)[1]

    assert 0 < norms(1e-4) < norms(0.0)


def test_zero_variance_groups_are_dropped_whatever_their_advantages():
    """Whitening over the batch gives them advantages; their rewards are equal all the same."""
    flat, other = four((1.0, 1.0, 1.0, 1.0)), random_groups(2)
    cfg = config(name="dapo", scale="batch")
    made = learner(cfg)
    ready = made.credit(made.annotate(collate([*other, flat])))
    assert (ready.advantages[-4:] != 0).any()
    tally = Tally(keeps_tokens=True)
    made.update(ready, tally)
    assert sorted(tally.tokens) == list(range(8))


def test_the_learning_rate_falls_with_the_budget_of_tokens():
    cfg = config(lr=1e-3)
    cfg = replace(cfg, steps=100, tokens=1000, optim=replace(cfg.optim, decay_share=0.5))
    made, batch = learner(cfg), collate([four()])
    rates = [made.update(made.credit(batch), tokens_before=spent)["lr"] for spent in (0, 500, 750, 950, 1000)]
    assert rates == pytest.approx([1e-3, 1e-3, 5e-4, 1e-4, 0.0])
    by_steps = learner(replace(cfg, tokens=0, steps=4))
    assert [by_steps.update(by_steps.credit(batch))["lr"] for _ in range(4)] == pytest.approx([1e-3] * 3 + [5e-4])


def test_a_new_algorithm_is_one_row(monkeypatch):
    """Made up: leave-one-out, in deviations of the batch, a sequence ratio, token mean, no KL estimator of its own."""
    row = Algorithm(baseline="leave_one_out", scale="batch", ratio="sequence", weights="token", kl="k2")
    monkeypatch.setitem(algorithms.ALGORITHMS, "made_up", row)
    cfg = config(name="made_up", beta=0.01, lr=0.03)
    made = learner(cfg, reference=reference())
    for _ in range(12):
        made.update(made.credit(made.annotate(collate([four()]))))
    batch = collate([four()])
    before = learner(cfg)._all_logprobs(learner(cfg).policy, batch)
    after = made._all_logprobs(made.policy, batch)
    moved = ((after - before) * batch.mask).sum(dim=1)
    assert moved[0] > 0 and moved[3] > 0 and moved[1] < 0  # towards what was rewarded
