"""Credit: how much better than expected each token's choice was. Pure functions; the parts of Psi_t.

The policy gradient is E[sum_t Psi_t grad log pi(a_t | s_t)] (Schulman et al. 2016, eq. 1). Here Psi_t is a return less
a baseline, then scaled; reasoner.rl.algorithms names the parts of each algorithm.

Shapes: P prompts, G completions of each, N = P * G rows, T completion positions. A return is [N, T], or [N, 1] where
every token of a row has the same. Deviations are of the population (divided by n), sums in float64.
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
    """[N, T] x 2 -> [N, 1]: what the whole completion earned (REINFORCE: Williams 1992)."""
    return rewards.double().sum(dim=1, keepdim=True)


def reward_to_go(rewards: Tensor, mask: Tensor, *, gamma: float = 1.0) -> Tensor:
    """[N, T] x 2 -> [N, T]: sum over t' >= t of gamma^(t' - t) r_t'. What came before a token is not its."""
    rewards = rewards.double()
    if gamma == 1:
        return rewards.flip(1).cumsum(1).flip(1)
    returns = torch.zeros_like(rewards)
    following = torch.zeros_like(rewards[:, 0])
    for t in reversed(range(rewards.shape[1])):
        following = returns[:, t] = rewards[:, t] + gamma * following
    return returns


RETURNS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"total": total_return, "to_go": reward_to_go}

# ------------------------------------------------------------------------------------------------ baselines


def no_baseline(totals: Tensor, *, group: int, moving: float) -> Tensor:
    return torch.zeros_like(totals)


def batch_mean(totals: Tensor, *, group: int, moving: float) -> Tensor:
    return totals.mean().expand_as(totals)


def moving_average(totals: Tensor, *, group: int, moving: float) -> Tensor:
    """The average that earlier steps have left (`moving`): no completion of this step is in it."""
    return torch.full_like(totals, moving)


def group_mean(totals: Tensor, *, group: int, moving: float) -> Tensor:
    """GRPO (Shao et al. 2024, section 4.1.2): the mean over the completions of the same question."""
    return totals.view(-1, group).mean(dim=1).repeat_interleave(group)


def leave_one_out(totals: Tensor, *, group: int, moving: float) -> Tensor:
    """RLOO (Ahmadian et al. 2024; Kool et al. 2019): the mean over the other completions of the question."""
    sums = totals.view(-1, group).sum(dim=1).repeat_interleave(group)
    return (sums - totals) / (group - 1)


# [N] total returns -> [N] what was to be expected. `group` is G, `moving` the average of earlier steps.
BASELINES: dict[str, Callable[..., Tensor]] = {
    "none": no_baseline,
    "batch": batch_mean,
    "moving": moving_average,
    "group": group_mean,
    "leave_one_out": leave_one_out,
}

# ------------------------------------------------------------------------------------------------ scales


def unscaled(advantages: Tensor, totals: Tensor, mask: Tensor, *, group: int) -> Tensor:
    """Dr. GRPO (Liu et al. 2025), RLOO, REINFORCE."""
    return advantages


def by_group(advantages: Tensor, totals: Tensor, mask: Tensor, *, group: int) -> Tensor:
    """In deviations of the group's total returns (GRPO; DeepSeek-R1, eq. 3)."""
    centred = totals.view(-1, group) - totals.view(-1, group).mean(dim=1, keepdim=True)
    spread = centred.square().mean(dim=1).sqrt().repeat_interleave(group)
    return advantages / (spread[:, None] + EPS)


def by_batch(advantages: Tensor, totals: Tensor, mask: Tensor, *, group: int) -> Tensor:
    """Whitened over all tokens of the batch (REINFORCE++: Hu et al. 2025, section 3; PPO's usual advantages)."""
    return whitened(advantages.expand(mask.shape), mask)


# ([N, T] or [N, 1] advantages, [N] total returns, [N, T] mask) -> the same, scaled
SCALES: dict[str, Callable[..., Tensor]] = {"none": unscaled, "group": by_group, "batch": by_batch}


def whitened(values: Tensor, mask: Tensor) -> Tensor:
    """[N, T] x 2 -> [N, T]: mean 0 and deviation 1 over the mask, 0 outside it."""
    inside = values.double()[mask]
    if not len(inside):
        return torch.zeros_like(values)
    mean = inside.mean()
    return torch.where(mask, (values - mean) / ((inside - mean).square().mean().sqrt() + EPS), 0.0)


def in_deviations(values: Tensor, mask: Tensor) -> Tensor:
    """[N, T] x 2 -> [N, T]: divided by the deviation over the mask, not shifted (a zero stays 0); 0 outside the mask.

    Where all values are equal there is no deviation to divide by, and they stay as they are.
    """
    inside = values.double()[mask]
    spread = float(inside.std(correction=0)) if len(inside) else 0.0
    return torch.where(mask, values / spread if spread > EPS else values, 0.0)


# ------------------------------------------------------------------------------------------------ together


