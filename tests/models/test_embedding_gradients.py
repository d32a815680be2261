"""Gradients of large embeddings, added in place: autograd's gradient without a tensor of the weight's size."""

from dataclasses import replace
from functools import partial

import pytest
import torch
from torch import nn

from reasoner.models import embedding_gradients, loading
from reasoner.models.embedding_gradients import accumulate_embedding_gradients
from reasoner.models.fused_lm_head import selective_log_softmax
from reasoner.models.output_layer import OutputLayer
from tests.fixtures.tiny import tiny_llama
from tests.fixtures.toys import config, make_trainer, random_groups, take_step

PADDING = 7  # a token id whose row of the input embedding gets no gradient
llama = partial(tiny_llama, pad_token_id=PADDING)


@pytest.fixture(autouse=True)
def _tiles_always(monkeypatch):
    monkeypatch.setattr(loading, "MAX_LOGITS", 0)


def gradients(monkeypatch, *, tied, in_place, micro, dtype="float32", **algo):
    """The gradients of the first update's loss, by name; the batch has several prompts and micro-batches."""
    monkeypatch.setattr(embedding_gradients, "MIN_VALUES", 0 if in_place else 10**9)
    cfg = config(micro=micro, **algo)
    trainer = make_trainer(replace(cfg, optim=replace(cfg.optim, dtype=dtype)), llama(tie_word_embeddings=tied))
    captured = {}

    def capture(_):
        captured.update({name: p.grad.clone() for name, p in trainer.model.named_parameters()})
        return 1.0

    monkeypatch.setattr(trainer, "apply_gradient", capture)
    take_step(trainer, random_groups())
    return captured


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_gradient_of_one_micro_batch_equals_autograds_to_the_bit(monkeypatch, tied, dtype):
    plain, added = (gradients(monkeypatch, tied=tied, in_place=way, micro=10_000, dtype=dtype) for way in (False, True))
    assert plain.keys() == added.keys() and plain
    for name, gradient in plain.items():
        assert torch.equal(added[name], gradient), name
    assert plain["model.embed_tokens.weight"].abs().sum() > 0


@pytest.mark.parametrize("micro", [1, 12, 40])
@pytest.mark.parametrize("settings", [{}, {"entropy_coef": 0.01}])
def test_gradient_equals_autograds_for_any_micro_batch(monkeypatch, micro, settings):
    plain, added = (gradients(monkeypatch, tied=True, in_place=way, micro=micro, **settings) for way in (False, True))
    for name, gradient in plain.items():
        torch.testing.assert_close(added[name], gradient, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("tied", [True, False])
def test_no_tensor_of_a_weight_s_size_is_returned_to_autograd(monkeypatch, tied):
    monkeypatch.setattr(embedding_gradients, "MIN_VALUES", 0)
    model = llama(tie_word_embeddings=tied)
    head, embedding = model.get_output_embeddings(), model.get_input_embeddings()
    layer = OutputLayer.of(model)
    seen = []  # what autograd adds to the leaves
    for weight in {head.weight, embedding.weight}:
        weight.register_hook(lambda gradient: None if gradient is None else seen.append(gradient))

    def backward():
        ids = torch.tensor([3, 4, 5])
        logprobs, _ = selective_log_softmax(layer, embedding(ids), ids, temperature=1.0, learns_entropy=False)
        logprobs.sum().backward()

    with accumulate_embedding_gradients(model):
        backward()
    assert not seen and head.weight.grad is not None and embedding.weight.grad is not None
    backward()
    assert len(seen) == (1 if tied else 2)


def test_outside_of_the_block_nothing_is_changed(monkeypatch):
    monkeypatch.setattr(embedding_gradients, "MIN_VALUES", 0)
    model = llama(tie_word_embeddings=True)
    embedding = model.get_input_embeddings()
    with pytest.raises(RuntimeError, match="stopped"), accumulate_embedding_gradients(model):
        assert embedding_gradients.accumulates_gradient(embedding.weight)
        raise RuntimeError("stopped")
    assert not embedding_gradients.accumulates_gradient(embedding.weight) and "forward" not in vars(embedding)
    (gradient,) = torch.autograd.grad(embedding(torch.tensor([3])).sum(), [embedding.weight])
    assert gradient[3].eq(1).all() and embedding.weight.grad is None


@pytest.mark.parametrize("kind", ["frozen", "small", "other type"])
def test_frozen_small_and_other_embeddings_are_left_to_autograd(monkeypatch, kind):
    monkeypatch.setattr(embedding_gradients, "MIN_VALUES", 10**6 if kind == "small" else 0)
    model = llama(tie_word_embeddings=True).requires_grad_(kind != "frozen")
    if kind == "other type":
        scaled = type("ScaledEmbedding", (nn.Embedding,), {})(60, 32)
        scaled.weight = model.get_input_embeddings().weight
        model.set_input_embeddings(scaled)
    with accumulate_embedding_gradients(model):
        assert "forward" not in vars(model.get_input_embeddings())
        is_marked = embedding_gradients.accumulates_gradient(model.get_output_embeddings().weight)
        assert is_marked is (kind == "other type")  # the output layer is a plain one
