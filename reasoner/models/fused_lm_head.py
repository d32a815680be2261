"""The last layer of a language model in tiles: log-probabilities without the logits of a whole batch.

Shapes: K states of width H, V tokens.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

ROWS = 1024  # states of a tile
CPU_TILE, GPU_TILE = 2**19, 2**26  # logits of a tile: what a CPU's cache holds, what fills a GPU


def drawn_logprobs(
    head: nn.Linear, states: Tensor, drawn: Tensor, *, temperature: float, learns_entropy: bool
) -> tuple[Tensor, Tensor]:
    """Last states [K, H] and the token drawn after each [K] -> its log-probability at the temperature, and the entropy
    of the distribution, [K] each, in float32.

    The softmax is folded tile by tile (Milakov and Gimelshein 2018, "Online normalizer calculation for softmax"), and
    a tile's logits are made again for its gradient. The entropy has a gradient only where it is learnt from.
    """
    found: tuple[Tensor, Tensor] = _Tiled.apply(states, head.weight, head.bias, drawn, temperature, learns_entropy)
    return found


class _Tiled(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        states: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        drawn: Tensor,
        temperature: float,
        learns_entropy: bool,
    ) -> tuple[Tensor, Tensor]:
        device = states.device.type
        ctx.dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else weight.dtype
        ctx.temperature, ctx.learns_entropy = temperature, learns_entropy
        logsumexp, chosen, mean = (torch.empty(len(states), device=states.device) for _ in range(3))
        for rows in split(len(states), ROWS):
            top = torch.full((len(states[rows]),), -torch.inf, device=states.device)
            total, weighed, own = torch.zeros_like(top), torch.zeros_like(top), torch.zeros_like(top)
            for tokens, logits in _logits(ctx, states[rows], weight, bias):
                higher = torch.maximum(top, logits.amax(dim=1))
                shrunk = (top - higher).exp_()
                inside, index = _inside(drawn[rows], tokens)
                own = torch.where(inside, logits.gather(1, index)[:, 0], own)
                share = (logits - higher[:, None]).exp_()
                total = total * shrunk + share.sum(dim=1)
                weighed = weighed * shrunk + share.mul_(logits).sum(dim=1)
                top = higher
            logsumexp[rows], chosen[rows], mean[rows] = top + total.log(), own, weighed / total
        ctx.save_for_backward(states, weight, bias, drawn, logsumexp, entropy := logsumexp - mean)
        if not learns_entropy:
            ctx.mark_non_differentiable(entropy)
        return chosen - logsumexp, entropy

    @staticmethod
    def backward(ctx: Any, of_logprob: Tensor, of_entropy: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        states, weight, bias, drawn, logsumexp, entropy = ctx.saved_tensors
        to_states = torch.zeros_like(states, dtype=torch.float32)
        to_weight = torch.zeros_like(weight, dtype=torch.float32)
        to_bias = None if bias is None else torch.zeros_like(bias, dtype=torch.float32)
        for rows in split(len(states), ROWS):
            pull = of_logprob[rows, None]
            for tokens, logits in _logits(ctx, states[rows], weight, bias):
                logprobs = logits.sub_(logsumexp[rows, None])
                # d logprob / d logits = [drawn] - p;  d entropy / d logits = -p (log p + entropy)
                if ctx.learns_entropy:
                    factor = (logprobs + entropy[rows, None]).mul_(of_entropy[rows, None]).add_(pull).neg_()
                else:
                    factor = -pull
                gradient = logprobs.exp_().mul_(factor)
                inside, index = _inside(drawn[rows], tokens)
                gradient.scatter_add_(1, index, torch.where(inside[:, None], pull, 0.0))
                gradient = gradient.div_(ctx.temperature).to(ctx.dtype)
                to_states[rows] += gradient @ weight[tokens].to(ctx.dtype)
                to_weight[tokens] += gradient.T @ states[rows].to(ctx.dtype)
                if to_bias is not None:
                    to_bias[tokens] += gradient.sum(dim=0)
        return to_states.to(states.dtype), to_weight.to(weight.dtype), to_bias, None, None, None


def _logits(ctx: Any, states: Tensor, weight: Tensor, bias: Tensor | None) -> Iterator[tuple[slice, Tensor]]:
    """(tokens, logits of the states for them, in float32, over the temperature), a tile at a time."""
    states = states.to(ctx.dtype)
    for tokens in split(len(weight), tile_width(states)):
        part = None if bias is None else bias[tokens].to(ctx.dtype)
        logits = nn.functional.linear(states, weight[tokens].to(ctx.dtype), part).float()
        yield tokens, logits.div_(ctx.temperature)


def tile_width(states: Tensor) -> int:
    """Tokens of a tile for these states."""
    tile = CPU_TILE if states.device.type == "cpu" else GPU_TILE
    return max(1, tile // len(states))


def split(length: int, size: int) -> Iterator[slice]:
    """Slices of at most `size` that cover 0 to `length`."""
    yield from (slice(start, min(start + size, length)) for start in range(0, length, size))


def _inside(drawn: Tensor, tokens: slice) -> tuple[Tensor, Tensor]:
    """[K] whether the drawn token is among these, and [K, 1] where (0 where it is not)."""
    inside = (drawn >= tokens.start) & (drawn < tokens.stop)
    return inside, torch.where(inside, drawn - tokens.start, 0)[:, None]
