"""Scores of reward models as parts of the reward: weights, clipping, completions without an end."""

from dataclasses import replace
from math import nan

import pytest
import torch

from reasoner.config.learning import RewardConfig
from reasoner.rl.advantages import outcome_advantages
from reasoner.rl.batch import collate
from reasoner.rollouts.reward_models import apply_reward_models, mean_model_reward
from tests.fixtures.toys import group, random_groups


class Lengths:
    """Scores a completion by its number of tokens, plus a constant."""

    def __init__(self, constant=0.0):
        self.constant = constant

    def scores(self, groups):
        return [len(completion.token_ids) + self.constant for one in groups for completion in one.completions]


GROUPS = [group([5, 6], [[7], [8, 9], [7] * 3, [8] * 9], [1.0, 0.0, 1.0, 0.0])]


def with_cut(place):
    """The group with the completion at this place cut off."""
    completions = list(GROUPS[0].completions)
    completions[place] = replace(completions[place], finish="length")
    return replace(GROUPS[0], completions=tuple(completions))


def rewards(groups):
    return [[score.reward for score in one.scores] for one in groups]


def test_clipped_scores_are_parts_and_their_weighted_sum_is_added_to_the_reward():
    cfg = RewardConfig(model="rm=0.5,low=2", clip=4.0)
    both = apply_reward_models(GROUPS, {"rm": Lengths(), "low": Lengths(-9)}, cfg)
    assert [score.parts["model:rm"] for score in both[0].scores] == [1, 2, 3, 4]
    assert [score.parts["model:low"] for score in both[0].scores] == [-4, -4, -4, 0]
    assert rewards(both) == [[1 + 0.5 - 8, 1 - 8, 1 + 1.5 - 8, 2]]
    assert all(score.parts["correct"] in (0, 1) for score in both[0].scores)
    assert mean_model_reward(both, "rm=0.5,low=2") == pytest.approx((0.5 + 1 + 1.5 + 2 - 8 - 8 - 8) / 4)


def test_score_of_a_wrong_completion_counts_nothing_where_only_correct_ones_count():
    cut = with_cut(2)
    (scored,) = apply_reward_models([cut], {"rm": Lengths()}, RewardConfig(model="rm=0.5", model_on="correct"))
    assert [score.correct for score in scored.scores] == [True, False, True, False]
    assert [score.parts["model:rm"] for score in scored.scores] == [1, 0, -1, 0]
    assert rewards([scored]) == [[1.5, 0.0, 0.5, 0.0]]


def test_completion_without_its_end_gets_missing_end_in_place_of_its_score():
    cut = with_cut(0)
    (scored,) = apply_reward_models([cut], {"rm": Lengths()}, RewardConfig(model="rm=0.5", missing_end=-2.0))
    assert [score.parts["model:rm"] for score in scored.scores] == [-2, 2, 3, 5]
    assert rewards([scored]) == [[0.0, 1.0, 2.5, 2.5]]


def test_score_that_is_not_a_number_is_refused_by_the_models_name():
    with pytest.raises(ValueError, match=r"'rm' .* finite"):
        apply_reward_models(GROUPS, {"rm": Lengths(nan)}, RewardConfig(model="rm"))


def credit(groups, **parts):
    batch = collate(groups)
    token_rewards = torch.zeros(batch.mask.shape).scatter_(1, batch.lengths[:, None] - 1, batch.rewards[:, None])
    return outcome_advantages(token_rewards, batch.mask, group=4, **parts)


@pytest.mark.parametrize("parts", [{}, {"scale": "none"}, {"baseline": "leave_one_out", "scale": "none"}])
def test_constant_added_to_all_scores_leaves_advantages_of_a_group_baseline(parts):
    """GRPO, Dr. GRPO, RLOO."""
    groups, cfg = random_groups(8), RewardConfig(model="rm", clip=100.0)
    plain, moved = (credit(apply_reward_models(groups, {"rm": Lengths(c)}, cfg), **parts) for c in (0.0, 3.0))
    assert plain.abs().max() > 0.5
    assert torch.allclose(plain, moved, atol=1e-6)


def test_constant_scores_give_advantages_of_exactly_zero():
    flat = [replace(one, scores=tuple(replace(score, reward=0.0) for score in one.scores)) for one in random_groups(8)]

    class Constant:
        def scores(self, groups):
            return [0.7] * sum(len(one.completions) for one in groups)

    assert (credit(apply_reward_models(flat, {"rm": Constant()}, RewardConfig(model="rm"))) == 0).all()
