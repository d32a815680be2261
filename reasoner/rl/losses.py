"""Losses per token, and the weights with which they are summed. Nothing here reduces.

Shapes: N rows (completions), T completion positions. loss = (weights * per_token).sum().
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor

LossAggregation = Literal["token", "sequence", "constant"]

MAX_LOG_RATIO = 20.0  # clamps the log ratio so that exp() does not overflow


def token_ratio(logp: Tensor, old_logp: Tensor, mask: Tensor) -> Tensor:
    """[N, T] x 3 -> [N, T]: probability ratio policy / old policy of each token."""
    return (logp - old_logp).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()


def sequence_ratio(logp: Tensor, old_logp: Tensor, mask: Tensor) -> Tensor:
    """[N, T] x 3 -> [N, T]: geometric mean of the row's token ratios, repeated at each token (GSPO: Zheng et al. 2025,
    eq. 7). A row without tokens has ratio 1.
    """
    mean = ((logp - old_logp) * mask).sum(dim=1, keepdim=True) / mask.sum(dim=1, keepdim=True).clamp_min(1)
    return mean.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp().expand(logp.shape)


def plain(ratio: Tensor, logp: Tensor, advantages: Tensor, *, low: float, high: float, dual: float) -> Tensor:
    """-A in value, -A grad log pi in gradient (REINFORCE); the ratio is ignored."""
    return -(logp - logp.detach()).exp() * advantages


def unclipped(ratio: Tensor, logp: Tensor, advantages: Tensor, *, low: float, high: float, dual: float) -> Tensor:
    """-r A: the importance-weighted surrogate that TRPO's trust region bounds (Schulman et al. 2015, eq. 14)."""
    return -ratio * advantages


def clipped(ratio: Tensor, logp: Tensor, advantages: Tensor, *, low: float, high: float, dual: float) -> Tensor:
    """-min(r A, clip(r, 1 - low, 1 + high) A), bounded by -dual A where A < 0.

    PPO (Schulman et al. 2017, eq. 7); DAPO (Yu et al. 2025) lets `high` differ from `low`; `dual` > 1 bounds the loss
    of a token with negative advantage and a large ratio (Ye et al. 2020, eq. 5), 0 turns the bound off.
    """
    loss = -torch.minimum(ratio * advantages, ratio.clamp(1 - low, 1 + high) * advantages)
    if dual:
        loss = torch.where(advantages < 0, torch.minimum(loss, -dual * advantages), loss)
    return loss


def clipped_weight(ratio: Tensor, logp: Tensor, advantages: Tensor, *, low: float, high: float, dual: float) -> Tensor:
    """-sg(min(r, 1 + high)) A log pi: the weight is clipped and every token keeps a gradient (CISPO: MiniMax-M1 2025,
    eq. 4, which has no lower bound either; `low` is ignored).
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


def never_clipped(ratio: Tensor, advantages: Tensor, *, low: float, high: float, dual: float) -> Tensor:
    """False for every token: a surrogate without a clip."""
    return torch.zeros_like(ratio, dtype=torch.bool)


def is_clipped(ratio: Tensor, advantages: Tensor, *, low: float, high: float, dual: float) -> Tensor:
    """Tokens whose gradient the clip removes, or the bound by `dual` (0: there is none)."""
    outside = (ratio > 1 + high) & (advantages > 0) | (ratio < 1 - low) & (advantages < 0)
    return outside | (ratio > dual) & (advantages < 0) if dual else outside


def is_weight_clipped(ratio: Tensor, advantages: Tensor, *, low: float, high: float, dual: float) -> Tensor:
    """Tokens whose weight is clipped; they keep a gradient."""
    return (ratio > 1 + high) & (advantages != 0)


# By surrogate: (ratio, advantages, both [N, T]) -> [N, T] bool, the tokens on which its clip acts.
CLIPPED: dict[str, Callable[..., Tensor]] = {
    "plain": never_clipped,
    "ratio": never_clipped,
    "clip": is_clipped,
    "clip_weight": is_weight_clipped,
}


def sampler_weights(old_logp: Tensor, sampler_logp: Tensor, mask: Tensor, *, how: str, cap: float) -> Tensor:
    """[N, T] x 3 -> [N, T]: min(policy / sampler, cap), which corrects for engine and trainer computing different
    log-probabilities.

    Truncated importance sampling (Yao et al. 2025, "Your efficient RL framework secretly brings you off-policy
    training"). `how`: "token" is the ratio of each token, "sequence" the product over the row, "none" is 1.
    """
    if how == "none":
        return torch.ones_like(old_logp)
    log_ratio = (old_logp - sampler_logp) * mask
    if how == "sequence":
        log_ratio = log_ratio.sum(dim=1, keepdim=True).expand(log_ratio.shape)
    return log_ratio.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp().clamp_max(cap)


def value_loss(values: Tensor, old_values: Tensor, returns: Tensor, *, clip: float) -> Tensor:
    """[N, T] x 3 -> [N, T]: squared error / 2; the larger of the errors of the value and of the value clipped to within
    `clip` of the old one (the usual PPO implementation; `clip` 0 turns this off).
    """
    error = (values - returns).square()
    if clip:
        clipped_values = old_values + (values - old_values).clamp(-clip, clip)
        error = torch.maximum(error, (clipped_values - returns).square())
    return error / 2


def token_weights(mask: Tensor, how: LossAggregation, *, max_tokens: int, rows: int | None = None) -> Tensor:
    """[N, T] bool mask of the whole optimiser step -> [N, T] float weights, 0 outside the mask.

    "token": 1 / number of tokens (DAPO). "sequence": 1 / (N * length of the row), so that every completion has the same
    weight (GRPO). "constant": 1 / (N * max_tokens), independent of length (Dr. GRPO). `rows` overrides N when some rows
    are not trained on. The denominators cover the whole step, so that splitting it into micro-batches does not change
    the gradient.
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
