"""Every row of the algorithm table: its first update, its parts, and that a new algorithm needs only a row."""

import math
from dataclasses import replace

import pytest
import torch

from reasoner.rl import algorithms
from reasoner.rl.algorithms import ALGORITHMS, Algorithm
from reasoner.rl.batch import collate
from reasoner.rl.losses import token_weights
from reasoner.rl.token_stats import TokenStats
from reasoner.trainer import trainer as trainer_file
from reasoner.trainer.checkpoint import load, save
from reasoner.trainer.train import train_step
from tests.fixtures.tiny import tiny_model, tiny_tokenizer
from tests.fixtures.toys import config, group, make_trainer, random_groups, take_step
from verifiers import Verdict

BY_GRADIENT = [name for name, row in ALGORITHMS.items() if row.trust != "constrained"]
STEPS = [[(1, 1.0), (2, 0.0)], [(0, 1.0)], [(3, 0.0)], [(0, 0.0), (1, 1.0)]]


def reference():
    return tiny_model(vocabulary=60, width=32, layers=2, seed=5).requires_grad_(False)


def gradient(cfg, groups, *, ref=None, steps=None):
    trainer = make_trainer(cfg, reference=ref)
    trainer.optimizer.step = lambda: None  # keep the gradient for inspection
    figures = take_step(trainer, collate(groups, steps))
    return torch.cat([p.grad.flatten() for p in trainer.model.parameters()]), figures


def four(rewards=(1.0, 0.0, 0.0, 1.0)):
    return group([5, 6], [[7, 8, 9, 10], [11], [12, 13, 14, 15], [16, 17]], rewards)


@pytest.mark.parametrize("name", BY_GRADIENT)
def test_ratio_is_one_and_nothing_is_clipped_before_first_update(name):  # trap 29
    steps = STEPS if name == "grpo_process" else None
    gradients, figures = gradient(config(name=name, beta=0.05), [four()], ref=reference(), steps=steps)
    assert torch.isfinite(gradients).all() and gradients.abs().max() > 0
    assert figures["clip_ratio"] == 0 and figures["grad_norm"] == pytest.approx(float(gradients.norm()), rel=1e-4)
    assert figures["sampling/importance_mean"] == 1


@pytest.mark.parametrize("name", BY_GRADIENT)
def test_gradient_is_independent_of_micro_batches_for_every_algorithm(name):  # traps 21, 43
    groups = random_groups(1) if name == "grpo_process" else random_groups()
    groups = [four()] if name == "grpo_process" else groups
    steps = STEPS if name == "grpo_process" else None
    whole, _ = gradient(config(name=name, beta=0.05), groups, ref=reference(), steps=steps)
    for tokens in (1, 13):
        split, _ = gradient(config(name=name, beta=0.05, micro=tokens), groups, ref=reference(), steps=steps)
        assert torch.allclose(whole, split, atol=2e-6 * float(whole.abs().max()), rtol=1e-4)


def test_reinforce_equals_grpo_at_one_update_with_same_parts():
    """REINFORCE = PPO at ratio 1 = GRPO at one inner step, given the same baseline, scale and weights."""
    parts = {"baseline": "group", "scale": "group", "loss_aggregation": "sequence", "returns": "total", "kl_in": "loss"}
    groups = random_groups()
    gradients = [gradient(config(name=name, **parts), groups)[0] for name in ("grpo", "reinforce", "cispo", "rloo")]
    for other in gradients[1:]:
        assert torch.allclose(gradients[0], other, atol=1e-7)


