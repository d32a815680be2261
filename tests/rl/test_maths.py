"""Advantages, KL estimators, losses and weights against numbers worked out by hand."""

import math
from contextlib import nullcontext
from dataclasses import replace
from itertools import product
from typing import get_args

import pytest
import torch

from reasoner.config.algorithm import AlgoConfig
from reasoner.config.check import check_effect
from reasoner.config.resolve import resolve
from reasoner.config.schema import Config, settings
from reasoner.rl.advantages import (
    BASELINES,
    RETURNS,
    SCALES,
    STEP_CREDIT,
    outcome_advantages,
    process_advantages,
    reward_to_go,
    total_return,
    whiten,
)
from reasoner.rl.algorithms import ALGORITHMS, resolve_algorithm, sampler_correction
from reasoner.rl.kl import KL, kl_k1, kl_k2, kl_k3
from reasoner.rl.losses import (
    CORRECTIONS,
    RATIOS,
    LossAggregation,
    sampler_weights,
    sequence_ratio,
    token_ratio,
    token_weights,
)
from reasoner.rl.surrogates import SURROGATES


def outcome(rewards, **parts):
    """Advantages of one-token completions: [P][G] rewards -> [P, G]."""
    rewards = torch.tensor(rewards)
    column = rewards.reshape(-1, 1)
    credit = outcome_advantages(column, torch.ones_like(column).bool(), group=rewards.shape[1], **parts)
    return credit.view(rewards.shape)


def test_group_advantages_use_population_deviation():  # trap 1
    credit = outcome([[1.0, 0.0, 0.0, 0.0], [1.2, 0.2, 1.2, 0.2]])
    root3 = math.sqrt(3)
    assert credit[0].tolist() == pytest.approx([root3, -1 / root3, -1 / root3, -1 / root3], abs=1e-4)
    assert credit[1].tolist() == pytest.approx([1, -1, 1, -1], abs=1e-4)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({"baseline": "group", "scale": "none"}, [0.75, -0.25, -0.25, -0.25, 0, 0, 0, 0]),  # Dr. GRPO
        ({"baseline": "leave_one_out", "scale": "none"}, [1, -1 / 3, -1 / 3, -1 / 3, 0, 0, 0, 0]),  # RLOO
        ({"baseline": "none", "scale": "none"}, [1, 0, 0, 0, 1, 1, 1, 1]),  # REINFORCE
        ({"baseline": "batch", "scale": "none"}, [3 / 8, -5 / 8, -5 / 8, -5 / 8, *[3 / 8] * 4]),
        ({"baseline": "none", "scale": "batch"}, [x / math.sqrt(15) for x in (3, -5, -5, -5, 3, 3, 3, 3)]),
        ({"baseline": "group", "scale": "group"}, [math.sqrt(3), *[-1 / math.sqrt(3)] * 3, 0, 0, 0, 0]),  # GRPO
    ],
)
def test_baselines_and_scales_match_hand_computed_values(parts, expected):
    credit = outcome([[1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0]], **parts)
    assert credit.flatten().tolist() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("baseline", ["group", "leave_one_out"])
@pytest.mark.parametrize("scale", ["none", "group"])
def test_zero_variance_group_has_zero_advantage(baseline, scale):  # traps 2, 3, 5
    for rewards in ([[0.7] * 7], [[1.0] * 7 + [1.0 - 1e-6]], [[1 / 3] * 8] * 3):
        assert (outcome(rewards, baseline=baseline, scale=scale) == 0).all()


def test_group_baseline_refuses_group_of_one():
    with pytest.raises(ValueError, match="at least 2 completions"):
        outcome([[1.0], [2.0]])
    assert outcome([[1.0], [2.0]], baseline="batch", scale="none").flatten().tolist() == [-0.5, 0.5]


MASK = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]]).bool()


def test_reward_to_go_sums_and_discounts_later_rewards():
    rewards = torch.tensor([[1.0, 0.0, 2.0, 4.0], [8.0, 16.0, 0.0, 0.0]])
    assert total_return(rewards, MASK).tolist() == [[7.0], [24.0]]
    assert reward_to_go(rewards, MASK).tolist() == [[7, 6, 6, 4], [24, 16, 0, 0]]
    assert reward_to_go(rewards, MASK, gamma=0.5)[0].tolist() == [1 + 0.5 + 0.5, 2.0, 4.0, 4.0]


