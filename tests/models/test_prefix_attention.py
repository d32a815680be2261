"""Attention of long completions without a mask, against torch's attention with one, and through a model."""

from types import SimpleNamespace

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from reasoner.models import prefix_attention
from reasoner.models.loading import completion_states, encode_prompts
from reasoner.models.prefix_attention import LONG_COMPLETION, PrefixCausalMask, attend, avoids_mask
from reasoner.models.recompute import recompute_layers
from tests.fixtures.families import FAMILIES, family_model
from tests.fixtures.packed_rows import packed_rows
from tests.fixtures.tiny import tiny_model

CPU = torch.device("cpu")


def random_heads(length: int, width: int, dtype: torch.dtype) -> list[torch.Tensor]:
    """Queries, keys and values of 3 rows and 2 heads."""
    torch.manual_seed(0)
    shapes = [(3, 2, length, 8), (3, 2, width + length, 8), (3, 2, width + length, 8)]
    return [torch.randn(shape, dtype=torch.float64).to(dtype).requires_grad_() for shape in shapes]


def with_gradients(heads, mask, scale=None):
    output = scaled_dot_product_attention(*heads, attn_mask=mask, scale=scale)
    generator = torch.Generator().manual_seed(1)
    weights = torch.randn(output.shape, generator=generator, dtype=torch.float64).to(output.dtype)
    return [output, *torch.autograd.grad((output * weights).sum(), heads)]


@pytest.mark.parametrize("length", [1, 7, 70])
@pytest.mark.parametrize("padding", [(0, 0, 0), (0, 2, 4)])
@pytest.mark.parametrize("scale", [None, 0.5])
def test_output_and_gradients_are_those_of_the_masked_attention(length, padding, scale):
    width = 5
    prompt_mask = torch.arange(width) >= torch.tensor(padding)[:, None]
    heads, mask = random_heads(length, width, torch.float64), PrefixCausalMask.of(prompt_mask, length)
    split, dense = (with_gradients(heads, one, scale) for one in (mask, mask.dense()))
    torch.testing.assert_close(split, dense, rtol=0, atol=1e-12)


def test_heads_whose_values_have_another_size_take_the_mask():
    """DeepSeek: the fused kernel takes heads of one size alone."""
    (queries, keys, values), mask = random_heads(7, 5, torch.float64), PrefixCausalMask.of(torch.ones(3, 5), 7)
    heads = [queries, keys, values[..., :4]]
    for own, dense in zip(with_gradients(heads, mask), with_gradients(heads, mask.dense()), strict=True):
        assert torch.equal(own, dense)


def test_bfloat16_is_rounded_as_the_masked_attention_is():
    mask = PrefixCausalMask.of(torch.ones(3, 5), 40)
    exact = with_gradients(random_heads(40, 5, torch.float64), mask.dense())
    low = with_gradients(random_heads(40, 5, torch.bfloat16), mask)
    for split, one in zip(low, exact, strict=True):
        assert split.dtype == torch.bfloat16
        torch.testing.assert_close(split.double(), one, rtol=0.05, atol=0.05)


def states_of(model, prompt_ids, lengths, completions):
    """States of two completions of each prompt, and the gradient of a weighted sum of them."""
    model.zero_grad()
    prompts = encode_prompts(model, prompt_ids, lengths)
    leaves = prompts.leaves()
    states = completion_states(model, leaves, torch.tensor([0, 0, 1, 1]), completions)
    (states * torch.linspace(-1, 1, states.shape[1])[:, None]).sum().backward()
    prompts.backward(leaves)
    return states.detach(), torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


def test_a_model_computes_the_same_with_and_without_a_mask(monkeypatch):
    model = tiny_model(vocabulary=300).eval()
    torch.manual_seed(2)
    batch = (torch.randint(3, 300, (2, 9)), torch.tensor([9, 6]), torch.randint(3, 300, (4, 33)))
    masked = states_of(model, *batch)
    monkeypatch.setattr(prefix_attention, "LONG_COMPLETION", 32)
    split = states_of(model, *batch)
    assert not torch.equal(split[0], masked[0])  # the other way was taken
    torch.testing.assert_close(split[0], masked[0], rtol=0, atol=2e-5)
    torch.testing.assert_close(split[1], masked[1], rtol=1e-3, atol=1e-3 * float(masked[1].abs().max()))
    recompute_layers(model.base_model)
    again = states_of(model, *batch)
    assert all(torch.equal(one, other) for one, other in zip(again, split, strict=True))


