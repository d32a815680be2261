import pytest
import torch
from torch import nn

from reasoner.models import fused_lm_head as tiles
from reasoner.models.fused_lm_head import selective_log_softmax


@pytest.fixture(autouse=True)
def _small_tiles(monkeypatch):
    """Seven states cut into 3, 3 and 1, eleven tokens into 4, 4 and 3 (or 11, beside a single state)."""
    monkeypatch.setattr(tiles, "_ROWS", 3)
    monkeypatch.setattr(tiles, "CPU_TILE", 12)


def _made(*, bias: bool):
    generator = torch.Generator().manual_seed(3)
    head = nn.Linear(5, 11, bias=bias)
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.copy_(2 * torch.randn(parameter.shape, generator=generator))
    states = torch.randn(7, 5, generator=generator).requires_grad_()
    drawn = torch.tensor([0, 3, 4, 10, 10, 7, 8])
    return head, states, drawn, torch.randn(2, 7, generator=generator)


def _whole(head, states, drawn, temperature):
    logprobs = (head(states).float() / temperature).log_softmax(dim=-1)
    return logprobs.gather(1, drawn[:, None])[:, 0], -(logprobs.exp() * logprobs).sum(dim=-1)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("temperature", [1.0, 0.6])
@pytest.mark.parametrize("learns_entropy", [False, True])
def test_tiles_give_what_whole_logits_give_and_the_same_gradients(bias, temperature, learns_entropy):
    head, states, drawn, pulls = _made(bias=bias)
    leaves = [states, *head.parameters()]
    found = selective_log_softmax(head, states, drawn, temperature=temperature, learns_entropy=learns_entropy)
    expected = _whole(head, states, drawn, temperature)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)
    assert found[1].requires_grad == learns_entropy

    def gradients(logprobs, entropy):
        loss = (pulls[0] * logprobs).sum() + ((pulls[1] * entropy).sum() if learns_entropy else 0)
        return torch.autograd.grad(loss, leaves)

    for one, other in zip(gradients(*found), gradients(*expected), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_logits_that_would_overflow_when_they_are_exponentiated():
    head, states, drawn, _ = _made(bias=False)
    with torch.no_grad():
        head.weight.mul_(100)
    found, entropy = selective_log_softmax(head, states, drawn, temperature=1.0, learns_entropy=False)
    expected, _ = _whole(head, states, drawn, 1.0)
    torch.testing.assert_close(found, expected)
    assert torch.isfinite(entropy).all()


def test_in_bfloat16_the_products_are_short_and_the_sums_are_long():
    head, states, drawn, pulls = _made(bias=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found, _ = selective_log_softmax(head, states, drawn, temperature=1.0, learns_entropy=False)
        expected, _ = _whole(head, states, drawn, 1.0)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)
    (pulls[0] * found).sum().backward()
    assert head.weight.grad.dtype == states.grad.dtype == torch.float32


def test_no_tile_is_larger_than_it_may_be(monkeypatch):
    head, states, drawn, _ = _made(bias=False)
    seen = []
    linear = nn.functional.linear
    monkeypatch.setattr(nn.functional, "linear", lambda *a: seen.append(linear(*a)) or seen[-1])
    found, _ = selective_log_softmax(head, states, drawn, temperature=1.0, learns_entropy=False)
    found.sum().backward()
    assert len(seen) == 2 * (3 + 3 + 1)
    assert max(logits.numel() for logits in seen) <= 12