def test_reward_to_go_equals_total_for_final_reward():
    rewards = torch.zeros(2, 4)
    rewards[0, 3], rewards[1, 1] = 1.0, 0.5
    parts = {"baseline": "batch", "scale": "none"}
    to_go = outcome_advantages(rewards, MASK, group=2, returns="to_go", **parts)
    assert torch.equal(to_go, outcome_advantages(rewards, MASK, group=2, returns="total", **parts))
    assert to_go.tolist() == [[0.25] * 4, [-0.25, -0.25, 0, 0]]


def test_whitened_ignores_values_outside_mask():  # trap 41
    values = torch.tensor([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 900.0, -900.0]])
    white = whiten(values, MASK)
    assert white[MASK].mean().item() == pytest.approx(0, abs=1e-6)
    assert white[MASK].std(correction=0).item() == pytest.approx(1, abs=1e-4)
    assert (white[~MASK] == 0).all()


def test_process_advantages_match_hand_computed_values():  # DeepSeekMath 4.1.3
    """Two completions: steps that end at tokens 1 and 3 with 1 and 0, and one at token 1 with 1."""
    rewards = torch.tensor([[0.0, 1, 0, 0], [0, 1, 0, 0]])
    ends = torch.tensor([[0, 1, 0, 1], [0, 1, 0, 0]]).bool()
    mean, spread = 2 / 3, math.sqrt(2) / 3
    good, bad = (1 - mean) / spread, -mean / spread
    credit = process_advantages(rewards, ends, MASK, group=2)
    assert credit[0].tolist() == pytest.approx([good + bad, good + bad, bad, bad], abs=1e-4)
    assert credit[1].tolist() == pytest.approx([good, good, 0, 0], abs=1e-4)


def farm(number):
    """A group of one wrong completion with `number` correct steps, three right ones with two, four wrong ones with a
    wrong step: (step rewards, ends, mask).
    """
    rows = [[1.0] * number + [0.0], *[[1.0, 1.0, 1.2]] * 3, *[[0.0, 0.0]] * 4]
    lengths = torch.tensor([len(row) for row in rows])
    mask = torch.arange(int(lengths.max())) < lengths[:, None]
    rewards = torch.zeros(mask.shape).masked_scatter(mask, torch.tensor([reward for row in rows for reward in row]))
    return rewards, mask.clone(), mask


def test_gated_step_credit_keeps_many_correct_steps_below_a_correct_answer():
    by_sum, by_gated = (process_advantages(*farm(20), group=8, step_credit=how)[:, 0] for how in ("sum", "gated"))
    assert by_sum[0] > by_sum[1:4].max() > 0 and by_gated[0] < 0 < by_gated[1:4].min()
    farmed = [process_advantages(*farm(n), group=8, step_credit="gated")[0, 0].item() for n in (1, 2, 5, 20, 90)]
    assert farmed == sorted(farmed, reverse=True)  # more steps do not pay


def test_gated_step_credit_matches_hand_computed_values():
    rewards = torch.tensor([[0.0, 1, 0, 0], [0, 1, 0, 0]])
    ends = torch.tensor([[1, 1, 0, 1], [0, 1, 0, 0]]).bool()  # two steps and an outcome; an outcome alone
    good, bad = 1.0, -1.0  # mean 1/2, deviation 1/2
    credit = process_advantages(rewards, ends, MASK, group=2, step_credit="gated")
    assert credit[0].tolist() == pytest.approx([bad / 2 + good / 2 + bad, good / 2 + bad, bad, bad], abs=1e-4)
    assert credit[1].tolist() == pytest.approx([good, good, 0, 0], abs=1e-4)


def test_process_advantages_equal_grpo_with_outcome_as_only_step():
    torch.manual_seed(0)
    lengths = torch.tensor([4, 2, 3, 1])
    mask = torch.arange(4) < lengths[:, None]
    rewards = torch.zeros(4, 4).scatter(1, lengths[:, None] - 1, torch.rand(4, 1))
    ends = torch.zeros(4, 4).scatter(1, lengths[:, None] - 1, 1.0).bool()
    assert torch.allclose(
        process_advantages(rewards, ends, mask, group=2), outcome_advantages(rewards, mask, group=2), atol=1e-5
    )


