"""Advantages: how much better than expected each sampled token was. Pure functions on tensors.

The policy gradient is E[sum_t Psi_t grad log pi(a_t | s_t)] (Schulman et al. 2016, eq. 1). Here Psi_t is a return less
a baseline, then scaled; reasoner.rl.algorithms names the parts that each algorithm uses.

Shapes: P prompts, G completions of each, N = P * G rows, T completion positions. A return is [N, T], or [N, 1] when
all tokens of a row share it. Standard deviations are of the population (divided by n); sums are in float64.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from reasoner.rl.algorithms import GROUPED
from reasoner.types import REWARD_TOLERANCE

EPS = 1e-6  # added to a deviation before it divides

# ------------------------------------------------------------------------------------------------ returns


def total_return(rewards: Tensor, mask: Tensor) -> Tensor:
    """[N, T] rewards and mask -> [N, 1]: sum of the completion's rewards (REINFORCE: Williams 1992)."""
    return rewards.double().sum(dim=1, keepdim=True)


def reward_to_go(rewards: Tensor, mask: Tensor, *, gamma: float = 1.0) -> Tensor:
    """[N, T] rewards and mask -> [N, T]: sum over t' >= t of gamma^(t' - t) r_t'. Earlier rewards do not count."""
    rewards = rewards.double()
    if gamma == 1:  # on the CPU: the sums of a GPU's cumsum have no fixed order
        return rewards.cpu().flip(1).cumsum(1).flip(1).to(rewards.device)
    returns = torch.zeros_like(rewards)
    following = torch.zeros_like(rewards[:, 0])
    for t in reversed(range(rewards.shape[1])):
        following = returns[:, t] = rewards[:, t] + gamma * following
    return returns


RETURNS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"total": total_return, "to_go": reward_to_go}

# ------------------------------------------------------------------------------------------------ baselines


def no_baseline(totals: Tensor, *, group: int) -> Tensor:
    """Zero for every row."""
    return torch.zeros_like(totals)


def batch_mean(totals: Tensor, *, group: int) -> Tensor:
    """Mean over all rows of the batch."""
    return totals.mean().expand_as(totals)


def group_mean(totals: Tensor, *, group: int) -> Tensor:
    """GRPO (Shao et al. 2024, section 4.1.2): mean over the completions of the same prompt."""
    return totals.view(-1, group).mean(dim=1).repeat_interleave(group)


def leave_one_out(totals: Tensor, *, group: int) -> Tensor:
    """RLOO (Ahmadian et al. 2024; Kool et al. 2019): mean over the other completions of the prompt."""
    sums = totals.view(-1, group).sum(dim=1).repeat_interleave(group)
    return (sums - totals) / (group - 1)


# [N] total returns -> [N] expected return. `group` is G.
BASELINES: dict[str, Callable[..., Tensor]] = {
    "none": no_baseline,
    "batch": batch_mean,
    "group": group_mean,
    "leave_one_out": leave_one_out,
}

# ------------------------------------------------------------------------------------------------ scales


def no_scale(advantages: Tensor, totals: Tensor, mask: Tensor, *, group: int) -> Tensor:
    """Return the advantages unchanged (Dr. GRPO: Liu et al. 2025; RLOO; REINFORCE)."""
    return advantages


def by_group(advantages: Tensor, totals: Tensor, mask: Tensor, *, group: int) -> Tensor:
    """Divide by the standard deviation of the group's total returns (GRPO; DeepSeek-R1, eq. 3)."""
    centred = totals.view(-1, group) - totals.view(-1, group).mean(dim=1, keepdim=True)
    std = centred.square().mean(dim=1).sqrt().repeat_interleave(group)
    return advantages / (std[:, None] + EPS)


def by_batch(advantages: Tensor, totals: Tensor, mask: Tensor, *, group: int) -> Tensor:
    """Whiten over all tokens of the batch (REINFORCE++: Hu et al. 2025, section 3; the usual PPO advantages)."""
    return whiten(advantages.expand(mask.shape), mask)


# ([N, T] or [N, 1] advantages, [N] total returns, [N, T] mask) -> the same, scaled
SCALES: dict[str, Callable[..., Tensor]] = {"none": no_scale, "group": by_group, "batch": by_batch}


def whiten(values: Tensor, mask: Tensor) -> Tensor:
    """[N, T] values and mask -> [N, T]: mean 0 and standard deviation 1 over the mask, 0 outside it."""
    inside = values.double()[mask]
    if not len(inside):
        return torch.zeros_like(values)
    mean = inside.mean()
    return torch.where(mask, (values - mean) / ((inside - mean).square().mean().sqrt() + EPS), 0.0)


# ------------------------------------------------------------------------------------------------ combined