def test_filtered_groups_take_no_pass_of_the_reference():
    flat, mixed = four((1.0, 1.0, 1.0, 1.0)), random_groups(2)
    cfg = config(beta=0.05, filter_zero_advantages=True)
    batch = make_trainer(cfg, reference=reference()).compute_logprobs(collate([flat, *mixed]))
    complete = make_trainer(config(beta=0.05), reference=reference()).compute_logprobs(collate([flat, *mixed]))
    assert not batch.ref_logprobs[:4].any()
    assert torch.allclose(batch.ref_logprobs[4:], complete.ref_logprobs[4:], atol=1e-6)
    filtered, figures = gradient(cfg, [flat, *mixed], ref=reference())
    alone, expected = gradient(cfg, mixed, ref=reference())
    assert torch.allclose(filtered, alone, atol=1e-7)
    assert figures["kl"] == pytest.approx(expected["kl"])
    of_response = config(beta=0.05, filter_zero_advantages=True, kl_target=0.1)
    measured = make_trainer(of_response, reference=reference()).compute_logprobs(collate([flat, *mixed]))
    assert measured.ref_logprobs[:4].any()  # the KL of whole responses is that of all rows


def test_kl_in_reward_penalises_each_token_before_returns():
    cfg = config(name="reinforce", beta=0.5, kl_in="reward", kl="k1", baseline="none")
    trainer = make_trainer(cfg, reference=reference())
    batch = trainer.compute_logprobs(collate([four()]))
    advantages = trainer.compute_advantages(batch).advantages
    kl = (batch.sampler_logprobs - batch.ref_logprobs) * batch.mask
    rewards = torch.zeros_like(kl).scatter(1, batch.lengths[:, None] - 1, batch.rewards[:, None]) - 0.5 * kl
    assert torch.allclose(advantages, rewards.flip(1).cumsum(1).flip(1) * batch.mask, atol=1e-6)
    assert train_step(trainer, trainer.compute_advantages(batch))["kl"] != 0  # reported, and not in the loss as well
    assert not trainer._has_regularizer


def test_entropy_bonus_raises_entropy():
    trainer = make_trainer(config(entropy_coef=1.0, lr=1e-3))
    flat = [four((1.0, 1.0, 1.0, 1.0))]
    figures = [take_step(trainer, flat)["entropy"] for _ in range(8)]
    assert figures[-1] > figures[0]


def test_importance_weights_scale_gradient_and_are_reported():
    groups = [four()]
    batch = collate(groups)
    plain, _ = gradient(config(), groups)
    trainer = make_trainer(config(importance_sampling="token", importance_clip_max=2.0))
    trainer.optimizer.step = lambda: None
    own = trainer.passes.all_logprobs(batch).detach()
    doubled = replace(batch, sampler_logprobs=torch.where(batch.mask, own - 10.0, 0.0))  # every weight at the cap
    figures = train_step(trainer, trainer.compute_advantages(trainer.compute_logprobs(doubled)))
    weighted = torch.cat([p.grad.flatten() for p in trainer.model.parameters()])
    assert torch.allclose(weighted, 2 * plain, rtol=1e-4, atol=1e-7)
    assert (figures["sampling/importance_mean"], figures["sampling/importance_clipped"]) == (2.0, 1.0)


def stepped(cfg, groups):
    trainer = make_trainer(cfg)
    batch = trainer.compute_advantages(trainer.compute_logprobs(collate(groups)))
    weights = token_weights(batch.mask, trainer.algorithm.loss_aggregation, max_tokens=16)
    batch = replace(batch, weights=weights)
    before, _ = trainer.policy_loss.measure(batch)
    figures = train_step(trainer, batch)
    after, moved = trainer.policy_loss.measure(batch)
    return trainer, figures, before - after, moved


@pytest.mark.parametrize("delta", [1e-4, 1e-2])
def test_trpo_step_lowers_surrogate_within_delta(delta):
    trainer, figures, gain, moved = stepped(config(name="trpo", delta=delta), [four(), *random_groups(2)])
    assert 0 < figures["policy_kl"] <= delta and moved == pytest.approx(figures["policy_kl"], rel=1e-4)
    assert figures["trust_region/step_fraction"] > 0 and gain > 0
    assert figures["policy_kl"] > delta / 20  # and it uses most of the allowed KL
    assert all(p.grad is None or not p.grad.any() for p in trainer.model.parameters())


def test_trpo_step_is_independent_of_micro_batches():
    one, other = (stepped(config(name="trpo", delta=1e-3, micro=tokens), [four()])[0] for tokens in (10_000, 5))
    for a, b in zip(one.model.parameters(), other.model.parameters(), strict=True):
        assert torch.allclose(a, b, atol=1e-4)