def test_process_advantages_are_zero_for_equal_or_no_steps():
    ends = torch.tensor([[0, 1, 0, 1], [0, 1, 0, 0]]).bool()
    assert (process_advantages(0.7 * ends, ends, MASK, group=2) == 0).all()
    assert (process_advantages(torch.zeros(2, 4), torch.zeros(2, 4).bool(), MASK, group=2) == 0).all()


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "clipped"),
    [
        (0.5, 1.0, -0.5, False), (1.0, 1.0, -1.0, False), (1.5, 1.0, -1.2, True), (0.5, -1.0, 0.8, True),
        (1.0, -1.0, 1.0, False), (1.5, -1.0, 1.5, False),
    ],
)  # fmt: skip
def test_clip_takes_larger_loss_of_clipped_and_unclipped(ratio, advantage, loss, clipped):  # trap 11
    value, gradient = surrogate("clip", ratio, advantage)
    assert value == pytest.approx(loss) and (gradient == 0) == clipped


@pytest.mark.parametrize("name", SURROGATES)
def test_clipped_tokens_are_those_whose_gradient_differs_from_that_of_the_unclipped_surrogate(name):
    for ratio, advantage, dual in product((0.5, 1.0, 1.5, 4.0), (-1.0, 0.0, 1.0), (0.0, 3.0)):
        clip = {"low": 0.2, "high": 0.2, "dual": dual if name == "clip" else 0.0}
        _, gradient = surrogate(name, ratio, advantage, **clip)
        _, without_clip = surrogate(name, ratio, advantage, low=1.0, high=100.0, dual=0.0)
        is_clipped = bool(SURROGATES[name].is_clipped(torch.tensor([[ratio]]), torch.tensor([[advantage]]), **clip))
        assert is_clipped == (gradient != without_clip), (ratio, advantage, dual)


def surrogate(name, ratio, advantage, **overrides):
    """(loss, its gradient with respect to the log-probability) of one token."""
    logp = torch.tensor([[math.log(ratio)]], requires_grad=True)
    ones = torch.ones(1, 1).bool()
    clip = {"low": 0.2, "high": 0.2, "dual": 0.0} | overrides
    losses = SURROGATES[name].loss(
        token_ratio(logp, torch.zeros(1, 1), ones), logp, torch.tensor([[advantage]]), **clip
    )
    return losses.item(), torch.autograd.grad(losses.sum(), logp)[0].item()


def test_dual_clip_bounds_loss_of_negative_advantage():  # Ye et al. 2020
    assert surrogate("clip", 5.0, -1.0) == pytest.approx((5.0, 5.0))
    assert surrogate("clip", 5.0, -1.0, dual=3.0) == pytest.approx((3.0, 0.0))
    assert surrogate("clip", 2.0, -1.0, dual=3.0) == pytest.approx((2.0, 2.0))
    assert surrogate("clip", 5.0, 1.0, dual=3.0) == pytest.approx((-1.2, 0.0))


def test_cispo_keeps_gradient_of_clipped_token():
    loss, gradient = surrogate("clip_weight", 5.0, 1.0, high=0.28)
    assert (loss, gradient) == pytest.approx((-1.28 * math.log(5.0), -1.28))
    assert surrogate("clip_weight", 0.1, 2.0)[1] == pytest.approx(-0.2)


@pytest.mark.parametrize("advantage", [1.5, -0.5, 0.0])
def test_surrogates_have_reinforce_gradient_at_ratio_one(advantage):
    assert {surrogate(name, 1.0, advantage)[1] for name in SURROGATES} == {-advantage}


def test_sequence_ratio_is_geometric_mean_of_token_ratios():  # GSPO
    logp, old = (
        torch.tensor([[-1.0, -2.0, -9.0], [-1.0, -1.0, -1.0]]),
        torch.tensor([[-1.5, -1.0, 0.0], [0.0, -1.0, -1.0]]),
    )
    mask = torch.tensor([[1, 1, 0], [1, 1, 1]]).bool()
    ratio = sequence_ratio(logp, old, mask)
    assert ratio[0].tolist() == pytest.approx([math.exp(-0.25)] * 3)
    assert ratio[1].tolist() == pytest.approx([math.exp(-1 / 3)] * 3)
    assert torch.isfinite(sequence_ratio(logp, old, torch.zeros(2, 3).bool())).all()


