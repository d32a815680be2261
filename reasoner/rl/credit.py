"""Credit assignment: add advantages, and a critic's targets, to a batch of graded completions.

The algorithm's row chooses the parts; the parts are the pure functions of reasoner.rl.advantages.

Shapes: N rows, T completion positions.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from reasoner.config.schema import Config
from reasoner.rl.advantages import (
    SCALES,
    gae,
    has_zero_variance,
    outcome_advantages,
    process_advantages,
    reward_to_go,
    total_return,
)
from reasoner.rl.algorithms import Algorithm
from reasoner.rl.batch import Batch
from reasoner.rl.kl import KL


def with_advantages(batch: Batch, algorithm: Algorithm, cfg: Config, *, beta: float) -> Batch:
    """Return the batch with advantages and, if there is a critic, with the returns that are its targets.

    `beta` is the current coefficient of the KL term. Groups that are left out by their verdicts have advantages of 0,
    as those with equal rewards have by themselves.
    """
    sampled, order = (batch, None) if batch.is_observation is None else batch.sampled_first()
    sampled = _with_credit(sampled, algorithm, cfg, beta=beta)
    for name in ("advantages", "returns"):
        if (value := getattr(sampled, name)) is not None:
            back = value if order is None else torch.zeros_like(value).scatter(1, order, value)
            batch = replace(batch, **{name: back})
    if algorithm.filter_metric == "correct":
        is_filtered = _is_filtered(batch, algorithm, cfg.algo.group_size)[:, None]
        batch = replace(batch, advantages=batch.advantages.masked_fill(is_filtered, 0.0))
    if cfg.teacher.alone:
        batch = replace(batch, advantages=torch.zeros_like(batch.advantages))
    if batch.teacher_logprobs is None:
        return batch
    return replace(batch, advantages=batch.advantages + cfg.teacher.weight * teacher_advantages(batch))


def teacher_advantages(batch: Batch) -> Tensor:
    """[N, T]: log-probability of the teacher - of the policy, 0 in the padding: minus the sampled estimate of
    KL(policy || teacher) at each token, whose own next token alone it credits (Lu et al. 2025, "On-policy
    distillation").
    """
    assert batch.teacher_logprobs is not None, "a batch without a teacher"
    return (batch.teacher_logprobs - batch.policy_logprobs) * batch.mask


def _with_credit(batch: Batch, algorithm: Algorithm, cfg: Config, *, beta: float) -> Batch:
    """with_advantages before groups are left out by their verdicts."""
    if algorithm.returns == "process":
        assert batch.step_rewards is not None and batch.step_ends is not None, "process returns without steps"
        credit = process_advantages(
            batch.step_rewards,
            batch.step_ends,
            batch.mask,
            group=cfg.algo.group_size,
            step_credit=algorithm.step_credit,
        )
        return replace(batch, advantages=credit)
    rewards = token_rewards(batch, algorithm, beta=beta)
    if algorithm.critic:
        return _value_baseline_advantages(batch, rewards, algorithm, cfg)
    credit = outcome_advantages(
        rewards,
        batch.mask,
        group=cfg.algo.group_size,
        returns=algorithm.returns,
        baseline=algorithm.baseline,
        scale=algorithm.scale,
    )
    return replace(batch, advantages=credit)


def token_rewards(batch: Batch, algorithm: Algorithm, *, beta: float) -> Tensor:
    """[N, T]: the reward at the last token, and with algo.kl_in reward minus the KL penalty at every token."""
    rewards = torch.zeros_like(batch.sampler_logprobs)
    rewards.scatter_(1, (batch.lengths - 1).clamp_min(0)[:, None], batch.rewards[:, None])
    if algorithm.kl_in == "reward" and batch.ref_logprobs is not None:
        rewards = rewards - beta * KL[algorithm.kl](batch.policy_logprobs, batch.ref_logprobs) * batch.mask
    return rewards


def _value_baseline_advantages(batch: Batch, rewards: Tensor, algorithm: Algorithm, cfg: Config) -> Batch:
    """Return the batch with scaled advantages over the critic's values, and with the critic's targets."""
    assert batch.values is not None, "a critic without values"
    critic, mask = cfg.critic, batch.mask
    if algorithm.returns == "gae":
        credit, returns = gae(rewards, batch.values, mask, gamma=critic.gamma, lam=critic.lam)
    else:
        returns = reward_to_go(rewards, mask, gamma=critic.gamma).float() * mask
        credit = (returns - batch.values) * mask
    totals = total_return(rewards, mask)[:, 0]
    credit = SCALES[algorithm.scale](credit.double(), totals, mask, group=cfg.algo.group_size)
    return replace(batch, advantages=torch.where(mask, credit, 0.0).float(), returns=returns)


def kept_rows(batch: Batch, algorithm: Algorithm, group: int) -> Tensor:
    """Index of the rows whose group is not left out by the algorithm's filter_metric; of all rows if all are."""
    is_kept = ~_is_filtered(batch, algorithm, group)
    return (is_kept if is_kept.any() else torch.ones_like(is_kept)).nonzero()[:, 0]


def _is_filtered(batch: Batch, algorithm: Algorithm, group: int) -> Tensor:
    """[N] bool: RolloutGroup.is_filtered of the row's group."""
    return has_zero_variance(batch.rewards if algorithm.filter_metric == "reward" else batch.correct.float(), group)
