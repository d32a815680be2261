"""Credit assignment: add advantages, and a critic's targets, to a batch of graded completions.

The algorithm's row chooses the parts; the parts are the pure functions of reasoner.rl.advantages.

Shapes: N rows, T completion positions.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from reasoner.config.schema import Config
from reasoner.rl.advantages import (
    SCALES,
    gae,
    has_zero_variance,
    in_deviations,
    outcome_advantages,
    process_advantages,
    reward_to_go,
    total_return,
)
from reasoner.rl.algorithms import Algorithm
from reasoner.rl.batch import Batch
from reasoner.rl.kl import KL


def with_advantages(batch: Batch, algorithm: Algorithm, cfg: Config, *, beta: float, moving_reward: float) -> Batch:
    """Return the batch with advantages and, if there is a critic, with the returns that are its targets.

    `beta` is the current coefficient of the KL term, `moving_reward` the moving average of earlier steps' rewards.
    """
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
    rewards = token_rewards(batch, algorithm, cfg, beta=beta)
    if algorithm.critic:
        return _value_baseline_advantages(batch, rewards, algorithm, cfg)
    credit = outcome_advantages(
        rewards,
        batch.mask,
        group=cfg.algo.group_size,
        returns=algorithm.returns,
        baseline=algorithm.baseline,
        scale=algorithm.scale,
        moving=moving_reward,
    )
    return replace(batch, advantages=credit)


def token_rewards(batch: Batch, algorithm: Algorithm, cfg: Config, *, beta: float) -> Tensor:
    """[N, T]: the reward at the last token, and with algo.kl_in reward minus the KL penalty at every token."""
    rewards = torch.zeros_like(batch.sampler_logprobs)
    rewards.scatter_(1, (batch.lengths - 1).clamp_min(0)[:, None], batch.rewards[:, None])
    if algorithm.kl_in == "reward" and batch.ref_logprobs is not None:
        rewards = rewards - beta * KL[algorithm.kl](batch.policy_logprobs, batch.ref_logprobs) * batch.mask
    if algorithm.critic and cfg.critic.whiten_rewards:
        rewards = in_deviations(rewards, batch.mask).float()
    return rewards


def _value_baseline_advantages(batch: Batch, rewards: Tensor, algorithm: Algorithm, cfg: Config) -> Batch:
    """Return the batch with scaled advantages over the critic's values, and with the critic's targets."""
    assert batch.values is not None, "a critic without values"
    critic, mask = cfg.critic, batch.mask
    if algorithm.returns == "gae":
        bootstrapped = batch.missing_eos if critic.bootstrap_truncated else None
        estimate = partial(gae, rewards, batch.values, mask, gamma=critic.gamma, bootstrapped=bootstrapped)
        credit, returns = estimate(lam=critic.lam)
        if critic.lam_actor is not None:
            credit, _ = estimate(lam=critic.lam_actor)
    else:
        returns = reward_to_go(rewards, mask, gamma=critic.gamma).float() * mask
        credit = (returns - batch.values[:, :-1]) * mask
    totals = total_return(rewards, mask)[:, 0]
    credit = SCALES[algorithm.scale](credit.double(), totals, mask, group=cfg.algo.group_size)
    return replace(batch, advantages=torch.where(mask, credit, 0.0).float(), returns=returns)


def rows_with_variance(batch: Batch, group: int) -> Tensor:
    """Index of the rows whose group has unequal rewards; of all rows if there is no such group."""
    has_variance = ~has_zero_variance(batch.rewards, group)
    return (has_variance if has_variance.any() else torch.ones_like(has_variance)).nonzero()[:, 0]