def test_sampler_weights_are_capped_per_token_or_row():  # trap 10
    old, sampler = torch.log(torch.tensor([[0.5, 0.9, 0.1]])), torch.log(torch.tensor([[0.1, 0.6, 0.7]]))
    mask = torch.tensor([[1, 1, 0]]).bool()

    def weights(how, low=0.5, high=2.0):
        return sampler_weights(old, sampler, mask, how=how, low=low, high=high)[0, :2].tolist()

    assert weights("none") == [1, 1]  # of the ratios 5 and 1.5
    assert weights("token") == pytest.approx([2.0, 1.5]) and weights("token_mask") == pytest.approx([0, 1.5])
    assert weights("token_mask", low=2, high=9) == pytest.approx([5, 0])
    assert weights("sequence") == [2, 2] and weights("sequence", high=10) == pytest.approx([7.5, 7.5])
    assert weights("sequence_mask") == [0, 0] and weights("sequence_mask", high=10) == pytest.approx([7.5, 7.5])
    assert weights("geometric_mask") == [0, 0] and weights("geometric_mask", high=2.8) == [1, 1]  # the mean is 2.74
    assert CORRECTIONS.keys() | {"auto", "none"} == settings()["algo.importance_sampling"].choices.keys()


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({}, "none"),
        ({"engine.dtype": "bfloat16"}, "token"),
        ({"engine.dtype": "fp8"}, "token"),
        ({"optim.dtype": "bfloat16"}, "token"),
        ({"max_off_policy_steps": 1}, "token"),
        ({"engine.dtype": "bfloat16", "algo.importance_sampling": "none"}, "none"),
        ({"algo.importance_sampling": "geometric_mask"}, "geometric_mask"),
    ],
)
def test_correction_is_on_where_engine_and_trainer_may_differ(changes, name):
    assert sampler_correction(resolve([("test", changes)]).config) == name


def test_kl_estimators_are_zero_at_equality_and_k2_k3_non_negative():  # trap 24
    torch.manual_seed(0)
    a, b = torch.randn(4, 9), torch.randn(4, 9)
    for estimator in (kl_k1, kl_k2, kl_k3):
        assert (estimator(a, a) == 0).all()
    assert (kl_k2(a, b) >= 0).all() and (kl_k3(a, b) >= 0).all()
    assert kl_k3(torch.tensor(0.0), torch.tensor(math.log(2.0))).item() == pytest.approx(2 - math.log(2) - 1)


def test_extreme_log_ratios_do_not_overflow():  # trap 27
    far = torch.tensor([[-500.0]]), torch.tensor([[500.0]])
    assert torch.isfinite(kl_k3(*far)).all()
    ones = torch.ones(1, 1).bool()
    assert all(torch.isfinite(ratio(far[1], far[0], ones)).all() for ratio in RATIOS.values())
    for how in CORRECTIONS:
        assert torch.isfinite(sampler_weights(far[1], far[0], ones, how=how, low=0.5, high=2.0)).all()


def test_kl_estimators_match_exact_divergence_and_gradients():  # trap 25
    torch.manual_seed(1)
    logits = torch.randn(6, dtype=torch.float64, requires_grad=True)
    reference = torch.randn(6, dtype=torch.float64).log_softmax(0)
    logp = logits.log_softmax(0)
    p = logp.exp().detach()
    exact = (logp.exp() * (logp - reference)).sum()
    forward = (reference.exp() * (reference - logp)).sum()
    (exact_grad,) = torch.autograd.grad(exact, logits, retain_graph=True)
    (forward_grad,) = torch.autograd.grad(forward, logits, retain_graph=True)
    # Expectations under the policy, the sampled token's probability itself held fixed, as in the loss.
    grads = {}
    for name, estimator in KL.items():
        expected = (p * estimator(logp, reference)).sum()
        (grads[name],) = torch.autograd.grad(expected, logits, retain_graph=True)
        if name != "k2":
            assert expected.item() == pytest.approx(exact.item())
    assert grads["k1"].abs().max() < 1e-12
    assert torch.allclose(grads["k2"], exact_grad)
    assert torch.allclose(grads["k3"], forward_grad)
    assert torch.allclose(grads["k3_reverse"], exact_grad)


def test_token_weights_match_their_definition():  # traps 22, 23
    mask = torch.tensor([[1, 1, 1, 1], [1, 0, 0, 0]]).bool()
    assert token_weights(mask, "token", max_tokens=10)[mask].tolist() == pytest.approx([0.2] * 5)
    assert token_weights(mask, "sequence", max_tokens=10)[mask].tolist() == pytest.approx([1 / 8] * 4 + [1 / 2])
    assert token_weights(mask, "constant", max_tokens=10)[mask].tolist() == pytest.approx([1 / 20] * 5)
    assert all((token_weights(mask, how, max_tokens=10)[~mask] == 0).all() for how in ("token", "sequence", "constant"))


