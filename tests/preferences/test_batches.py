"""Batches of comparisons: their gradient is that of the plain loss, however they are split."""

from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid
from transformers import PreTrainedModel

from reasoner.models.reward_model import new_reward_model
from reasoner.preferences.loss import backward_preferences, collate_comparisons
from reasoner.rl.passes import RewardModelPasses
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
