"""Losses per token and the weights that make one number of them. Nothing here reduces.

Shapes: N rows (completions), T completion positions. loss = (weights * per_token).sum().
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor

Weighting = Literal["token", "sequence", "constant"]

_LIMIT = 20.0  # of the log ratio, against overflow


def token_ratio(logp: Tensor, old_logp: Tensor, mask: Tensor) -> Tensor:
    """[N, T] x 3 -> [N, T]: policy / old policy of each token."""
    return (logp - old_logp).clamp(-_LIMIT, _LIMIT).exp()


def sequence_ratio(logp: Tensor, old_logp: Tensor, mask: Tensor) -> Tensor:
    """[N, T] x 3 -> [N, T]: the geometric mean of a row's token ratios, at each of its tokens (GSPO: Zheng et al. 2025,
    eq. 7). On a row without tokens it is 1.
    """
    mean = ((logp - old_logp) * mask).sum(dim=1, keepdim=True) / mask.sum(dim=1, keepdim=True).clamp_min(1)
    return mean.clamp(-_LIMIT, _LIMIT).exp().expand(logp.shape)


def plain(ratio: Tensor, logp: Tensor, advantages: Tensor, *, low: float, high: float, dual: float) -> Tensor:
    """-A at the policy that sampled, with the gradient -A grad log pi (REINFORCE), whatever the ratio."""
    return -(logp - logp.detach()).exp() * advantages


def unclipped(ratio: Tensor, logp: Tensor, advantages: Tensor, *, low: float, high: float, dual: float) -> Tensor:
    """-r A: the importance-weighted surrogate that TRPO's trust region bounds (Schulman et al. 2015, eq. 14)."""
    return -ratio * advantages


def clipped(ratio: Tensor, logp: Tensor, advantages: Tensor, *, low: float, high: float, dual: float) -> Tensor:
    """-min(r A, clip(r, 1 - low, 1 + high) A), and where A < 0 no more than -dual A.

    PPO (Schulman et al. 2017, eq. 7); DAPO (Yu et al. 2025) lets `high` differ from `low`; `dual` > 1 bounds what one
    unlikely bad token can cost (Ye et al. 2020, eq. 5), 0 leaves it out.
    """
    found = -torch.minimum(ratio * advantages, ratio.clamp(1 - low, 1 + high) * advantages)
    if dual:
        found = torch.where(advantages < 0, torch.minimum(found, -dual * advantages), found)
    return found


def clipped_weight(ratio: Tensor, logp: Tensor, advantages: Tensor, *, low: float, high: float, dual: float) -> Tensor:
    """-sg(min(r, 1 + high)) A log pi: the weight is clipped, the gradient of no token is lost (CISPO: MiniMax-M1 2025,
    eq. 4; `low` is left out there as here).
    """
    return -ratio.detach().clamp_max(1 + high) * advantages * logp


# (ratio, log-probabilities, advantages, all [N, T]) -> [N, T] loss of each token
SURROGATES: dict[str, Callable[..., Tensor]] = {
    "plain": plain,
    "ratio": unclipped,
    "clip": clipped,
    "clip_weight": clipped_weight,
}
RATIOS: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {"token": token_ratio, "sequence": sequence_ratio}


def is_clipped(ratio: Tensor, advantages: Tensor, *, low: float, high: float) -> Tensor:
    """[N, T] x 2 -> [N, T] bool: the tokens on which the clip has taken hold."""
    return (ratio > 1 + high) & (advantages > 0) | (ratio < 1 - low) & (advantages < 0)


def sampler_weights(old_logp: Tensor, sampler_logp: Tensor, mask: Tensor, *, how: str, cap: float) -> Tensor:
    """[N, T] x 3 -> [N, T]: min(policy / sampler, cap), for the engine and the learner do not agree to the last digit.

    Truncated importance sampling (Yao et al. 2025, "Your efficient RL framework secretly brings you off-policy
    training"): "token" by token, "sequence" by the product over the row, "none" is 1.
    """
    if how == "none":
        return torch.ones_like(old_logp)
    gap = (old_logp - sampler_logp) * mask
    if how == "sequence":
        gap = gap.sum(dim=1, keepdim=True).expand(gap.shape)
    return gap.clamp(-_LIMIT, _LIMIT).exp().clamp_max(cap)


def value_loss(values: Tensor, old_values: Tensor, returns: Tensor, *, clip: float) -> Tensor:
    """[N, T] x 3 -> [N, T]: squared error / 2, the worse of the value as it is and kept within `clip` of the old one
    (the usual PPO implementation; 0 leaves the clip out).
    """
    error = (values - returns).square()
    if clip:
        near = old_values + (values - old_values).clamp(-clip, clip)
        error = torch.maximum(error, (near - returns).square())
    return error / 2


def token_weights(mask: Tensor, how: Weighting, *, max_tokens: int, rows: int | None = None) -> Tensor:
    """[N, T] bool mask of the whole optimiser step -> [N, T] float weights, 0 outside the mask.

    "token": every token alike, 1 / number of tokens (DAPO). "sequence": every completion alike, and every token alike
    within it, 1 / (N * its length) (GRPO). "constant": 1 / (N * max_tokens), so that length has no say (Dr. GRPO).
    N is `rows` where not all are learnt from. The denominators are of the whole step: however the rows are split
    afterwards, the gradient is the same.
    """
    weights, rows = mask.float(), max(1, len(mask) if rows is None else rows)
    match how:
        case "token":
            return weights / weights.sum().clamp_min(1)
        case "sequence":
            return weights / weights.sum(dim=1, keepdim=True).clamp_min(1) / rows
        case "constant":
            return weights / (rows * max_tokens)
    raise ValueError(f"unknown weighting {how!r}; known are token, sequence, constant")
