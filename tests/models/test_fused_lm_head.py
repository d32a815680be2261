import pytest
import torch
from torch import nn

from reasoner.models import fused_lm_head as tiles
from reasoner.models.fused_lm_head import selective_log_softmax
from reasoner.models.output_layer import OutputLayer


@pytest.fixture(autouse=True)
def _small_tiles(monkeypatch):
    """Seven states cut into 3, 3 and 1, eleven tokens into 4, 4 and 3 (or 11, beside a single state)."""
    monkeypatch.setattr(tiles, "CPU_ROWS", 3)
    monkeypatch.setattr(tiles, "CPU_TILE", 12)


def _example(*, bias: bool):
    generator = torch.Generator().manual_seed(3)
    head = nn.Linear(5, 11, bias=bias)
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.copy_(2 * torch.randn(parameter.shape, generator=generator))
    states = torch.randn(7, 5, generator=generator).requires_grad_()
    sampled = torch.tensor([0, 3, 4, 10, 10, 7, 8])
    return head, states, sampled, torch.randn(2, 7, generator=generator)


def _whole(layer, states, sampled, temperature):
    logits = layer.head(states).float()[:, : layer.num_ids] * layer.scale
    if layer.soft_cap:
        logits = layer.soft_cap * (logits / layer.soft_cap).tanh()
    logprobs = (logits / temperature).log_softmax(dim=-1)
    return logprobs.gather(1, sampled[:, None])[:, 0], -(logprobs.exp() * logprobs).sum(dim=-1)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("temperature", [1.0, 0.6])
@pytest.mark.parametrize("learns_entropy", [False, True])
@pytest.mark.parametrize("processing", [{}, {"scale": 0.25, "soft_cap": 3.0}, {"scale": 0.5}])
def test_tiled_log_softmax_equals_dense_in_values_and_gradients(bias, temperature, learns_entropy, processing):
    head, states, sampled, weights = _example(bias=bias)
    layer = OutputLayer(head, num_ids=11, **processing)
    leaves = [states, *head.parameters()]
    outputs = selective_log_softmax(layer, states, sampled, temperature=temperature, learns_entropy=learns_entropy)
    expected = _whole(layer, states, sampled, temperature)
    for one, other in zip(outputs, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=2e-6)
    assert outputs[1].requires_grad == learns_entropy

    def gradients(logprobs, entropy):
        loss = (weights[0] * logprobs).sum() + ((weights[1] * entropy).sum() if learns_entropy else 0)
        return torch.autograd.grad(loss, leaves)

    for one, other in zip(gradients(*outputs), gradients(*expected), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_rows_of_the_head_without_an_id_have_no_probability_and_no_gradient():
    head, states, _, _ = _example(bias=True)
    layer, sampled = OutputLayer(head, num_ids=9), torch.arange(7)
    outputs = selective_log_softmax(layer, states, sampled, temperature=1.0, learns_entropy=False)
    for one, other in zip(outputs, _whole(layer, states, sampled, 1.0), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=2e-6)
    outputs[0].sum().backward()
    for gradient in (head.weight.grad, head.bias.grad):
        assert (gradient[:9] != 0).any(-1).all() if gradient.ndim > 1 else (gradient[:9] != 0).all()
        assert (gradient[9:] == 0).all()


def test_tiled_log_softmax_does_not_overflow():
    head, states, sampled, _ = _example(bias=False)
    with torch.no_grad():
        head.weight.mul_(100)
    layer = OutputLayer(head, num_ids=11)
    logprobs, entropy = selective_log_softmax(layer, states, sampled, temperature=1.0, learns_entropy=False)
    expected, _ = _whole(layer, states, sampled, 1.0)
    torch.testing.assert_close(logprobs, expected)
    assert torch.isfinite(entropy).all()


def test_tiled_log_softmax_accumulates_in_float32_under_bfloat16():
    head, states, sampled, weights = _example(bias=True)
    layer = OutputLayer(head, num_ids=11)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logprobs, _ = selective_log_softmax(layer, states, sampled, temperature=1.0, learns_entropy=False)
        expected, _ = _whole(layer, states, sampled, 1.0)
    assert logprobs.dtype == torch.float32
    torch.testing.assert_close(logprobs, expected, rtol=0, atol=1e-6)
    (weights[0] * logprobs).sum().backward()
    assert head.weight.grad.dtype == states.grad.dtype == torch.float32


def test_tiles_stay_within_size_limit(monkeypatch):
    head, states, sampled, _ = _example(bias=False)
    tiles_computed = []
    linear = nn.functional.linear
    monkeypatch.setattr(nn.functional, "linear", lambda *a: tiles_computed.append(linear(*a)) or tiles_computed[-1])
    layer = OutputLayer(head, num_ids=11)
    logprobs, _ = selective_log_softmax(layer, states, sampled, temperature=1.0, learns_entropy=False)
    logprobs.sum().backward()
    assert len(tiles_computed) == 2 * (3 + 3 + 1)
    assert max(logits.numel() for logits in tiles_computed) <= 12