@pytest.mark.parametrize(
    "algo",
    [{"entropy_coef": 0.05}, {"importance_sampling": "token"}, {"mask_truncated_completions": True}, {"beta": 0.1}],
)
def test_trpo_line_search_measures_the_objective_of_the_gradient(algo, monkeypatch):
    """The difference quotient of the measured objective along the normalised gradient is the gradient's norm."""
    cfg = config(name="trpo", micro=20, **algo)
    trainer = make_trainer(cfg, reference=reference() if "beta" in algo else None)
    ready = trainer.compute_advantages(trainer.compute_logprobs(collate([four(), *random_groups(2)])))
    ready = replace(ready, missing_eos=torch.arange(len(ready)) % 3 == 0)
    batches = []

    def keep_gradient(optimizer, passes, batch, *rest):
        batches.append(batch)
        return 0.0, {}

    monkeypatch.setattr(trainer_file, "constrained_update", keep_gradient)
    train_step(trainer, ready)
    (weighted,) = batches
    parameters = [p for p in trainer.model.parameters() if p.grad is not None]
    gradient = torch.cat([p.grad.flatten() for p in parameters])
    values = []
    for sign in (1, -1):
        with torch.no_grad():
            for p in parameters:
                p.add_(p.grad, alpha=sign * 1e-3 / float(gradient.norm()))
        values.append(trainer.policy_loss.measure(weighted)[0])
        with torch.no_grad():
            for p in parameters:
                p.sub_(p.grad, alpha=sign * 1e-3 / float(gradient.norm()))
    assert (values[0] - values[1]) / 2e-3 == pytest.approx(float(gradient.norm()), rel=0.02)


def test_trpo_skips_and_counts_non_finite_gradient():
    trainer = make_trainer(config(name="trpo"))
    ready = trainer.compute_advantages(trainer.compute_logprobs(collate([four()])))
    before = [p.clone() for p in trainer.model.parameters()]
    figures = train_step(trainer, replace(ready, advantages=ready.advantages * float("inf")))
    assert figures["skipped_updates"] == 1 and "trust_region/step_fraction" not in figures
    assert not math.isfinite(figures["grad_norm"])
    assert all(torch.equal(a, b) for a, b in zip(before, trainer.model.parameters(), strict=True))


def test_trpo_leaves_policy_unchanged_without_advantages():
    trainer = make_trainer(config(name="trpo"))
    assert "trust_region/step_fraction" in take_step(trainer, [four()])
    before = [p.clone() for p in trainer.model.parameters()]
    figures = take_step(trainer, [four((1.0, 1.0, 1.0, 1.0))])
    assert (
        figures["grad_norm"] == 0 and "trust_region/step_fraction" not in figures
    )  # nothing is reported from the step before
    assert all(torch.equal(a, b) for a, b in zip(before, trainer.model.parameters(), strict=True))


def test_beta_adapts_and_reference_is_refreshed(tmp_path):
    cfg = config(beta=0.5, kl_target=1e9, kl_horizon=4, ref_sync_steps=2, lr=3e-3)
    trainer = make_trainer(cfg, reference=reference())
    figures = [take_step(trainer, [four()]) for _ in range(3)]
    assert [step["beta"] for step in figures] == pytest.approx([0.4, 0.32, 0.256]) and figures[0]["kl"] > 0
    assert figures[2]["kl"] == pytest.approx(0, abs=1e-9)  # after two steps the reference was the policy
    again = make_trainer(cfg, reference=reference())
    load(save(tmp_path, 3, trainer, tiny_tokenizer(), keep=1), again)
    assert again.policy_loss.beta == trainer.policy_loss.beta == figures[2]["beta"]
    for a, b in zip(again.reference.parameters(), trainer.reference.parameters(), strict=True):
        assert torch.equal(a, b)