def test_settings_override_single_parts_of_a_row():
    assert all(resolve_algorithm(AlgoConfig(name=name)) == row for name, row in ALGORITHMS.items())
    assert resolve_algorithm(AlgoConfig(name="dapo", clip_high=0.3)).clip_high == 0.3
    assert resolve_algorithm(AlgoConfig(name="grpo", loss_aggregation="token", kl="k2")) == replace(
        ALGORITHMS["grpo"], loss_aggregation="token", kl="k2"
    )


def test_unknown_algorithm_is_refused_with_suggestion():
    with pytest.raises(ValueError, match=r"'drgrpo'; known are reinforce, .*; did you mean 'dr_grpo'"):
        resolve_algorithm(AlgoConfig(name="drgrpo"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"baseline": "groups"}, "algo.baseline is 'groups'; known are none, batch, group, leave_one_out"),
        ({"name": "grpo_process", "scale": "none"}, "'process' needs algo.scale == algo.baseline == 'group'"),
        ({"name": "grpo_process", "kl_in": "reward"}, "needs algo.kl_in == 'loss'"),  # trap 26
        ({"kl_in": "reward"}, "needs algo.kl_in == 'loss'"),
        ({"baseline": "none"}, "algo.scale == 'group' needs algo.baseline in"),
        ({"name": "ppo", "scale": "group", "kl_in": "loss", "kl": "k3"}, "algo.scale == 'group' needs algo.baseline"),
        ({"name": "grpo_process", "filter_zero_advantages": True}, "'process' needs not algo.filter_zero_advantages"),
        ({"kl": "k1"}, "k1 in the loss has no gradient on average"),
        ({"returns": "gae"}, "'gae' needs algo.baseline == 'value'"),
        ({"name": "ppo", "returns": "total"}, "'value' needs algo.returns in"),
        ({"name": "trpo", "epochs": 2}, "'constrained' needs algo.epochs"),
        ({"name": "trpo", "surrogate": "plain"}, "'constrained' needs algo.surrogate in"),
        ({"surrogate": "ratio", "epochs": 2}, "needs algo.epochs"),
        ({"clip_high": -0.1}, "must be at least 0"),
        ({"name": "dapo", "filter_zero_advantages": False}, "dynamic_sampling needs algo.filter_zero_advantages"),
        ({"name": "dapo", "filter_metric": "acc"}, "algo.filter_metric is 'acc'; known are reward, correct"),
        ({"dual_clip": 0.5}, "needs algo.dual_clip > 1"),
        ({"name": "cispo", "dual_clip": 3.0}, "needs .* algo.surrogate == 'clip'"),
        ({"name": "reinforce", "epochs": 2}, "needs algo.epochs"),
    ],
)
def test_incompatible_parts_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        resolve_algorithm(AlgoConfig(**settings))


@pytest.mark.parametrize(
    ("part", "names"),
    [
        ("returns", {*RETURNS, "process", "gae"}),
        ("baseline", {*BASELINES, "value"}),
        ("scale", {*SCALES}),
        ("ratio", {*RATIOS}),
        ("surrogate", {*SURROGATES}),
        ("loss_aggregation", {*get_args(LossAggregation)}),
        ("step_credit", {*STEP_CREDIT}),
        ("kl", {*KL}),
    ],
)
def test_allowed_names_of_a_part_equal_its_table(part, names):
    with pytest.raises(ValueError, match=rf"algo\.{part} is 'nothing'; known are ") as refusal:
        resolve_algorithm(AlgoConfig(**{part: "nothing"}))
    assert set(str(refusal.value).partition("known are ")[2].split(", ")) == names


@pytest.mark.parametrize(("setting", "bound"), [("clip_low", "low"), ("clip_high", "high"), ("dual_clip", "dual")])
@pytest.mark.parametrize("name", SURROGATES)
def test_bound_of_a_clip_needs_a_surrogate_that_it_changes(name, setting, bound):
    ratio = torch.tensor([[0.3, 0.9, 1.3, 4.0], [0.3, 0.9, 1.3, 4.0]])
    advantages, bounds = torch.tensor([[1.0], [-1.0]]), {"low": 0.2, "high": 0.2, "dual": 3.0}
    changed = bounds | {bound: bounds[bound] / 2}
    before, after = (SURROGATES[name].loss(ratio, ratio.log(), advantages, **own) for own in (bounds, changed))
    cfg = Config(algo=AlgoConfig(surrogate=name, epochs=2, minibatches=1, trust="none"))
    with nullcontext() if not torch.equal(before, after) else pytest.raises(ValueError, match="which has no effect"):
        check_effect(cfg, {f"algo.{setting}": 0.7})