def outcome_advantages(
    rewards: Tensor,
    mask: Tensor,
    *,
    group: int,
    returns: str = "total",
    baseline: str = "group",
    scale: str = "group",
) -> Tensor:
    """[N, T] rewards and mask -> [N, T] float32 advantages, 0 outside the mask: (return - baseline) scaled.

    All tokens of a row share one baseline, computed from total returns. With a group baseline, zero-variance groups get
    exact zeros: rounding leaves seven rewards of 0.7 with a deviation slightly above zero, and dividing by it would
    scale rounding noise up to the size of a real advantage. Such a baseline raises ValueError for groups of one.
    """
    if baseline in GROUPED and group < 2:
        raise ValueError(f"a group needs at least 2 completions to compare, not {group}")
    totals = total_return(rewards, mask)[:, 0]
    credit = RETURNS[returns](rewards, mask)
    credit = credit - BASELINES[baseline](totals, group=group)[:, None]
    if baseline in GROUPED:
        credit = torch.where(has_zero_variance(totals, group)[:, None], 0.0, credit)
    credit = SCALES[scale](credit, totals, mask, group=group)
    return torch.where(mask, credit.expand(mask.shape), 0.0).float()


def has_zero_variance(rewards: Tensor, group: int) -> Tensor:
    """[N] rewards or total returns -> [N] bool: whether they are equal across the row's group."""
    grouped = rewards.view(-1, group)
    return (grouped.amax(dim=1) - grouped.amin(dim=1) < REWARD_TOLERANCE).repeat_interleave(group)


def process_advantages(
    step_rewards: Tensor, step_ends: Tensor, mask: Tensor, *, group: int, step_credit: str = "sum"
) -> Tensor:
    """[N, T] step rewards, [N, T] bool ends of steps, [N, T] mask -> [N, T] float32 advantages.

    The step that ends at a row's last token is the outcome (the answer); the others are intermediate steps.
    DeepSeekMath, section 4.1.3 (`step_credit` "sum"): the rewards of all steps of all completions of a group are
    normalised together, and a token's advantage is the sum of the normalised rewards of the steps that end at or after
    it. A group whose step rewards are all equal gives exact zeros.

    That sum grows with the number of correct steps, however trivial they are: twenty of them outweigh a wrong answer.
    With "gated", each intermediate step is weighted by 1 / (their number in the row), so that all of them together
    weigh as much as the outcome; process_rewards.step_rewards decides which steps there are.
    """
    rewards, ends = step_rewards.double(), step_ends.view(-1, group * step_ends.shape[1])
    grouped = rewards.view(ends.shape)
    counts = ends.sum(dim=1, keepdim=True).clamp_min(1)
    mean = (grouped * ends).sum(dim=1, keepdim=True) / counts
    centred = (grouped - mean) * ends
    std = (centred.square().sum(dim=1, keepdim=True) / counts).sqrt()
    maximum = torch.where(ends, grouped, -torch.inf).amax(1)
    is_constant = maximum - torch.where(ends, grouped, torch.inf).amin(1) < REWARD_TOLERANCE
    normalised = torch.where(is_constant[:, None], 0.0, centred / (std + EPS)).view(rewards.shape)
    return torch.where(mask, reward_to_go(normalised * STEP_CREDIT[step_credit](step_ends, mask), mask), 0.0).float()


def each_step(step_ends: Tensor, mask: Tensor) -> Tensor:
    """Weight 1 for every step."""
    return torch.ones_like(step_ends, dtype=torch.float64)


def mean_of_steps(step_ends: Tensor, mask: Tensor) -> Tensor:
    """Weight 1 for the outcome, 1 / (num_steps of intermediate steps in the row) for each of those."""
    is_outcome = torch.arange(mask.shape[1], device=mask.device) == mask.sum(dim=1, keepdim=True) - 1
    num_steps = (step_ends & ~is_outcome).sum(dim=1, keepdim=True).clamp_min(1)
    return torch.where(is_outcome, 1.0, 1.0 / num_steps.double())


# [N, T] bool ends of steps, [N, T] mask -> [N, T] weight of the step that ends at the token
STEP_CREDIT: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"sum": each_step, "gated": mean_of_steps}


def gae(rewards: Tensor, values: Tensor, mask: Tensor, *, gamma: float, lam: float) -> tuple[Tensor, Tensor]:
    """[N, T] rewards, values and mask -> [N, T] advantages and returns, 0 outside the mask.

    Generalised advantage estimation (Schulman et al. 2016, eq. 16), by the reverse recursion
    A_t = delta_t + gamma lambda A_(t+1), delta_t = r_t + gamma V(s_(t+1)) - V(s_t). values[:, t] is V of the state
    before token t. After the last token V is 0, for finished and truncated completions alike: the reward was given for
    the completion as it is, so nothing follows. A value there would pay the policy for reaching the limit.
    """
    rewards, values = rewards.double() * mask, values.double() * mask
    credit = torch.zeros_like(rewards)
    following = next_value = torch.zeros_like(rewards[:, 0])
    for t in reversed(range(rewards.shape[1])):
        delta = rewards[:, t] + gamma * next_value - values[:, t]
        credit[:, t] = following = (delta + gamma * lam * following) * mask[:, t]
        next_value = values[:, t]
    return credit.float(), (credit + values).float()
