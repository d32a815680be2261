"""Batches, micro-batches, minibatches, the ranks of prompts, and the learning rate of a step."""

import math
import random
from dataclasses import replace

import pytest
import torch

from reasoner.rl.batch import collate
from reasoner.rl.losses import token_weights
from reasoner.rl.passes import owners
from reasoner.rl.token_stats import TokenStats
from reasoner.trainer.schedule import minibatches
from reasoner.trainer.train import train_step
from tests.fixtures.toys import G, config, group, make_trainer, random_groups, take_step


def test_collate_keeps_order_of_tokens_and_rewards():
    batch = collate([group([3, 4, 5], [[6], [7, 8]], [0.5, 1]), group([9], [[10, 11, 12], [13]], [0, 2])])
    assert batch.prompt_ids.tolist() == [[3, 4, 5], [0, 0, 9]]
    assert batch.prompt_of.tolist() == [0, 0, 1, 1]
    assert batch.completion_ids.tolist() == [[6, 0, 0], [7, 8, 0], [10, 11, 12], [13, 0, 0]]
    assert batch.rewards.view(2, 2).tolist() == [[0.5, 1], [0, 2]]
    assert batch.sampler_logprobs.tolist() == [[-1, 0, 0], [-1, -1, 0], [-1, -1, -1], [-1, 0, 0]]


@pytest.mark.parametrize("tokens", [1, 7, 12, 30, 10_000])
def test_micro_batches_cover_each_row_once_within_token_budget(tokens):
    batch = collate(random_groups())
    index = torch.tensor([0, 1, 2, 9, 10, 17, 19])
    rows_seen = []
    for outer, block in batch.prompt_blocks(tokens, index):
        assert len(block.prompt_ids) == 1 or block.prompt_ids.numel() <= tokens
        for inner, rows in block.micro_batches(tokens):
            assert len(rows) == 1 or rows.completion_ids.numel() <= tokens
            for row, i in enumerate(outer[inner].tolist()):
                rows_seen.append(i)
                assert unpadded(rows, row) == unpadded(batch, i)
    assert sorted(rows_seen) == index.tolist()


def unpadded(batch, row):
    prompt = int(batch.prompt_of[row])
    return (
        batch.prompt_ids[prompt].tolist()[-int(batch.prompt_lengths[prompt]) :],
        batch.completion_ids[row, : int(batch.lengths[row])].tolist(),
    )


def test_empty_completion_has_finite_gradient():
    groups = [group([5, 6], [[], [7], [8, 9], []], [0, 1, 0, 0])]
    for tokens in (1, 100):
        trainer = make_trainer(config(micro=tokens))
        assert math.isfinite(take_step(trainer, groups)["grad_norm"])


@pytest.mark.parametrize("how", ["token", "sequence", "constant"])
def test_mask_truncated_excludes_rows_from_loss_and_denominator(how):  # trap 15
    batch = collate(random_groups())
    cut = torch.arange(len(batch)) % 3 == 1
    trainer = make_trainer(config(loss_aggregation=how, mask_truncated_completions=True))
    masked = trainer.compute_advantages(trainer.compute_logprobs(replace(batch, missing_eos=cut)))
    assert torch.equal(
        masked.advantages, trainer.compute_advantages(trainer.compute_logprobs(batch)).advantages
    )  # they stay in the baseline
    weights = trainer.policy_loss.weights(masked)
    remaining = masked.rows((~cut).nonzero()[:, 0])
    assert (weights[cut] == 0).all()
    width = remaining.mask.shape[1]
    assert torch.allclose(weights[~cut][:, :width], token_weights(remaining.mask, how, max_tokens=16))


@pytest.mark.parametrize("others", [{}, {"entropy_coef": 0.1}])
def test_masked_truncated_completions_take_no_pass_of_the_update(others):
    trainer = make_trainer(config(mask_truncated_completions=True, **others))
    batch, stats = collate([group([5, 6], [[7, 8], [9], [10, 11], [13]], [1, 0, 1, 0])]), TokenStats(keeps_tokens=True)
    take_step(trainer, replace(batch, missing_eos=torch.tensor([False, False, True, True])), stats)
    assert sorted(stats.tokens) == [0, 1]


def test_collate_refuses_empty_batch():
    with pytest.raises(ValueError, match="every group"):
        collate([])


def test_minibatches_hold_whole_groups_in_order_of_epoch():
    batch = collate(random_groups(7))
    first, again, other = (
        [part.row_index.tolist() for part in minibatches(batch, 3, config(), step=0, epoch=epoch)]
        for epoch in (0, 0, 1)
    )
    assert len(first) == 3
    assert first == again != other
    assert sorted(i for part in first for i in part) == list(range(7 * G))
    assert all(part[k : k + G] == list(range(part[k], part[k] + G)) for part in first for k in range(0, len(part), G))


@pytest.mark.parametrize(
    ("steps", "changes", "rates"),
    [
        (1000, {"warmup_steps": 4}, [0.0025, 0.005, 0.0075, 0.01, 0.01, 0.01]),
        (6, {"decay_share": 0.5}, [0.01, 0.01, 0.01, 0.01, 0.02 / 3, 0.01 / 3]),
    ],
)
def test_learning_rate_warms_up_and_decays_linearly_and_is_reported(steps, changes, rates):
    cfg = replace(config(lr=0.01), steps=steps)
    trainer = make_trainer(replace(cfg, optim=replace(cfg.optim, **changes)))
    for rate in rates:
        metrics = train_step(trainer, trainer.compute_advantages(trainer.prepare_batch(random_groups())))
        assert metrics["lr"] == trainer.optimizer.param_groups[0]["lr"] == pytest.approx(rate)


def test_loads_differ_by_at_most_the_largest_item():
    draw = random.Random(3)
    for _ in range(200):
        sizes = [draw.randrange(1, 1000) for _ in range(draw.randrange(1, 40))]
        num_ranks = draw.randrange(1, 9)
        place = owners(sizes, num_ranks)
        loads = [sum(size for size, rank in zip(sizes, place, strict=True) if rank == own) for own in range(num_ranks)]
        assert max(loads) - min(loads) <= max(sizes)
