"""The loss of every token: surrogate, KL term and entropy bonus of an algorithm's row.

The gradient and TRPO's line search both use it, so that they share one objective. Nothing here reduces.

Shapes: N rows, T completion positions.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from reasoner.config.algorithm import AlgoConfig
from reasoner.rl.algorithms import Algorithm
from reasoner.rl.batch import Batch
from reasoner.rl.kl import KL, kl_k3
from reasoner.rl.losses import RATIOS, sampler_weights
from reasoner.rl.surrogates import SURROGATES


@dataclass(frozen=True, slots=True, eq=False)
class TokenTerms:
    """[N, T] each; undefined in the padding, where the weights are 0."""

    loss: Tensor  # before weighting
    ratio: Tensor  # policy / old policy
    old_logprobs: Tensor  # of the policy before the step; the current ones, detached, if there is one update
    importance: Tensor  # weights of the correction for the sampler: losses.sampler_weights()
    kl: Tensor | None  # to the reference, if there is one


def token_terms(
    logprobs: Tensor,
    entropy: Tensor,
    rows: Batch,
    algorithm: Algorithm,
    cfg: AlgoConfig,
    *,
    correction: str,
    beta: float,
    penalty: float,
) -> TokenTerms:
    """[N, T] log-probabilities and entropies of the current policy -> loss of each token and its parts.

    loss = importance * (surrogate + penalty * KL(old || new)) + beta * KL(policy || reference)
           - algo.entropy_coef * entropy      (docs/ALGORITHMS.md)
    `correction` is a row of losses.CORRECTIONS or "none"; `beta` and `penalty` are the current coefficients, which may
    adapt during the run.
    """
    mask = rows.mask
    old = logprobs.detach() if rows.old_logprobs is None else rows.old_logprobs
    ratio = RATIOS[algorithm.ratio](logprobs, old, mask)
    bounds = {"low": cfg.importance_clip_min, "high": cfg.importance_clip_max}
    importance = sampler_weights(old, rows.sampler_logprobs, mask, how=correction, **bounds)
    clip = {"low": algorithm.clip_low, "high": algorithm.clip_high, "dual": algorithm.dual_clip}
    surrogate = SURROGATES[algorithm.surrogate].loss(ratio, logprobs, rows.advantages, **clip)
    if algorithm.trust == "penalty":
        surrogate = surrogate + penalty * kl_k3(old, logprobs)
    kl = None if rows.ref_logprobs is None else KL[algorithm.kl](logprobs, rows.ref_logprobs)
    loss = importance * surrogate
    if kl is not None and algorithm.kl_in == "loss":
        loss = loss + beta * kl
    return TokenTerms(loss - cfg.entropy_coef * entropy, ratio, old, importance, kl)
