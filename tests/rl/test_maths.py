"""Advantages, KL estimators, losses and weights against numbers worked out by hand."""

import math

import pytest
import torch

from reasoner.config import AlgoConfig
from reasoner.rl.advantages import group_advantages
from reasoner.rl.algorithms import ALGORITHMS, resolve
from reasoner.rl.kl import kl_k1, kl_k2, kl_k3
from reasoner.rl.losses import clipped_surrogate, is_clipped, token_weights


def test_group_advantages_by_hand_with_the_population_deviation():  # trap 1
    found = group_advantages(torch.tensor([[1.0, 0.0, 0.0, 0.0], [1.2, 0.2, 1.2, 0.2]]))
    root3 = math.sqrt(3)
    assert found[0].tolist() == pytest.approx([root3, -1 / root3, -1 / root3, -1 / root3], abs=1e-4)
    assert found[1].tolist() == pytest.approx([1, -1, 1, -1], abs=1e-4)


def test_without_scaling_the_advantage_is_the_distance_from_the_mean():
    assert group_advantages(torch.tensor([[1.0, 0.0, 0.0, 0.0]]), scale="none")[0].tolist() == [
        0.75,
        -0.25,
        -0.25,
        -0.25,
    ]


def test_flat_group_has_no_advantage():  # traps 2, 3, 5
    assert (group_advantages(torch.full((1, 7), 0.7)) == 0).all()
    assert (group_advantages(torch.tensor([[1.0] * 7 + [1.0 - 1e-6]])) == 0).all()
    assert (group_advantages(torch.full((3, 8), 1 / 3)) == 0).all()


def test_one_completion_is_no_group():
    with pytest.raises(ValueError, match="at least 2 completions"):
        group_advantages(torch.ones(4, 1))


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "clipped"),
    [
        (0.5, 1.0, -0.5, False),
        (1.0, 1.0, -1.0, False),
        (1.5, 1.0, -1.2, True),
        (0.5, -1.0, 0.8, True),
        (1.0, -1.0, 1.0, False),
        (1.5, -1.0, 1.5, False),
    ],
)
def test_the_clip_takes_the_worse_of_the_two(ratio, advantage, loss, clipped):  # trap 11
    logp = torch.tensor([[math.log(ratio)]], requires_grad=True)
    old, adv = torch.zeros(1, 1), torch.tensor([[advantage]])
    found = clipped_surrogate(logp, old, adv, low=0.2, high=0.2)
    assert found.item() == pytest.approx(loss)
    found.sum().backward()
    assert (logp.grad.item() == 0) == clipped == bool(is_clipped(logp.detach(), old, adv, low=0.2, high=0.2))


def test_kl_estimators_vanish_at_equality_and_k2_k3_are_never_negative():  # trap 24
    torch.manual_seed(0)
    a, b = torch.randn(4, 9), torch.randn(4, 9)
    for estimator in (kl_k1, kl_k2, kl_k3):
        assert (estimator(a, a) == 0).all()
    assert (kl_k2(a, b) >= 0).all() and (kl_k3(a, b) >= 0).all()
    assert kl_k3(torch.tensor(0.0), torch.tensor(math.log(2.0))).item() == pytest.approx(2 - math.log(2) - 1)


def test_nothing_overflows():  # trap 27
    far = torch.tensor([[-500.0]]), torch.tensor([[500.0]])
    assert torch.isfinite(kl_k3(*far)).all()
    assert torch.isfinite(clipped_surrogate(far[1], far[0], torch.ones(1, 1), low=0.2, high=0.2)).all()


def test_kl_values_and_gradients_against_the_exact_divergence():  # trap 25
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
    for name, estimator in {"k1": kl_k1, "k2": kl_k2, "k3": kl_k3}.items():
        expected = (p * estimator(logp, reference)).sum()
        (grads[name],) = torch.autograd.grad(expected, logits, retain_graph=True)
        if name != "k2":
            assert expected.item() == pytest.approx(exact.item())
    assert grads["k1"].abs().max() < 1e-12
    assert torch.allclose(grads["k2"], exact_grad)
    assert torch.allclose(grads["k3"], forward_grad)


def test_weights_add_up_as_named():  # traps 22, 23
    mask = torch.tensor([[1, 1, 1, 1], [1, 0, 0, 0]]).bool()
    assert token_weights(mask, "token", max_tokens=10)[mask].tolist() == pytest.approx([0.2] * 5)
    assert token_weights(mask, "sequence", max_tokens=10)[mask].tolist() == pytest.approx([1 / 8] * 4 + [1 / 2])
    assert token_weights(mask, "constant", max_tokens=10)[mask].tolist() == pytest.approx([1 / 20] * 5)
    assert all((token_weights(mask, how, max_tokens=10)[~mask] == 0).all() for how in ("token", "sequence", "constant"))


def test_settings_change_single_parts_of_a_row():
    assert resolve(AlgoConfig(name="dapo")) == ALGORITHMS["dapo"]
    assert resolve(AlgoConfig(name="dapo", clip_high=0.3)).clip_high == 0.3
    assert resolve(AlgoConfig(name="grpo", weights="token")).weights == "token"


def test_unknown_algorithm_is_refused_with_the_nearest():
    with pytest.raises(ValueError, match=r"'drgrpo'; known are grpo, dr_grpo, dapo; did you mean 'dr_grpo'"):
        resolve(AlgoConfig(name="drgrpo"))
