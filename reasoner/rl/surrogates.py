"""Surrogate objectives: the loss of a token, and the tokens on which its clip acts.

Shapes: N rows (completions), T completion positions. Every function takes (ratio, log-probabilities, advantages) or
(ratio, advantages), all [N, T], and the bounds of the clip.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


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
    loss = -(ratio * advantages).minimum(ratio.clamp(1 - low, 1 + high) * advantages)
    if dual:
        loss = loss.minimum(-dual * advantages).where(advantages < 0, loss)
    return loss


def clipped_weight(ratio: Tensor, logp: Tensor, advantages: Tensor, *, low: float, high: float, dual: float) -> Tensor:
    """-sg(min(r, 1 + high)) A log pi: the weight is clipped and every token keeps a gradient (CISPO: MiniMax-M1 2025,
    eq. 4, which has no lower bound either; `low` is ignored).
    """
    return -ratio.detach().clamp_max(1 + high) * advantages * logp


def never_clipped(ratio: Tensor, advantages: Tensor, *, low: float, high: float, dual: float) -> Tensor:
    """False for every token: a surrogate without a clip."""
    return ratio.new_zeros(ratio.shape).bool()


def is_clipped(ratio: Tensor, advantages: Tensor, *, low: float, high: float, dual: float) -> Tensor:
    """Tokens whose gradient the clip removes, or the bound by `dual` (0: there is none)."""
    outside = (ratio > 1 + high) & (advantages > 0) | (ratio < 1 - low) & (advantages < 0)
    return outside | (ratio > dual) & (advantages < 0) if dual else outside


def is_weight_clipped(ratio: Tensor, advantages: Tensor, *, low: float, high: float, dual: float) -> Tensor:
    """Tokens whose weight is clipped; they keep a gradient."""
    return (ratio > 1 + high) & (advantages != 0)


@dataclass(frozen=True, slots=True)
class Surrogate:
    """A row of SURROGATES."""

    loss: Callable[..., Tensor]  # (ratio, log-probabilities, advantages) -> [N, T] loss of each token
    is_clipped: Callable[..., Tensor] = never_clipped  # (ratio, advantages) -> [N, T] bool, where the clip acts


SURROGATES: dict[str, Surrogate] = {
    "plain": Surrogate(plain),
    "ratio": Surrogate(unclipped),
    "clip": Surrogate(clipped, is_clipped),
    "clip_weight": Surrogate(clipped_weight, is_weight_clipped),
}
