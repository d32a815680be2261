"""Muon in float32 (Jordan 2024): momentum, orthogonalised by Newton-Schulz iterations.

torch.optim.Muon iterates in bfloat16, which takes ten times as long on a processor without bfloat16 units. Here
matrices of one shape are also orthogonalised in one batch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import torch
from torch import Tensor

_COEFFICIENTS = (3.4445, -4.7750, 2.0315)


def orthogonalise(matrices: Tensor, iterations: int = 5) -> Tensor:
    """Orthogonalise matrices: [B, m, n] -> [B, m, n] with the same singular vectors, singular values near 1."""
    a, b, c = _COEFFICIENTS
    tall = matrices.shape[1] > matrices.shape[2]
    x: Tensor = matrices.mT if tall else matrices
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(iterations):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.mT if tall else x


class Muon(torch.optim.Optimizer):
    """Optimiser for matrices: Nesterov momentum, orthogonalised and scaled by sqrt(max(1, m / n))."""

    def __init__(self, params: Iterable[Tensor], *, lr: float, momentum: float = 0.95) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            same_shape: dict[torch.Size, list[Tensor]] = defaultdict(list)
            for parameter in group["params"]:
                if parameter.grad is not None:
                    same_shape[parameter.shape].append(parameter)
            for shape, parameters in same_shape.items():
                updates = orthogonalise(torch.stack([self._nesterov(p, group["momentum"]) for p in parameters]))
                scale = group["lr"] * max(1.0, shape[0] / shape[1]) ** 0.5
                for parameter, update in zip(parameters, updates, strict=True):
                    parameter.sub_(update, alpha=scale)

    def _nesterov(self, parameter: Tensor, momentum: float) -> Tensor:
        """Update the momentum buffer, and return the gradient mixed with it."""
        grad = parameter.grad
        assert grad is not None
        buffer = self.state[parameter].setdefault("momentum", torch.zeros_like(grad))
        buffer.lerp_(grad, 1 - momentum)
        return grad.lerp(buffer, momentum)
