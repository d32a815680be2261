"""Losses per token and the weights that make one number of them. Nothing here reduces.

Shapes: N rows (completions), T completion positions. loss = (weights * per_token).sum().
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

Weighting = Literal["token", "sequence", "constant"]

_LIMIT = 20.0  # of the log ratio, against overflow


def clipped_surrogate(logp: Tensor, old_logp: Tensor, advantages: Tensor, *, low: float, high: float) -> Tensor:
    """[N, T] x 3 -> [N, T]: -min(r A, clip(r, 1 - low, 1 + high) A) with r = policy / old policy.

    PPO (Schulman et al. 2017, eq. 7); DAPO (Yu et al. 2025) lets `high` differ from `low`.
    """
    ratio = (logp - old_logp).clamp(-_LIMIT, _LIMIT).exp()
    return -torch.minimum(ratio * advantages, ratio.clamp(1 - low, 1 + high) * advantages)


def is_clipped(logp: Tensor, old_logp: Tensor, advantages: Tensor, *, low: float, high: float) -> Tensor:
    """[N, T] x 3 -> [N, T] bool: the tokens whose gradient the clip removes."""
    ratio = (logp - old_logp).clamp(-_LIMIT, _LIMIT).exp()
    return (ratio > 1 + high) & (advantages > 0) | (ratio < 1 - low) & (advantages < 0)


def token_weights(mask: Tensor, how: Weighting, *, max_tokens: int) -> Tensor:
    """[N, T] bool mask of the whole optimiser step -> [N, T] float weights, 0 outside the mask.

    "token": every token alike, 1 / number of tokens (DAPO). "sequence": every completion alike, and every token alike
    within it, 1 / (N * its length) (GRPO). "constant": 1 / (N * max_tokens), so that length has no say (Dr. GRPO).
    The denominators are of the whole step: however the rows are split afterwards, the gradient is the same.
    """
    weights = mask.float()
    match how:
        case "token":
            return weights / weights.sum().clamp_min(1)
        case "sequence":
            return weights / weights.sum(dim=1, keepdim=True).clamp_min(1) / len(mask)
        case "constant":
            return weights / (len(mask) * max_tokens)
    raise ValueError(f"unknown weighting {how!r}; known are token, sequence, constant")