def test_dapo_drops_zero_variance_groups_with_nonzero_advantages():
    """Whitening over the batch gives these groups advantages, although their rewards are equal."""
    flat, other = four((1.0, 1.0, 1.0, 1.0)), random_groups(2)
    cfg = config(name="dapo", scale="batch")
    trainer = make_trainer(cfg)
    ready = trainer.compute_advantages(trainer.compute_logprobs(collate([*other, flat])))
    assert (ready.advantages[-4:] != 0).any()
    token_stats = TokenStats(keeps_tokens=True)
    train_step(trainer, ready, token_stats)
    assert sorted(token_stats.tokens) == list(range(8))


def of_form_alone(is_correct):
    """A group whose completions are all correct or all wrong, with rewards that differ."""
    own = four((0.2, 0.1, 0.2, 0.1))
    verdict = Verdict.CORRECT if is_correct else Verdict.WRONG
    return replace(own, scores=tuple(replace(score, verdict=verdict) for score in own.scores))


@pytest.mark.parametrize("is_correct", [False, True])
def test_filter_by_verdicts_leaves_out_groups_whose_rewards_differ_by_the_form_alone(is_correct):
    mixed = random_groups(2)
    cfg = config(beta=0.05, filter_zero_advantages=True, filter_metric="correct")
    with_form, _ = gradient(cfg, [of_form_alone(is_correct), *mixed], ref=reference())
    alone, _ = gradient(cfg, mixed, ref=reference())
    by_reward, _ = gradient(
        replace(cfg, algo=replace(cfg.algo, filter_metric="reward")),
        [of_form_alone(is_correct), *mixed],
        ref=reference(),
    )
    assert torch.allclose(with_form, alone, atol=1e-7) and not torch.allclose(by_reward, alone, atol=1e-4)


@pytest.mark.parametrize("baseline", ["group", "none"])
@pytest.mark.parametrize("metric", ["correct", "reward"])
def test_step_without_any_solved_problem_teaches_nothing_by_verdicts(baseline, metric):
    cfg = config(name="reinforce", baseline=baseline, filter_zero_advantages=True, filter_metric=metric)
    trainer = make_trainer(cfg)
    before = [weight.clone() for weight in trainer.model.parameters()]
    train_step(trainer, trainer.compute_advantages(collate([of_form_alone(False), of_form_alone(False)])))
    pairs = zip(before, trainer.model.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs) == (metric == "correct")


def test_learning_rate_decays_with_token_budget():
    cfg = config(lr=1e-3)
    cfg = replace(cfg, steps=100, max_train_tokens=1000, optim=replace(cfg.optim, decay_share=0.5))
    trainer, batch = make_trainer(cfg), collate([four()])
    rates = [
        train_step(trainer, trainer.compute_advantages(batch), tokens_before=spent)["lr"]
        for spent in (0, 500, 750, 950, 1000)
    ]
    assert rates == pytest.approx([1e-3, 1e-3, 5e-4, 1e-4, 0.0])
    by_steps = make_trainer(replace(cfg, max_train_tokens=0, steps=4))
    assert [train_step(by_steps, by_steps.compute_advantages(batch))["lr"] for _ in range(4)] == pytest.approx(
        [1e-3] * 3 + [5e-4]
    )


def test_new_algorithm_needs_only_one_row(monkeypatch):
    """An invented algorithm: leave-one-out, scaled by the batch, sequence ratio, token mean, k2."""
    row = Algorithm(baseline="leave_one_out", scale="batch", ratio="sequence", loss_aggregation="token", kl="k2")
    monkeypatch.setitem(algorithms.ALGORITHMS, "leave_one_out_whitened", row)
    cfg = config(name="leave_one_out_whitened", beta=0.01, lr=0.03)
    trainer = make_trainer(cfg, reference=reference())
    for _ in range(12):
        take_step(trainer, [four()])
    batch = collate([four()])
    before = make_trainer(cfg).passes.all_logprobs(batch)
    after = trainer.passes.all_logprobs(batch)
    moved = ((after - before) * batch.mask).sum(dim=1)
    assert moved[0] > 0 and moved[3] > 0 and moved[1] < 0  # towards the rewarded completions
