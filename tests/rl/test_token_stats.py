"""Values of every token: they add up to the step's metrics, in whatever order the rows were computed."""

import math
from dataclasses import replace

import pytest
import torch

from reasoner.rl.batch import collate
from reasoner.rl.token_stats import TokenStats
from reasoner.trainer.train import train_step
from tests.fixtures.tiny import tiny_model
from tests.fixtures.toys import config, group, make_trainer, random_groups, take_step


def update(cfg, groups, *, reference=None):
    trainer = make_trainer(cfg, reference=reference)
    batch = collate(groups)
    token_stats = TokenStats(keeps_tokens=True)
    return (
        batch,
        train_step(trainer, trainer.compute_advantages(trainer.compute_logprobs(batch)), token_stats),
        token_stats.tokens,
    )


@pytest.mark.parametrize("how", ["token", "sequence", "constant"])
def test_token_values_sum_to_loss_and_average_to_kl_and_entropy(how):
    reference = tiny_model(vocabulary=60, width=32, layers=2, seed=5).requires_grad_(False)
    groups = random_groups()
    batch, figures, tokens = update(config(loss_aggregation=how, beta=0.1, micro=20), groups, reference=reference)
    assert sorted(tokens) == list(range(len(batch)))
    assert all(set(own) == {"entropy", "kl", "loss"} for own in tokens.values())
    assert [len(tokens[row]["entropy"]) for row in range(len(batch))] == batch.lengths.tolist()

    def values(name):
        return [value for own in tokens.values() for value in own[name]]

    assert sum(values("loss")) == pytest.approx(figures["loss"], abs=1e-6)
    for name in ("kl", "entropy"):
        assert sum(values(name)) / len(values(name)) == pytest.approx(figures[name], rel=1e-4)


@pytest.mark.parametrize(
    "algo",
    [
        {"beta": 0.05, "epochs": 2, "minibatches": 3, "mask_truncated_completions": True},
        {"name": "dapo", "minibatches": 2, "importance_sampling": "token"},
        {"name": "ppo", "epochs": 2, "minibatches": 2},
    ],
    ids=["grpo", "dapo", "ppo"],
)
def test_metrics_do_not_depend_on_micro_batches(algo):  # trap 43
    groups = [group([5, 6], [[7, 8], [9], [4, 4, 5], [6]], [1.0] * 4), *random_groups()]
    cut = replace(groups[1].completions[0], finish="length")
    groups[1] = replace(groups[1], completions=(cut, *groups[1].completions[1:]))
    reference = tiny_model(vocabulary=60, width=32, layers=2, seed=5).requires_grad_(False) if "beta" in algo else None
    parts, whole = (
        update(config(micro=size, lr=1e-2, **algo), groups, reference=reference)[1] for size in (13, 10_000)
    )
    assert parts == pytest.approx(whole, rel=2e-3, abs=1e-5)


def test_rows_without_gradient_have_no_token_values():
    flat, mixed = group([5, 6], [[7, 8], [9]], [1.0, 1.0]), group([5, 6], [[7, 8], [9]], [0.0, 1.0])
    _, _, tokens = update(config(group_size=2), [flat, mixed])
    assert sorted(tokens) == [2, 3]


def test_dropped_group_does_not_shift_row_indices():
    flat, mixed = group([5, 6], [[7, 8], [9]], [1.0, 1.0]), group([5, 6], [[7, 8, 4], [9]], [0.0, 1.0])
    _, _, tokens = update(config(name="dapo", group_size=2), [flat, mixed])
    assert {row: len(own["entropy"]) for row, own in tokens.items()} == {2: 3, 3: 1}


def test_token_values_are_from_first_epoch():
    groups = random_groups()
    _, _, once = update(config(lr=1e-2), groups)
    _, _, twice = update(config(lr=1e-2, epochs=2), groups)
    assert all(torch.allclose(torch.tensor(once[r]["entropy"]), torch.tensor(twice[r]["entropy"])) for r in once)


def test_a_difference_that_is_not_a_number_is_the_largest():
    token_stats = TokenStats()
    for gap in (0.1, math.nan, 0.2):
        token_stats.add({"tokens": torch.tensor(1.0)}, gap_max=torch.tensor(gap))
    assert math.isnan(token_stats.gap_max)


def test_tally_keeps_no_token_values_by_default():
    trainer = make_trainer(config())
    token_stats = TokenStats()
    take_step(trainer, random_groups(), token_stats)
    assert token_stats.tokens == {} and token_stats.sums["tokens"] > 0
