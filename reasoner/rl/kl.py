"""Estimators of KL(policy || reference) from the sampled tokens (Schulman 2020, "Approximating KL divergence").

With r = log reference - log policy at the sampled token. The values of all estimators estimate the same divergence; as
terms of a loss they have different gradients. On-policy, the expected gradient of k1 is zero, that of k2 is the
divergence's, and that of k3 (in the GRPO paper) is the gradient of the reverse divergence, KL(reference || policy);
k3_reverse has the value of k3 and the expected gradient of KL(policy || reference).
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

_MAX_LOG_RATIO = 20.0  # clamps the log ratio so that exp() does not overflow


def _log_ratio(logp: Tensor, ref_logp: Tensor) -> Tensor:
    return (ref_logp - logp).clamp(-_MAX_LOG_RATIO, _MAX_LOG_RATIO)


def kl_k1(logp: Tensor, ref_logp: Tensor) -> Tensor:
    """[N, T] x 2 -> [N, T]: -r. Unbiased, may be negative."""
    return -_log_ratio(logp, ref_logp)


def kl_k2(logp: Tensor, ref_logp: Tensor) -> Tensor:
    """[N, T] x 2 -> [N, T]: r^2 / 2. Biased, never negative."""
    return _log_ratio(logp, ref_logp).square() / 2


def kl_k3(logp: Tensor, ref_logp: Tensor) -> Tensor:
    """[N, T] x 2 -> [N, T]: e^r - r - 1. Unbiased, never negative (GRPO: Shao et al. 2024, eq. 4)."""
    r = _log_ratio(logp, ref_logp)
    return r.exp() - r - 1


def kl_k3_reverse(logp: Tensor, ref_logp: Tensor) -> Tensor:
    """[N, T] x 2 -> [N, T]: k3 times the ratio of the policy to its detached self (DeepSeek-V3.2 2025, section 3.1).

    The ratio is 1 and restores the gradient with respect to the sampling distribution, which k3 alone leaves out.
    """
    return (logp - logp.detach()).exp() * kl_k3(logp, ref_logp)


KL: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"k1": kl_k1, "k2": kl_k2, "k3": kl_k3, "k3_reverse": kl_k3_reverse}


def adapt_coefficient(coefficient: float, kl: float, target: float) -> float:
    """PPO's adaptive coefficient (Schulman et al. 2017, section 4): doubled above 1.5 target, halved below 2/3."""
    return coefficient * 2 if kl > 1.5 * target else coefficient / 2 if kl < target / 1.5 else coefficient
