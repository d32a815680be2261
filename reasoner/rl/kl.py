"""Estimators of KL(policy || reference) from the sampled tokens (Schulman 2020, "Approximating KL divergence").

With r = log reference - log policy at the token that the policy drew. Their values estimate the same divergence; as
terms of a loss their gradients differ. On-policy and on average k1's is zero, k2's is that of the divergence, and k3's
(the one in the GRPO paper) is that of the divergence the other way round, KL(reference || policy); k3_reverse has k3's
value and the divergence's own gradient.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

_LIMIT = 20.0  # of the log ratio, against overflow


def _log_ratio(logp: Tensor, ref_logp: Tensor) -> Tensor:
    return (ref_logp - logp).clamp(-_LIMIT, _LIMIT)


def kl_k1(logp: Tensor, ref_logp: Tensor) -> Tensor:
    """[N, T] x 2 -> [N, T]: -r. Unbiased, of either sign."""
    return -_log_ratio(logp, ref_logp)


def kl_k2(logp: Tensor, ref_logp: Tensor) -> Tensor:
    """[N, T] x 2 -> [N, T]: r^2 / 2. Biased, never negative."""
    return _log_ratio(logp, ref_logp).square() / 2


def kl_k3(logp: Tensor, ref_logp: Tensor) -> Tensor:
    """[N, T] x 2 -> [N, T]: e^r - r - 1. Unbiased, never negative (GRPO: Shao et al. 2024, eq. 4)."""
    r = _log_ratio(logp, ref_logp)
    return r.exp() - r - 1


def kl_k3_reverse(logp: Tensor, ref_logp: Tensor) -> Tensor:
    """[N, T] x 2 -> [N, T]: the value of k3 with the gradient of the divergence itself: k3 times the probability ratio
    of the policy to itself, whose gradient is the one that sampling hides (DeepSeek-V3.2 2025, section 3.1).
    """
    return (logp - logp.detach()).exp() * kl_k3(logp, ref_logp)


KL: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"k1": kl_k1, "k2": kl_k2, "k3": kl_k3, "k3_reverse": kl_k3_reverse}
