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
    torch.testing.assert_close(outputs, expected, rtol=1e-5, atol=2e-6)
    assert outputs[1].requires_grad == learns_entropy

    def gradients(logprobs, entropy):
        loss = (weights[0] * logprobs).sum() + ((weights[1] * entropy).sum() if learns_entropy else 0)
        return torch.autograd.grad(loss, leaves)

    torch.testing.assert_close(gradients(*outputs), gradients(*expected), rtol=1e-4, atol=1e-5)


def test_rows_of_the_head_without_an_id_have_no_probability_and_no_gradient():
    head, states, _, _ = _example(bias=True)
    layer, sampled = OutputLayer(head, num_ids=9), torch.arange(7)
    outputs = selective_log_softmax(layer, states, sampled, temperature=1.0, learns_entropy=False)
    torch.testing.assert_close(outputs, _whole(layer, states, sampled, 1.0), rtol=1e-5, atol=2e-6)
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


def _teacher(dtype):
    """A wider teacher's output layer, with two ids that the policy lacks and a row without an id, and its states."""
    generator = torch.Generator().manual_seed(4)
    head = nn.Linear(6, 14).to(dtype).requires_grad_(False)
    for parameter in head.parameters():
        parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return OutputLayer(head, num_ids=13, soft_cap=2.0), torch.randn(7, 6, generator=generator, dtype=dtype)


def _whole_kl(layer, states, teacher, teacher_states, temperature):
    """Sum over the policy's tokens of p (log p - log q), in float64 from logits of all tokens."""

    def log_softmax(own, state):
        weight, bias = own.head.weight.double(), None if own.head.bias is None else own.head.bias.double()
        logits = nn.functional.linear(state.double(), weight, bias)[:, : own.num_ids] * own.scale
        logits = own.soft_cap * torch.tanh(logits / own.soft_cap) if own.soft_cap else logits
        return (logits / temperature).log_softmax(-1)

    log_p, log_q = log_softmax(layer, states), log_softmax(teacher, teacher_states)
    return (log_p.exp() * (log_p - log_q[:, : layer.num_ids])).sum(-1)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("processing", [{}, {"scale": 0.25, "soft_cap": 3.0}])
def test_kl_to_a_teacher_and_its_gradient_are_those_of_whole_logits(dtype, tolerance, bias, processing):
    head, states, sampled, weights = _example(bias=bias)
    head, states, weights = head.to(dtype), states.detach().to(dtype).requires_grad_(), weights.to(dtype)
    layer, (teacher, teacher_states) = OutputLayer(head, num_ids=10, **processing), _teacher(dtype)
    sampled, leaves = sampled.clamp_max(9), [states, *head.parameters()]
    *_, kl = selective_log_softmax(
        layer, states, sampled, temperature=0.7, learns_entropy=False, teacher=(teacher, teacher_states)
    )
    expected = _whole_kl(layer, states, teacher, teacher_states, 0.7)
    torch.testing.assert_close(kl.double(), expected, rtol=tolerance, atol=tolerance)
    assert (kl > 0).all()
    gradients, wanted = (torch.autograd.grad((weights[0] * one).sum(), leaves) for one in (kl, expected))
    for one, other in zip(gradients, wanted, strict=True):
        torch.testing.assert_close(one.double(), other.double(), rtol=tolerance, atol=tolerance)


def test_kl_adds_its_gradient_to_those_of_log_probabilities_and_entropy():
    head, states, sampled, weights = _example(bias=True)
    head, states = head.double(), states.detach().double().requires_grad_()
    layer, (teacher, others) = OutputLayer(head, num_ids=11), _teacher(torch.float64)
    options = {"temperature": 1.0, "learns_entropy": True, "teacher": (teacher, others)}
    outputs = selective_log_softmax(layer, states, sampled, **options)
    log_p = head(states).log_softmax(-1)
    entropy = -(log_p.exp() * log_p).sum(-1)
    wanted = log_p.gather(1, sampled[:, None])[:, 0], entropy, _whole_kl(layer, states, teacher, others, 1.0)
    scales = (*weights.double(), weights[0].double() + 1)
    leaves = [states, *head.parameters()]
    torch.testing.assert_close(outputs, wanted, rtol=1e-6, atol=1e-6)  # OutputLayer's logits are in float32
    losses = [sum((w * one).sum() for w, one in zip(scales, own, strict=True)) for own in (outputs, wanted)]
    gradients, expected = (torch.autograd.grad(loss, leaves) for loss in losses)
    torch.testing.assert_close(gradients, expected, rtol=1e-6, atol=1e-6)


def test_a_policy_has_no_kl_to_itself():
    head, states, sampled, _ = _example(bias=True)
    layer = OutputLayer(head, num_ids=11)
    options = {"temperature": 1.0, "learns_entropy": False, "teacher": (layer, states)}
    *_, kl = selective_log_softmax(layer, states, sampled, **options)
    torch.testing.assert_close(kl, torch.zeros(7), rtol=0, atol=1e-6)
    for gradient in torch.autograd.grad(kl.sum(), [states, *head.parameters()]):
        torch.testing.assert_close(gradient, torch.zeros_like(gradient), rtol=0, atol=1e-6)


def test_nothing_of_tokens_times_vocabulary_is_kept_for_the_gradient(monkeypatch):
    head, states, sampled, _ = _example(bias=False)
    layer, teacher = OutputLayer(head, num_ids=11), _teacher(torch.float32)
    tiles_computed, shapes = [], []
    linear = nn.functional.linear
    monkeypatch.setattr(nn.functional, "linear", lambda *a: tiles_computed.append(linear(*a).numel()) or linear(*a))
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: shapes.append(tensor.shape) or tensor, lambda t: t):
        options = {"temperature": 1.0, "learns_entropy": False, "teacher": teacher}
        *_, kl = selective_log_softmax(layer, states, sampled, **options)
    forward = len(tiles_computed)
    kl.sum().backward()
    assert max(tiles_computed) <= 12
    assert len(tiles_computed) - forward == 2 * (3 + 3 + 1)  # both models' tiles, once more
    assert {shape for shape in shapes if len(shape) == 2} == {states.shape, head.weight.shape}
