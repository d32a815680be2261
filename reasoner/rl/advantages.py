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

EPS = 1e-6  # added to a deviation before it divides
_FLAT = 1e-5  # rewards closer together than this count as equal

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
GROUPED = ("group", "leave_one_out")  # a group whose rewards are all equal has exactly no advantage

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


def whitened(values: Tensor, mask: Tensor, *, keeps_mean: bool = False) -> Tensor:
    """[N, T] x 2 -> [N, T]: mean 0 and deviation 1 over the mask, 0 outside it; rewards keep their mean."""
    inside = values.double()[mask]
    if not len(inside):
        return torch.zeros_like(values)
    mean = inside.mean()
    made = (values - mean) / ((inside - mean).square().mean().sqrt() + EPS)
    return torch.where(mask, made + mean if keeps_mean else made, 0.0)


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
        found = torch.where(is_flat(totals, group)[:, None], 0.0, found)
    found = SCALES[scale](found, totals, mask, group=group)
    return torch.where(mask, found.expand(mask.shape), 0.0).float()


def is_flat(totals: Tensor, group: int) -> Tensor:
    """[N] -> [N] bool: all completions of the row's group earned the same."""
    grouped = totals.view(-1, group)
    return (grouped.amax(dim=1) - grouped.amin(dim=1) < _FLAT).repeat_interleave(group)


def process_advantages(step_rewards: Tensor, step_ends: Tensor, mask: Tensor, *, group: int) -> Tensor:
    """[N, T] rewards where a step ends, [N, T] bool where one does, [N, T] mask -> [N, T] float32.

    DeepSeekMath, section 4.1.3: the rewards of all steps of all completions of a group are normalised together, and a
    token's advantage is the sum of the normalised rewards of the steps that end at or after it. A group whose step
    rewards are all equal gives exact zeros.
    """
    rewards, ends = step_rewards.double(), step_ends.view(-1, group * step_ends.shape[1])
    grouped = rewards.view(ends.shape)
    counts = ends.sum(dim=1, keepdim=True).clamp_min(1)
    mean = (grouped * ends).sum(dim=1, keepdim=True) / counts
    centred = (grouped - mean) * ends
    spread = (centred.square().sum(dim=1, keepdim=True) / counts).sqrt()
    flat = torch.where(ends, grouped, -torch.inf).amax(1) - torch.where(ends, grouped, torch.inf).amin(1) < _FLAT
    normal = torch.where(flat[:, None], 0.0, centred / (spread + EPS)).view(rewards.shape)
    return torch.where(mask, reward_to_go(normal, mask), 0.0).float()


def gae(
    rewards: Tensor, values: Tensor, mask: Tensor, truncated: Tensor, *, gamma: float, lam: float
) -> tuple[Tensor, Tensor]:
    """[N, T] rewards, [N, T + 1] values, [N, T] mask, [N] bool -> [N, T] advantages and returns, 0 outside the mask.

    Generalised advantage estimation (Schulman et al. 2016, eq. 16), by the reverse recursion
    A_t = delta_t + gamma lambda A_(t+1), delta_t = r_t + gamma V(s_(t+1)) - V(s_t). values[:, t] is V of the state
    before token t. After the last token of a completion that ended V is 0; of one that was truncated it is the value
    of the state after it, which is not the end of anything.
    """
    rewards, values = rewards.double(), values.double()
    lengths = mask.sum(dim=1)
    found = torch.zeros_like(rewards)
    following = torch.zeros_like(rewards[:, 0])
    for t in reversed(range(rewards.shape[1])):
        is_last = lengths == t + 1
        after = torch.where(is_last & ~truncated, 0.0, values[:, t + 1])
        delta = rewards[:, t] + gamma * after - values[:, t]
        carried = torch.where(is_last, 0.0, following)
        following = torch.where(mask[:, t], delta + gamma * lam * carried, 0.0)
        found[:, t] = following
    return found.float(), torch.where(mask, found + values[:, :-1], 0.0).float()
