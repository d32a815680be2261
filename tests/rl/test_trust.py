"""The constrained step on small problems whose answers are known."""

import pytest
import torch
from torch import nn

from reasoner.rl.trust import adapted, conjugate_gradient, constrained_step, fisher_product


def test_conjugate_gradients_solve_a_system_in_as_many_steps_as_it_has_rows():
    torch.manual_seed(0)
    root = torch.randn(6, 6, dtype=torch.float64)
    matrix = root @ root.T + 0.5 * torch.eye(6, dtype=torch.float64)
    target = torch.randn(6, dtype=torch.float64)
    found = conjugate_gradient(lambda v: matrix @ v, target, iterations=6)
    assert torch.allclose(matrix @ found, target, atol=1e-8)


def softmax_policy(size=5):
    torch.manual_seed(1)
    return nn.Parameter(torch.randn(size, dtype=torch.float64))


def kl_to(old, logits):
    return (old.exp() * (old - logits.log_softmax(0))).sum()


def test_a_fisher_product_is_that_of_the_softmax_in_closed_form():
    logits = softmax_policy()
    old = logits.detach().log_softmax(0)
    product = fisher_product(lambda: kl_to(old, logits), [logits], damping=0.1)
    p = old.exp()
    fisher = torch.diag(p) - torch.outer(p, p)
    v = torch.randn(5, dtype=torch.float64)
    assert torch.allclose(product(v), fisher @ v + 0.1 * v)


@pytest.mark.parametrize("delta", [1e-4, 1e-2, 0.3])
def test_the_step_lowers_the_loss_and_stays_within_delta(delta):
    logits = softmax_policy()
    old = logits.detach().log_softmax(0)
    advantages = torch.tensor([1.0, -1.0, 0.5, 0.0, -0.5], dtype=torch.float64)

    def loss():
        return -((logits.log_softmax(0)).exp() * advantages).sum()

    (gradient,) = torch.autograd.grad(loss(), [logits])
    product = fisher_product(lambda: kl_to(old, logits), [logits], damping=1e-6)
    before = loss().item()
    done = constrained_step(
        [logits], gradient, product, lambda: (loss().item(), kl_to(old, logits).item()), delta=delta
    )
    assert 0 < done.kl <= delta and done.share > 0
    assert loss().item() == pytest.approx(before - done.gain) and done.gain > 0
    if delta < 1e-3:  # where the quadratic holds the full step uses up what is allowed
        assert (done.share == 1 and done.kl > 0.9 * delta) or done.share == 0.5


def test_where_nothing_helps_nothing_moves():
    logits = softmax_policy()
    kept = logits.detach().clone()
    old = kept.log_softmax(0)
    product = fisher_product(lambda: kl_to(old, logits), [logits], damping=1e-6)
    done = constrained_step([logits], torch.randn(5).double(), product, lambda: (1.0, 0.0), delta=0.1)
    assert (done.share, done.kl) == (0.0, 0.0) and torch.equal(logits, kept)


def test_the_penalty_doubles_and_halves():
    assert [adapted(1.0, kl, 0.1) for kl in (0.2, 0.15, 0.1, 0.06)] == [2.0, 1.0, 1.0, 0.5]
