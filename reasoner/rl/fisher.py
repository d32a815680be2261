"""Products of the Fisher matrix of a language model with a vector.

F = mean over tokens of J' (diag p - p p') J, where J is the derivative of a token's logits with respect to the
parameters. It is the second derivative of KL(old || new) at new = old (Schulman et al. 2015, appendix C), written as a
Gauss-Newton product (Martens 2020, "New insights and perspectives on the natural gradient method", section 9).

J v is computed in forward mode through the backbone (two backward passes, the "double backward" trick) and in closed
form through the head, whose logits are computed in tiles: no tensor has the size states x vocabulary.

Shapes: K states of width H, V tokens, D parameters in all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from reasoner.distributed.world import ALONE, World
from reasoner.models.fused_lm_head import row_tiles, split, tile_width
from reasoner.models.output_layer import OutputLayer

States = Callable[[], Tensor]


class FisherProduct:
    """v [D] -> (F + damping) v, from blocks of tokens that are each small enough to be differentiated twice.

    Each of `blocks` is a function that returns the last states [K, H] of its tokens, with their graph. The graph of a
    single block is kept between products; with several blocks, one graph is in memory at a time and is rebuilt for
    every product. Each rank of `world` has blocks of its own, and a product is a collective operation.
    """

    def __init__(
        self,
        blocks: Sequence[States],
        layer: OutputLayer,
        parameters: Sequence[nn.Parameter],
        *,
        temperature: float,
        damping: float,
        world: World = ALONE,
    ) -> None:
        if type(layer.head) is not nn.Linear or layer.soft_cap:
            kind = "one with a soft cap" if layer.soft_cap else type(layer.head).__name__
            raise ValueError(f"algo.trust constrained needs a linear output layer, not {kind}")
        self._head, self._num_ids, self._parameters, self._blocks = layer.head, layer.num_ids, parameters, blocks
        self._temperature, self._damping, self._world = temperature / layer.scale, damping, world
        self._only = _Linearised.of(blocks[0], parameters) if len(blocks) == 1 else None

    def __call__(self, v: Tensor) -> Tensor:
        tangents, head = _shaped_like(self._parameters, v), self._head
        tangent_of = {id(parameter): tangent for parameter, tangent in zip(self._parameters, tangents, strict=True)}
        of_head = tangent_of.get(id(head.weight)), tangent_of.get(id(head.bias))
        total, count = torch.zeros_like(v), 0
        for block in self._blocks:
            backbone = self._only or _Linearised.of(block, self._parameters)
            to_states, *to_head = self._curvature(backbone.states.detach(), backbone.push_forward(tangents), *of_head)
            parts = dict(zip(map(id, self._parameters), backbone.pull_back(to_states), strict=True))
            for tensor, gradient in zip((head.weight, head.bias), to_head, strict=True):
                if gradient is not None:
                    parts[id(tensor)] = parts[id(tensor)] + gradient
            total += torch.cat([parts[id(parameter)].flatten() for parameter in self._parameters])
            count += len(backbone.states)
            del backbone, parts  # else the next block's graph would be built beside this one's
        self._world.sum_(total, "a product with the Fisher matrix")
        count = round(self._world.total(count, "the tokens of the Fisher matrix"))
        return total / max(1, count) + self._damping * v

    @torch.no_grad()
    def _curvature(
        self, states: Tensor, tangent: Tensor, weight_tangent: Tensor | None, bias_tangent: Tensor | None
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """(diag p - p p') J v, pulled back to the states [K, H] and to the head's weight [V, H] and bias [V], from the
        states and the tangents of all three; None for a part of the head that is not trained.

        With z = (W s + b) / temperature, p = softmax(z) and u = dz, the gradient of the logits is p (u - p'u). Two
        passes over tiles of the vocabulary compute the normaliser with p'u, then the gradient.
        """
        head = self._head
        to_states = torch.zeros_like(states)
        to_weight = None if weight_tangent is None else torch.zeros_like(head.weight)
        to_bias = None if bias_tangent is None else torch.zeros_like(head.bias)

        def tiles(rows: slice) -> Iterator[tuple[slice, Tensor, Tensor]]:
            for tokens in split(self._num_ids, tile_width(states[rows])):
                weight = head.weight[tokens].to(states.dtype)
                logits = states[rows] @ weight.T
                jvp = tangent[rows] @ weight.T
                if weight_tangent is not None:
                    jvp += states[rows] @ weight_tangent[tokens].T
                if head.bias is not None:
                    logits += head.bias[tokens]
                if bias_tangent is not None:
                    jvp += bias_tangent[tokens]
                yield tokens, logits.div_(self._temperature), jvp.div_(self._temperature)

        for rows in row_tiles(states):
            top = torch.full((len(states[rows]), 1), -torch.inf, device=states.device, dtype=states.dtype)
            total, mean = torch.zeros_like(top), torch.zeros_like(top)
            for _, logits, jvp in tiles(rows):
                new_top = torch.maximum(top, logits.amax(dim=1, keepdim=True))
                exp_logits, rescale = (logits - new_top).exp(), (top - new_top).exp()
                total = total * rescale + exp_logits.sum(dim=1, keepdim=True)
                mean = mean * rescale + (exp_logits * jvp).sum(dim=1, keepdim=True)
                top = new_top
            mean = mean / total
            for tokens, logits, jvp in tiles(rows):
                gradient = (logits - top).exp().div_(total).mul_(jvp - mean).div_(self._temperature)
                to_states[rows] += gradient @ head.weight[tokens].to(states.dtype)
                if to_weight is not None:
                    to_weight[tokens] += gradient.T @ states[rows]
                if to_bias is not None:
                    to_bias[tokens] += gradient.sum(dim=0)
        return to_states, to_weight, to_bias


@dataclass(frozen=True, slots=True, eq=False)
class _Linearised:
    """The states of a block, linearised around the current parameters."""

    states: Tensor  # [K, H], with their graph
    parameters: Sequence[nn.Parameter]
    cotangent: Tensor  # [K, H], an auxiliary variable; its value does not matter
    vjp: tuple[Tensor | None, ...]  # J' cotangent, differentiable with respect to the cotangent

    @classmethod
    def of(cls, block: States, parameters: Sequence[nn.Parameter]) -> _Linearised:
        with sdpa_kernel(SDPBackend.MATH):  # the fused kernels have no second derivative
            states = block()
            cotangent = torch.zeros_like(states, requires_grad=True)
            vjp = torch.autograd.grad(states, parameters, cotangent, create_graph=True, allow_unused=True)
        return cls(states, parameters, cotangent, vjp)

    def push_forward(self, tangents: Sequence[Tensor]) -> Tensor:
        """J v [K, H], computed as the derivative of v' J' u with respect to u."""
        pairs = [(own, v) for own, v in zip(self.vjp, tangents, strict=True) if own is not None]
        (jvp,) = torch.autograd.grad(
            [own for own, _ in pairs], self.cotangent, [v for _, v in pairs], retain_graph=True
        )
        return jvp

    def pull_back(self, gradient: Tensor) -> tuple[Tensor, ...]:
        """J' times a [K, H] gradient: one tensor per parameter."""
        gradients = torch.autograd.grad(self.states, self.parameters, gradient, retain_graph=True, allow_unused=True)
        return tuple(torch.zeros_like(p) if g is None else g for p, g in zip(self.parameters, gradients, strict=True))


def _shaped_like(parameters: Sequence[nn.Parameter], flat: Tensor) -> list[Tensor]:
    """[D] -> a list of views, one in the shape of each parameter."""
    parts = torch.split(flat, [parameter.numel() for parameter in parameters])
    return [part.view_as(parameter) for part, parameter in zip(parts, parameters, strict=True)]
