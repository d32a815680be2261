"""Trust regions: how far one update may carry the policy from the one that sampled.

The constrained step is TRPO's (Schulman et al. 2015, section 6 and appendix C): maximise the surrogate's linear part
subject to mean KL(old || new) <= delta, whose second-order part is the Fisher matrix F: direction F^-1 g by conjugate
gradients on products F v, length sqrt(2 delta / x'Fx), then a backtracking line search on the surrogate and the
divergence themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

Product = Callable[[Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class Stepped:
    """What a constrained step did."""

    kl: float  # mean KL(old || new) after it; 0 where nothing was accepted
    share: float  # of the full step that the line search took: 1, 1/2, 1/4, ..., 0 = none
    gain: float  # how much the surrogate loss fell


def conjugate_gradient(product: Product, target: Tensor, *, iterations: int, tolerance: float = 1e-5) -> Tensor:
    """x with F x = target, nearly: F positive definite and known by its products alone (Hestenes and Stiefel 1952).

    Ends after `iterations`, or once |F x - target| <= tolerance * |target|.
    """
    x = torch.zeros_like(target)
    residual, direction = target.clone(), target.clone()
    size = residual @ residual
    smallest = tolerance**2 * size
    for _ in range(iterations):
        if size <= smallest:
            break
        along = product(direction)
        step = size / (direction @ along)
        x = x + step * direction
        residual = residual - step * along
        fresh = residual @ residual
        direction = residual + (fresh / size) * direction
        size = fresh
    return x


def constrained_step(
    parameters: Sequence[nn.Parameter],
    gradient: Tensor,
    product: Product,
    measure: Callable[[], tuple[float, float]],
    *,
    delta: float,
    iterations: int = 10,
    backtracks: int = 10,
) -> Stepped:
    """Move the parameters, or leave them as they are where no step lowers the surrogate loss within delta.

    `gradient` is that of the surrogate loss; `measure` gives (surrogate loss, mean KL(old || new)) at the parameters as
    they stand.
    """
    direction = conjugate_gradient(product, -gradient, iterations=iterations)
    curvature = direction @ product(direction)
    if not torch.isfinite(curvature) or curvature <= 0:
        return Stepped(0.0, 0.0, 0.0)
    step = direction * (2 * delta / curvature).sqrt()
    old, (before, _) = _flat(parameters), measure()
    for share in (0.5**i for i in range(backtracks)):
        _put(parameters, old + share * step)
        after, kl = measure()
        if kl <= delta and after < before:
            return Stepped(kl, share, before - after)
    _put(parameters, old)
    return Stepped(0.0, 0.0, 0.0)


def adapted(coefficient: float, kl: float, target: float) -> float:
    """PPO's adaptive penalty (Schulman et al. 2017, section 4): doubled above 1.5 targets, halved below 1 / 1.5."""
    return coefficient * 2 if kl > 1.5 * target else coefficient / 2 if kl < target / 1.5 else coefficient


def _flat(parameters: Sequence[nn.Parameter]) -> Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in parameters])


def _put(parameters: Sequence[nn.Parameter], flat: Tensor) -> None:
    at = 0
    with torch.no_grad():
        for parameter in parameters:
            parameter.copy_(flat[at : at + parameter.numel()].view_as(parameter))
            at += parameter.numel()
