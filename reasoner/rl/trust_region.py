"""Trust regions: limits on how far one update moves the policy from the one that sampled.

The constrained step is TRPO's (Schulman et al. 2015, section 6 and appendix C): maximise the linearised surrogate
subject to mean KL(old || new) <= delta, approximated to second order by the Fisher matrix F. The direction x = F^-1 g
comes from conjugate gradients on products F v, its length is sqrt(2 delta / x'Fx), shortened by a backtracking
line search on the surrogate and the divergence themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

Product = Callable[[Tensor], Tensor]

_ITERATIONS = 10  # of the conjugate gradient
_BACKTRACKS = 10  # steps that are tried, each half as long


@dataclass(frozen=True, slots=True)
class ConstrainedStep:
    """Result of a constrained step."""

    kl: float  # mean KL(old || new) after the step; 0 if none was accepted
    share: float  # fraction of the full step that was accepted: 1, 1/2, 1/4, ...; 0 if none was


def conjugate_gradient(product: Product, target: Tensor, *, iterations: int, tolerance: float = 1e-5) -> Tensor:
    """Solve F x = target approximately for positive definite F, given as v -> F v (Hestenes and Stiefel 1952).

    Stops after `iterations`, or once |F x - target| <= tolerance * |target|.
    """
    x = torch.zeros_like(target)
    residual, direction = target.clone(), target.clone()
    norm_squared = residual @ residual
    threshold = tolerance**2 * norm_squared
    for _ in range(iterations):
        if norm_squared <= threshold:
            break
        fisher_direction = product(direction)
        step = norm_squared / (direction @ fisher_direction)
        x = x + step * direction
        residual = residual - step * fisher_direction
        new_norm_squared = residual @ residual
        direction = residual + (new_norm_squared / norm_squared) * direction
        norm_squared = new_norm_squared
    return x


def constrained_step(
    parameters: Sequence[nn.Parameter],
    gradient: Tensor,
    product: Product,
    measure: Callable[[], tuple[float, float]],
    *,
    delta: float,
) -> ConstrainedStep:
    """Move the parameters by the first tried step that lowers the surrogate loss and has mean KL <= delta.

    `gradient` is the gradient of the surrogate loss; `measure` returns (surrogate loss, mean KL(old || new)) at the
    current parameters. If no step is accepted, the parameters are unchanged.
    """
    direction = conjugate_gradient(product, -gradient, iterations=_ITERATIONS)
    curvature = direction @ product(direction)
    if not torch.isfinite(curvature) or curvature <= 0:
        return ConstrainedStep(0.0, 0.0)
    step = direction * (2 * delta / curvature).sqrt()
    old, (loss_before, _) = nn.utils.parameters_to_vector(parameters).detach(), measure()
    for fraction in (0.5**i for i in range(_BACKTRACKS)):
        _assign(parameters, old + fraction * step)
        loss_after, kl = measure()
        if kl <= delta and loss_after < loss_before:
            return ConstrainedStep(kl, fraction)
    _assign(parameters, old)
    return ConstrainedStep(0.0, 0.0)


def _assign(parameters: Sequence[nn.Parameter], flat: Tensor) -> None:
    offset = 0
    with torch.no_grad():
        for parameter in parameters:
            parameter.copy_(flat[offset : offset + parameter.numel()].view_as(parameter))
            offset += parameter.numel()