def test_no_mask_is_stored_for_the_backward_pass():
    mask = PrefixCausalMask.of(torch.ones(3, 5), 64)
    sizes = {}
    for name, one in (("split", mask), ("dense", mask.dense())):
        sizes[name] = []
        with torch.autograd.graph.saved_tensors_hooks(lambda t, n=name: sizes[n].append(t.numel()) or t, lambda t: t):
            scaled_dot_product_attention(*random_heads(64, 5, torch.float32), attn_mask=one)
    assert max(sizes["dense"]) >= 3 * 64 * 69  # the mask
    assert max(sizes["split"]) == 3 * 2 * 69 * 8  # keys, values


def test_second_derivatives_are_those_of_the_masked_attention():
    mask, results = PrefixCausalMask.of(torch.ones(3, 5), 6), []
    for one in (mask, mask.dense()):
        heads = random_heads(6, 5, torch.float64)
        with sdpa_kernel(SDPBackend.MATH):
            output = scaled_dot_product_attention(*heads, attn_mask=one)
            (first,) = torch.autograd.grad(output.square().sum(), heads[:1], create_graph=True)
        results.append(torch.autograd.grad(first.square().sum(), heads))
    torch.testing.assert_close(*results)


def test_only_long_completions_of_models_with_full_attention_avoid_the_mask():
    model = tiny_model(vocabulary=300)
    assert avoids_mask(model.base_model, LONG_COMPLETION, CPU)
    assert not avoids_mask(model.base_model, LONG_COMPLETION - 1, CPU)
    assert not avoids_mask(model.base_model, LONG_COMPLETION, torch.device("cuda"))
    model.config.layer_types = ["full_attention", "sliding_attention"]
    assert not avoids_mask(model.base_model, LONG_COMPLETION, CPU)
    model.config.layer_types = None
    model.set_attn_implementation("eager")
    assert not avoids_mask(model.base_model, LONG_COMPLETION, CPU)


@pytest.mark.parametrize("is_emulated", [True, False])
def test_rows_are_not_packed_on_a_gpu_that_emulates_bfloat16(monkeypatch, is_emulated):
    """Flash attention has no kernel there."""
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda device: True)
    monkeypatch.setattr(
        torch.cuda, "is_bf16_supported", lambda including_emulation=True: including_emulation or not is_emulated
    )
    assert prefix_attention.packs_rows(torch.device("cuda")) == (not is_emulated)


@pytest.fixture
def packs():
    """Rows are packed here as on a GPU; returns the numbers of heads of the keys that the kernel gets."""
    with packed_rows() as heads:
        yield heads


@pytest.mark.parametrize("length", [1, 7])
@pytest.mark.parametrize("padding", [(0, 0, 0), (0, 2, 4)])
@pytest.mark.parametrize("scale", [None, 0.5])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_packed_rows_give_output_and_gradients_of_the_masked_attention(length, padding, scale, groups, packs):
    torch.manual_seed(0)
    shapes = [(3, 4, length, 8), (3, groups, 5 + length, 8), (3, groups, 5 + length, 8)]
    heads = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    mask = PrefixCausalMask.of(torch.arange(5) >= torch.tensor(padding)[:, None], length)
    module = SimpleNamespace(num_key_value_groups=4 // groups, is_causal=True)
    results = []
    for own in (mask, mask.dense()):
        output, _ = attend(module, *heads, own, scaling=scale)
        weights = torch.randn(output.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        results.append([output, *torch.autograd.grad((output * weights).sum(), heads)])
    torch.testing.assert_close(*results, rtol=0, atol=1e-12)
    assert packs == [groups]


@pytest.mark.parametrize("family", FAMILIES)
def test_completions_of_every_family_are_packed_or_masked_with_equal_states(family, packs, monkeypatch):
    model = family_model(family).eval()
    torch.manual_seed(2)
    batch = (torch.randint(3, 60, (2, 9)), torch.tensor([9, 6]), torch.randint(3, 60, (4, 12)))
    packed = states_of(model, *batch)
    config = model.config.get_text_config()
    if avoids_mask(model.base_model, 12, CPU) and family != "deepseek_v3":  # its keys and values differ in size
        assert packs == [getattr(config, "num_key_value_heads", None) or config.num_attention_heads] * len(packs) != []
    else:
        assert not packs
    with monkeypatch.context() as on_cpu:
        on_cpu.setattr(prefix_attention, "packs_rows", lambda device: False)
        masked = states_of(model, *batch)
    torch.testing.assert_close(packed[0], masked[0], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(packed[1], masked[1], rtol=1e-3, atol=1e-3 * float(masked[1].abs().max()))
