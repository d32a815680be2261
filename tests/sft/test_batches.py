"""Batches of examples: their gradient is that of transformers' own loss, however they are split."""

import pytest
import torch
from torch import Tensor
from transformers import PreTrainedModel

from reasoner.distributed.world import World
from reasoner.models.sharding import DistributedModel
from reasoner.rl.passes import ModelPasses, own_rows
from reasoner.sft.batches import (
    Likelihood,
    backward_likelihood,
    batch_likelihood,
    collate_examples,
    num_steps,
    rows_of_step,
)
from reasoner.sft.examples import Example
from tests.fixtures.tiny import tiny_model

# Shared prompts, prompts of several lengths, and a completion of one token.
EXAMPLES = [
    Example((5, 6, 7), (8, 9, 10, 11)), Example((5, 6, 7), (12,)), Example((20,), (21, 22)),
    Example((5, 6, 7), (13, 14)), Example((30, 31, 32, 33, 34), (35, 36, 37, 38, 39, 40)),
]  # fmt: skip


def gradient(model: PreTrainedModel) -> Tensor:
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


def peer_loss(model: PreTrainedModel, examples: list[Example]) -> Tensor:
    """transformers' own loss: labels of -100 on prompts and padding, the mean over all other tokens."""
    width = max(example.num_tokens for example in examples)
    ids, labels = torch.ones(len(examples), width).long(), torch.full((len(examples), width), -100)
    mask = torch.zeros(len(examples), width).long()
    for row, example in enumerate(examples):
        whole, begin = [*example.prompt_ids, *example.completion_ids], len(example.prompt_ids)
        ids[row, : len(whole)] = torch.tensor(whole)
        labels[row, begin : len(whole)] = ids[row, begin : len(whole)]
        mask[row, : len(whole)] = 1
    loss: Tensor = model(input_ids=ids, attention_mask=mask, labels=labels).loss
    return loss


@pytest.mark.parametrize("micro_batch_tokens", [1, 6, 1000])
def test_the_gradient_is_that_of_transformers_loss_for_any_micro_batch(micro_batch_tokens: int) -> None:
    model = tiny_model(vocabulary=64).double()
    loss = peer_loss(model, EXAMPLES)
    loss.backward()  # type: ignore[no-untyped-call]
    expected = gradient(model)
    model.zero_grad()
    passes = ModelPasses(DistributedModel(model), "float32", micro_batch_tokens, 1.0)
    likelihood = backward_likelihood(passes, collate_examples(EXAMPLES))
    assert float((gradient(model) - expected).norm() / expected.norm()) < 1e-6
    assert likelihood.loss == pytest.approx(loss.item(), rel=1e-6)
    assert likelihood.tokens == sum(len(example.completion_ids) for example in EXAMPLES)


def test_a_batch_without_gradient_has_the_same_likelihood_and_a_row_without_tokens_adds_nothing() -> None:
    """With sharded weights a rank whose rows are done runs such rows until the others are."""
    passes = ModelPasses(DistributedModel(tiny_model(vocabulary=64)), "float32", 6, 1.0)
    batch = collate_examples(EXAMPLES)
    trained, measured = backward_likelihood(passes, batch), batch_likelihood(passes, batch)
    assert measured.loss == pytest.approx(trained.loss, rel=1e-6)
    assert 0 < measured.mean_entropy < 64
    assert batch_likelihood(passes, batch.empty_row()) == Likelihood()


def test_examples_with_the_same_prompt_share_it() -> None:
    batch = collate_examples(EXAMPLES)
    assert batch.prompt_ids.shape == (3, 5)
    assert batch.prompt_of.tolist() == [0, 0, 1, 0, 2]
    assert batch.weights.sum() == pytest.approx(1.0)


def test_every_rank_computes_texts_that_begin_with_the_same_token() -> None:
    batch = collate_examples([Example((1,), (7, 8)) for _ in range(4)])
    own = [own_rows(batch, batch.row_index, World(rank, 2)).tolist() for rank in range(2)]
    assert own == [[0, 2], [1, 3]]


def all_examples(*, rows: int, epochs: int, seed: int) -> list[Example]:
    steps = range(num_steps(len(EXAMPLES), rows=rows, epochs=epochs))
    return [one for step in steps for one in rows_of_step(EXAMPLES, step, num=rows, epochs=epochs, seed=seed)]


@pytest.mark.parametrize(("rows", "epochs", "steps"), [(1, 1, 5), (2, 1, 3), (2, 3, 8), (64, 2, 2)])
def test_every_example_comes_once_in_an_epoch_in_an_order_of_the_seed(rows: int, epochs: int, steps: int) -> None:
    assert num_steps(len(EXAMPLES), rows=rows, epochs=epochs) == steps
    order = all_examples(rows=rows, epochs=epochs, seed=0)
    assert sorted(order, key=repr) == sorted(epochs * EXAMPLES, key=repr)
    assert order != all_examples(rows=rows, epochs=epochs, seed=1)


def test_token_accuracy_is_the_share_of_tokens_with_the_largest_logit() -> None:
    model = tiny_model(vocabulary=64)
    likelihood = batch_likelihood(ModelPasses(DistributedModel(model), "float32", 6, 1.0), collate_examples(EXAMPLES))
    hits = 0
    for example in EXAMPLES:
        ids = torch.tensor([[*example.prompt_ids, *example.completion_ids]])
        logits = model(input_ids=ids).logits[0, len(example.prompt_ids) - 1 : -1]
        hits += int((logits.argmax(dim=1) == torch.tensor(example.completion_ids)).sum())
    assert likelihood.likeliest == hits
