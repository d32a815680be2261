"""Estimators of KL(policy || reference) from the sampled tokens (Schulman 2020, "Approximating KL divergence"), and the
controller that adapts the penalty's coefficient to a target.

With r = log reference - log policy at the sampled token. The values of all estimators estimate the same divergence; as
terms of a loss they have different gradients. On-policy, the expected gradient of k1 is zero, that of k2 is the
divergence's, and that of k3 (in the GRPO paper) is the gradient of the reverse divergence, KL(reference || policy);
k3_reverse has the value of k3 and the expected gradient of KL(policy || reference).
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from reasoner.rl.losses import MAX_LOG_RATIO


def _log_ratio(logp: Tensor, ref_logp: Tensor) -> Tensor:
    return (ref_logp - logp).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)


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
    """[N, T] x 2 -> [N, T]: k3 times the ratio of the policy to its detached self.

    The ratio is 1 and restores the gradient with respect to the sampling distribution, which k3 alone leaves out. In a
    step's first update it is DeepSeek-V3.2's estimator (2025, section 3.1), whose ratio is to the policy that sampled.
    """
    return (logp - logp.detach()).exp() * kl_k3(logp, ref_logp)


KL: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"k1": kl_k1, "k2": kl_k2, "k3": kl_k3, "k3_reverse": kl_k3_reverse}


def response_kl(logprobs: Tensor, ref_logprobs: Tensor, mask: Tensor) -> Tensor:
    """[N, T] x 2, [N, T] bool mask -> []: mean over the responses of log policy - log reference, summed over their
    tokens, in nats. With the log-probabilities of the policy that sampled it is an unbiased estimate of the KL of a
    whole response.
    """
    return ((logprobs - ref_logprobs) * mask).sum(dim=1).mean()


def adapt_coefficient(coefficient: float, kl: float, target: float, *, share: float) -> float:
    """The coefficient times 1 + e share, where e is the relative error of the KL, clipped to 0.2 (Ziegler et al. 2019,
    section 2.2). `share` is the step's responses divided by the horizon.
    """
    error = min(0.2, max(-0.2, kl / target - 1))
    return coefficient * max(0.0, 1 + error * share)
