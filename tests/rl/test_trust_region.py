"""The constrained step on small problems whose answers are known."""

import subprocess
import sys
import textwrap

import pytest
import torch
from torch import nn

from reasoner.models.output_layer import OutputLayer
from reasoner.rl.fisher import FisherProduct
from reasoner.rl.trust_region import conjugate_gradient, constrained_step


def test_conjugate_gradient_solves_system_in_n_iterations():
    torch.manual_seed(0)
    root = torch.randn(6, 6, dtype=torch.float64)
    matrix = root @ root.T + 0.5 * torch.eye(6, dtype=torch.float64)
    target = torch.randn(6, dtype=torch.float64)
    solution = conjugate_gradient(lambda v: matrix @ v, target, iterations=6)
    assert torch.allclose(matrix @ solution, target, atol=1e-8)


@pytest.mark.parametrize("scale", [1e-9, 1e-4, 1.0, 1e6])
def test_conjugate_gradient_tolerance_is_relative_to_target(scale):
    """A gradient of 1e-6 is solved as well as one of 1: the direction is the same, its length scales."""
    torch.manual_seed(0)
    root = torch.randn(30, 30, dtype=torch.float64)
    matrix, target = root @ root.T + torch.eye(30, dtype=torch.float64), torch.randn(30, dtype=torch.float64)
    calls = []

    def product(v):
        calls.append(1)
        return matrix @ v

    solution = conjugate_gradient(product, scale * target, iterations=200)
    assert (matrix @ solution - scale * target).norm() <= 2e-5 * scale * target.norm()
    assert 5 < len(calls) < 100  # it iterates, and stops before the limit


def softmax_policy(size=5):
    torch.manual_seed(1)
    return nn.Parameter(torch.randn(size, dtype=torch.float64))


def softmax_fisher(logits, damping):
    """Fisher product of a policy that is the softmax of its parameters: the head is the identity."""
    head = nn.Linear(len(logits), len(logits), bias=False, dtype=torch.float64)
    with torch.no_grad():
        head.weight.copy_(torch.eye(len(logits)))
    layer = OutputLayer(head, num_ids=len(logits))
    return FisherProduct([lambda: logits[None] * 1.0], layer, [logits], temperature=1.0, damping=damping)


def kl_to(old, logits):
    return (old.exp() * (old - logits.log_softmax(0))).sum()


def test_fisher_product_matches_closed_form_softmax():
    logits = softmax_policy()
    old = logits.detach().log_softmax(0)
    product = softmax_fisher(logits, 0.1)
    p = old.exp()
    fisher = torch.diag(p) - torch.outer(p, p)
    v = torch.randn(5, dtype=torch.float64)
    assert torch.allclose(product(v), fisher @ v + 0.1 * v)


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("num_ids", "scale"), [(7, 1.0), (6, 0.25)])
def test_fisher_product_is_second_derivative_of_kl(parts, bias, num_ids, scale, monkeypatch):
    """Against double backward through the whole network, at a temperature, in one block or several, tile by tile."""
    monkeypatch.setattr("reasoner.models.fused_lm_head.CPU_ROWS", 4)
    monkeypatch.setattr("reasoner.rl.fisher.tile_width", lambda states: 3)
    torch.manual_seed(0)
    critic_backbone = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 5)).double()
    head, inputs = nn.Linear(5, 7, bias=bias).double(), torch.randn(9, 4).double()
    parameters = [*critic_backbone.parameters(), *head.parameters()]
    layer = OutputLayer(head, num_ids=num_ids, scale=scale)
    logits = head(critic_backbone(inputs))[:, :num_ids] * scale
    logprobs = (logits / 0.7).log_softmax(-1)
    old = logprobs.detach()
    divergence = (old.exp() * (old - logprobs)).sum(-1).mean()
    first = torch.autograd.grad(divergence, parameters, create_graph=True)
    v = torch.randn(sum(p.numel() for p in parameters), dtype=torch.float64)
    second = torch.autograd.grad(torch.cat([g.flatten() for g in first]) @ v, parameters)
    expected = torch.cat([g.flatten() for g in second]) + 0.1 * v
    blocks = [lambda rows=rows: critic_backbone(rows) for rows in inputs.tensor_split(parts)]
    product = FisherProduct(blocks, layer, parameters, temperature=0.7, damping=0.1)
    for _ in range(2):
        assert torch.allclose(product(v), expected)


@pytest.mark.slow
def test_fisher_product_memory_stays_below_logits_size():
    """2,048 tokens x 151,936 entries are 1,187 MiB in float32; the product may add a quarter of that."""
    program = """
        import resource, torch
        from torch import nn
        from reasoner.models.output_layer import OutputLayer
        from reasoner.rl.fisher import FisherProduct
        trunk, head = nn.Linear(8, 8), nn.Linear(8, 151_936, bias=False)
        layer = OutputLayer(head, num_ids=151_936)
        inputs, parameters = torch.randn(2048, 8), [*trunk.parameters(), *head.parameters()]
        v = torch.randn(sum(p.numel() for p in parameters))
        FisherProduct([lambda: trunk(inputs[:8])], layer, parameters, temperature=1.0, damping=0.1)(v)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        product = FisherProduct([lambda: trunk(inputs)], layer, parameters, temperature=1.0, damping=0.1)(v)
        assert torch.isfinite(product).all()
        print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
    """
    process = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True
    )
    assert int(process.stdout) < 1187 / 4


def test_fisher_product_refuses_non_linear_head():
    with pytest.raises(ValueError, match="Sequential"):
        FisherProduct([], OutputLayer(nn.Sequential(), num_ids=1), [], temperature=1.0, damping=0.1)


@pytest.mark.parametrize("delta", [1e-4, 1e-2, 0.3])
def test_constrained_step_lowers_loss_within_delta(delta):
    logits = softmax_policy()
    old = logits.detach().log_softmax(0)
    advantages = torch.tensor([1.0, -1.0, 0.5, 0.0, -0.5], dtype=torch.float64)

    def loss():
        return -((logits.log_softmax(0)).exp() * advantages).sum()

    (gradient,) = torch.autograd.grad(loss(), [logits])
    product = softmax_fisher(logits, 1e-6)
    before = loss().item()
    result = constrained_step(
        [logits], gradient, product, lambda: (loss().item(), kl_to(old, logits).item()), delta=delta
    )
    assert 0 < result.kl <= delta and result.share > 0
    assert loss().item() < before
    if delta < 1e-3:  # where the quadratic approximation holds, the full step uses the allowed KL
        assert (result.share == 1 and result.kl > 0.9 * delta) or result.share == 0.5


def test_constrained_step_restores_parameters_if_nothing_improves():
    logits = softmax_policy()
    before = logits.detach().clone()
    product = softmax_fisher(logits, 1e-6)
    result = constrained_step([logits], torch.randn(5).double(), product, lambda: (1.0, 0.0), delta=0.1)
    assert (result.share, result.kl) == (0.0, 0.0) and torch.equal(logits, before)
