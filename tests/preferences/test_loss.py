"""The Bradley-Terry loss: by hand, K-wise against pair by pair, and of labels that say nothing."""

from itertools import combinations
from math import exp, log

import pytest
import torch
from torch import Tensor

from reasoner.preferences.loss import Pairs, bradley_terry_loss, loss_and_score_gradients, share_in_order


def pairs_of(*groups: list[tuple[int, int]], margin: float = 0.0) -> Pairs:
    """Pairs (chosen, rejected) by prompt."""
    flat = [pair for group in groups for pair in group]
    weights = [1 / len(groups) / len(group) for group in groups for _ in group]
    return Pairs(
        torch.tensor([chosen for chosen, _ in flat]),
        torch.tensor([rejected for _, rejected in flat]),
        torch.full((len(flat),), margin, dtype=torch.float64),
        torch.tensor(weights, dtype=torch.float64),
    )


@pytest.mark.parametrize(
    ("chosen", "rejected", "margin", "center", "expected"),
    [
        (0.0, 0.0, 0.0, 0.0, log(2)),
        (1.0, 0.0, 0.0, 0.0, log(1 + exp(-1))),
        (0.0, 2.0, 0.0, 0.0, log(1 + exp(2))),
        (1.0, 0.0, 1.0, 0.0, log(2)),  # the margin takes all of the difference
        (1.0, 2.0, 0.0, 0.1, log(1 + exp(1)) + 0.9),
    ],
)
def test_loss_of_a_pair_is_the_formula(
    chosen: float, rejected: float, margin: float, center: float, expected: float
) -> None:
    loss = bradley_terry_loss(torch.tensor([chosen, rejected]), pairs_of([(0, 1)], margin=margin), center=center)
    assert float(loss) == pytest.approx(expected, abs=1e-12)


def test_loss_of_equal_scores_is_exactly_ln_2() -> None:
    pairs = pairs_of([(0, 1), (2, 0), (1, 2)], [(3, 4)], [(5, 6), (6, 7)])
    assert float(bradley_terry_loss(torch.zeros(8), pairs)) == pytest.approx(log(2), abs=1e-15)


def test_k_wise_loss_is_the_mean_over_prompts_of_the_mean_over_pairs() -> None:
    scores = torch.randn(9, generator=torch.Generator().manual_seed(1))
    groups = [list(combinations(range(4), 2)), list(combinations(range(4, 9), 2))]
    one_by_one = [[float(bradley_terry_loss(scores, pairs_of([pair]))) for pair in group] for group in groups]
    expected = sum(sum(losses) / len(losses) for losses in one_by_one) / 2
    assert float(bradley_terry_loss(scores, pairs_of(*groups))) == pytest.approx(expected, abs=1e-12)


def test_score_gradients_sum_to_zero_and_raise_the_chosen() -> None:
    scores = torch.tensor([0.3, -0.2, 1.0, 0.5])
    _, gradients = loss_and_score_gradients(scores, pairs_of([(0, 1)], [(2, 3)]))
    assert gradients.sum().item() == pytest.approx(0, abs=1e-7)
    assert (gradients[[0, 2]] < 0).all() and (gradients[[1, 3]] > 0).all()


def optimum(labels: Tensor, steps: int = 500) -> tuple[Tensor, Pairs]:
    """Scores that minimise the loss of all pairs of `len(labels)` completions, labels[i, j] being true for i over j."""
    size = len(labels)
    order = [(i, j) if labels[i, j] else (j, i) for i, j in combinations(range(size), 2)]
    pairs, scores = pairs_of(order), torch.zeros(size)
    for _ in range(steps):
        scores = scores - 5.0 * loss_and_score_gradients(scores, pairs)[1]
    return scores, pairs


def test_labels_in_order_are_learnt() -> None:
    scores, pairs = optimum(torch.ones(6, 6, dtype=torch.bool).triu())
    assert share_in_order(scores, pairs) == 1.0
    assert scores.argsort(descending=True).tolist() == list(range(6))
