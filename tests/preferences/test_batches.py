"""Batches of comparisons: their gradient is that of the plain loss, however they are split."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid
from transformers import PreTrainedModel

from reasoner.preferences.dataset import Comparison
from reasoner.preferences.loss import backward_preferences, collate_comparisons
from reasoner.preferences.reward_model import new_reward_model
from reasoner.rl.passes import RewardModelPasses
from reasoner.sft.batches import num_steps, rows_of_step
from tests.fixtures.tiny import tiny_tokenizer
from tests.preferences.comparisons import COMPARISONS, spread_head

CPU = torch.device("cpu")


def reward_model(tiny_folder: Path, *, is_spread: bool = True) -> PreTrainedModel:
    model = new_reward_model(tiny_folder, tiny_tokenizer(), device=CPU).double()
    if is_spread:
        spread_head(model)
    return model


def plain_loss(model: PreTrainedModel, *, center: float = 0.0) -> Tensor:
    """Pair by pair, every completion through the whole model: the definition."""
    losses = []
    for one in COMPARISONS:
        scores = [
            model.score(
                model.base_model(input_ids=torch.tensor([[*one.prompt_ids, *c.token_ids]])).last_hidden_state[0, -1]
            )[0]
            for c in one.completions
        ]
        own = [
            -logsigmoid(scores[p.chosen] - scores[p.rejected]) + center * (scores[p.chosen] + scores[p.rejected]) ** 2
            for p in one.pairs
        ]
        losses.append(torch.stack(own).mean())
    return torch.stack(losses).mean()


def gradient(model: PreTrainedModel) -> Tensor:
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


@pytest.mark.parametrize("center", [0.0, 0.01])
@pytest.mark.parametrize("micro_batch_tokens", [1, 7, 1000])
def test_the_gradient_is_that_of_the_plain_loss_for_any_micro_batch(
    tiny_folder: Path, micro_batch_tokens: int, center: float
) -> None:
    model = reward_model(tiny_folder)
    loss = plain_loss(model, center=center)
    loss.backward()  # type: ignore[no-untyped-call]
    expected = gradient(model)
    model.zero_grad()
    passes = RewardModelPasses(model, "float32", micro_batch_tokens)
    computed, _ = backward_preferences(passes, *collate_comparisons(COMPARISONS), center=center)
    assert float((gradient(model) - expected).norm() / expected.norm()) < 1e-6
    assert computed == pytest.approx(loss.item(), rel=1e-6)


def test_the_first_gradient_is_that_of_the_head_alone(tiny_folder: Path) -> None:
    model = reward_model(tiny_folder, is_spread=False)
    backward_preferences(RewardModelPasses(model), *collate_comparisons(COMPARISONS))
    norms = {name: float(p.grad.norm()) for name, p in model.named_parameters() if p.grad is not None}
    assert norms.pop("score.weight") > 0 and not any(norms.values())


def of_step(comparisons: list[Comparison], step: int, prompts: int, seed: int, epochs: int = 1) -> list[Comparison]:
    return rows_of_step(comparisons, step, num=prompts, epochs=epochs, seed=seed)


@pytest.mark.parametrize(
    ("number", "prompts", "epochs", "steps"), [(5, 8, 3, 3), (15, 8, 1, 2), (15, 8, 2, 4), (16, 8, 2, 4), (1, 8, 1, 1)]
)
def test_steps_cover_every_comparison_once_an_epoch(number: int, prompts: int, epochs: int, steps: int) -> None:
    assert num_steps(number, rows=prompts, epochs=epochs) == steps
    own = [replace(COMPARISONS[0], problem_id=str(place)) for place in range(number)]
    rows = [one for step in range(steps) for one in of_step(own, step, prompts, 0, epochs)]
    assert [rows.count(one) for one in own] == [epochs] * number
