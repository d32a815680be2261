"""Ratios, and the weights with which the losses of the tokens (surrogates.py) are summed. Nothing here reduces.

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


RATIOS: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {"token": token_ratio, "sequence": sequence_ratio}


def _token(log_ratio: Tensor, mask: Tensor) -> Tensor:
    return log_ratio


def _sequence(log_ratio: Tensor, mask: Tensor) -> Tensor:
    return log_ratio.sum(dim=1, keepdim=True).expand(log_ratio.shape)


def _geometric(log_ratio: Tensor, mask: Tensor) -> Tensor:
    return _sequence(log_ratio, mask) / mask.sum(dim=1, keepdim=True).clamp_min(1)


def _truncated(ratio: Tensor, low: float, high: float) -> Tensor:
    return ratio.clamp_max(high)


def _kept(ratio: Tensor, low: float, high: float) -> Tensor:
    return ratio * _is_within(ratio, low, high)


def _is_within(ratio: Tensor, low: float, high: float) -> Tensor:
    return ((ratio >= low) & (ratio <= high)).float()


# What the ratio is taken over, and which weight it gives.
# token, sequence: truncated importance sampling (Yao et al. 2025, "Your efficient RL framework secretly brings you
# off-policy training"). token_mask: IcePop (Ling team 2025, "Every step evolves"). sequence_mask, and geometric_mask,
# whose mean does not shrink with the length: Liu et al. 2025, "When speed kills stability".
CORRECTIONS: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], Callable[[Tensor, float, float], Tensor]]] = {
    "token": (_token, _truncated),
    "sequence": (_sequence, _truncated),
    "token_mask": (_token, _kept),
    "sequence_mask": (_sequence, _kept),
    "geometric_mask": (_geometric, _is_within),
}


def sampler_weights(
    old_logp: Tensor, sampler_logp: Tensor, mask: Tensor, *, how: str, low: float, high: float
) -> Tensor:
    """[N, T] x 3 -> [N, T]: weights by policy / sampler, which correct for engine and trainer computing different
    log-probabilities. `how` is a row of CORRECTIONS, or "none" for weights of 1.
    """
    if how == "none":
        return torch.ones_like(old_logp)
    level, weight = CORRECTIONS[how]
    log_ratio = level((old_logp - sampler_logp) * mask, mask)
    return weight(log_ratio.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp(), low, high)


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
