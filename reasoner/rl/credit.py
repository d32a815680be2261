"""Credit assignment: a batch of graded completions in, the same batch with advantages (and a critic's targets) out.

Which parts make the advantages is the algorithm's row; the parts are the pure functions of reasoner.rl.advantages.

Shapes: N rows, T completion positions.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from reasoner.config.schema import Config
from reasoner.rl.advantages import (
    SCALES,
    advantages,
    gae,
    has_zero_variance,
    in_deviations,
    process_advantages,
    reward_to_go,
    total_return,
)
from reasoner.rl.algorithms import Algorithm
from reasoner.rl.batch import Batch
from reasoner.rl.kl import KL


def with_advantages(batch: Batch, algorithm: Algorithm, cfg: Config, *, beta: float, moving_reward: float) -> Batch:
    """The batch with advantages, and where there is a critic with the returns that it learns.

    `beta` is the coefficient of the KL term now, `moving_reward` the average reward of earlier steps.
    """
    if algorithm.returns == "process":
        assert batch.step_rewards is not None and batch.step_ends is not None, "process returns without steps"
        how = {"group": cfg.algo.group, "step_credit": algorithm.step_credit}
        credit = process_advantages(batch.step_rewards, batch.step_ends, batch.mask, **how)
        return replace(batch, advantages=credit)
    rewards = token_rewards(batch, algorithm, cfg, beta=beta)
    if algorithm.critic:
        return _over_values(batch, rewards, algorithm, cfg)
    credit = advantages(
        rewards,
        batch.mask,
        group=cfg.algo.group,
        returns=algorithm.returns,
        baseline=algorithm.baseline,
        scale=algorithm.scale,
        moving=moving_reward,
    )
    return replace(batch, advantages=credit)


def token_rewards(batch: Batch, algorithm: Algorithm, cfg: Config, *, beta: float) -> Tensor:
    """[N, T]: the reward at the last token, and with algo.kl_in reward the KL penalty at every one."""
    rewards = torch.zeros_like(batch.sampler_logprobs)
    rewards.scatter_(1, (batch.lengths - 1).clamp_min(0)[:, None], batch.rewards[:, None])
    if algorithm.kl_in == "reward" and batch.ref_logprobs is not None:
        sampled = batch.sampler_logprobs if batch.old_logprobs is None else batch.old_logprobs
        rewards = rewards - beta * KL[algorithm.kl](sampled, batch.ref_logprobs) * batch.mask
    if algorithm.critic and cfg.critic.whiten_rewards:
        rewards = in_deviations(rewards, batch.mask).float()
    return rewards


def _over_values(batch: Batch, rewards: Tensor, algorithm: Algorithm, cfg: Config) -> Batch:
    """Advantages over the critic's values, scaled, and the returns that it learns from."""
    assert batch.values is not None, "a critic without values"
    critic, mask = cfg.critic, batch.mask
    if algorithm.returns == "gae":
        bootstrapped = batch.truncated if critic.bootstrap_truncated else None
        credit, returns = gae(
            rewards, batch.values, mask, gamma=critic.gamma, lam=critic.lam, bootstrapped=bootstrapped
        )
    else:
        returns = reward_to_go(rewards, mask, gamma=critic.gamma).float() * mask
        credit = (returns - batch.values[:, :-1]) * mask
    totals = total_return(rewards, mask)[:, 0]
    credit = SCALES[algorithm.scale](credit.double(), totals, mask, group=cfg.algo.group)
    return replace(batch, advantages=torch.where(mask, credit, 0.0).float(), returns=returns)


def without_zero_variance(batch: Batch, group: int) -> Batch:
    """The batch without the groups whose rewards are all equal; the whole batch where there are no others."""
    is_mixed = ~has_zero_variance(batch.rewards, group)
    return batch.rows(is_mixed.nonzero()[:, 0]) if is_mixed.any() else batch