def advantages(
    rewards: Tensor,
    mask: Tensor,
    *,
    group: int,
    returns: str = "total",
    baseline: str = "group",
    scale: str = "group",
    moving: float = 0.0,
) -> Tensor:
    """[N, T] rewards and mask -> [N, T] float32 advantages, 0 outside the mask: (return - baseline) scaled.

    The baseline of every token of a row is that of its total return. Flat groups give exact zeros under a baseline of
    their group: rounding leaves seven rewards of 0.7 a deviation that is not quite zero, and dividing by it would make
    noise as loud as an answer. ValueError for a group of one under such a baseline.
    """
    if baseline in GROUPED and group < 2:
        raise ValueError(f"a group needs at least 2 completions to compare, not {group}")
    totals = total_return(rewards, mask)[:, 0]
    found = RETURNS[returns](rewards, mask)
    found = found - BASELINES[baseline](totals, group=group, moving=moving)[:, None]
    if baseline in GROUPED:
        found = torch.where(has_zero_variance(totals, group)[:, None], 0.0, found)
    found = SCALES[scale](found, totals, mask, group=group)
    return torch.where(mask, found.expand(mask.shape), 0.0).float()


def has_zero_variance(rewards: Tensor, group: int) -> Tensor:
    """[N] rewards or total returns -> [N] bool: all completions of the row's group have the same."""
    grouped = rewards.view(-1, group)
    return (grouped.amax(dim=1) - grouped.amin(dim=1) < REWARD_TOLERANCE).repeat_interleave(group)


def process_advantages(
    step_rewards: Tensor, step_ends: Tensor, mask: Tensor, *, group: int, step_credit: str = "sum"
) -> Tensor:
    """[N, T] rewards where a step ends, [N, T] bool where one does, [N, T] mask -> [N, T] float32.

    The last token of a row ends its outcome, every other step one of its working. DeepSeekMath, section 4.1.3
    (`step_credit` "sum"): the rewards of all steps of all completions of a group are normalised together, and a token's
    advantage is the sum of the normalised rewards of the steps that end at or after it. A group whose step rewards are
    all equal gives exact zeros.

    That sum grows with the number of right steps, whatever they are about: twenty of them outweigh a wrong answer. With
    "gated" each step of the working counts 1 / (their number in the row), so that all of them together weigh as much as
    the outcome; which steps there are is decided by process_rewards.step_rewards.
    """
    rewards, ends = step_rewards.double(), step_ends.view(-1, group * step_ends.shape[1])
    grouped = rewards.view(ends.shape)
    counts = ends.sum(dim=1, keepdim=True).clamp_min(1)
    mean = (grouped * ends).sum(dim=1, keepdim=True) / counts
    centred = (grouped - mean) * ends
    spread = (centred.square().sum(dim=1, keepdim=True) / counts).sqrt()
    highest = torch.where(ends, grouped, -torch.inf).amax(1)
    is_flat = highest - torch.where(ends, grouped, torch.inf).amin(1) < REWARD_TOLERANCE
    normal = torch.where(is_flat[:, None], 0.0, centred / (spread + EPS)).view(rewards.shape)
    return torch.where(mask, reward_to_go(normal * STEP_CREDIT[step_credit](step_ends, mask), mask), 0.0).float()


def each_step(step_ends: Tensor, mask: Tensor) -> Tensor:
    return torch.ones_like(step_ends, dtype=torch.float64)


def mean_of_steps(step_ends: Tensor, mask: Tensor) -> Tensor:
    is_outcome = torch.arange(mask.shape[1], device=mask.device) == mask.sum(dim=1, keepdim=True) - 1
    number = (step_ends & ~is_outcome).sum(dim=1, keepdim=True).clamp_min(1)
    return torch.where(is_outcome, 1.0, 1.0 / number.double())


# [N, T] ends of steps, [N, T] mask -> [N, T] weight of the step that ends there
STEP_CREDIT: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"sum": each_step, "gated": mean_of_steps}


def gae(
    rewards: Tensor, values: Tensor, mask: Tensor, *, gamma: float, lam: float, bootstrapped: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """[N, T] rewards, [N, T + 1] values, [N, T] mask -> [N, T] advantages and returns, 0 outside the mask.

    Generalised advantage estimation (Schulman et al. 2016, eq. 16), by the reverse recursion
    A_t = delta_t + gamma lambda A_(t+1), delta_t = r_t + gamma V(s_(t+1)) - V(s_t). values[:, t] is V of the state
    before token t. After the last token V is 0: the completion was graded as it stands, so nothing follows, whether it
    ended or ran into the limit. In the rows of `bootstrapped` ([N] bool) it is the value of the state after the last
    token instead; on truncated completions that pays for running into the limit whatever the critic expects there.
    """
    rewards, values = rewards.double(), values.double()
    lengths = mask.sum(dim=1)
    found = torch.zeros_like(rewards)
    following = torch.zeros_like(rewards[:, 0])
    for t in reversed(range(rewards.shape[1])):
        is_last = lengths == t + 1
        is_terminal = is_last if bootstrapped is None else is_last & ~bootstrapped
        after = torch.where(is_terminal, 0.0, values[:, t + 1])
        delta = rewards[:, t] + gamma * after - values[:, t]
        carried = torch.where(is_last, 0.0, following)
        following = torch.where(mask[:, t], delta + gamma * lam * carried, 0.0)
        found[:, t] = following
    return found.float(), torch.where(mask, found + values[:, :-1], 0.0).float()
