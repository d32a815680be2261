"""Log-probabilities from the output layer in tiles, without storing the logits of a whole batch.

Shapes: K states of width H, V tokens.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from reasoner.models.embedding_gradients import accumulates_gradient, gradient_sum
from reasoner.models.output_layer import OutputLayer

CPU_ROWS, GPU_ROWS = 2**10, 2**13  # states per tile: for each the head is cast, and its gradient added up, once
CPU_TILE, GPU_TILE = 2**19, 2**26  # logits per tile: fits a CPU's cache; fills a GPU


def selective_log_softmax(
    layer: OutputLayer, states: Tensor, token_ids: Tensor, *, temperature: float, learns_entropy: bool
) -> tuple[Tensor, Tensor]:
    """States [K, H] and the token sampled after each [K] -> its log-probability at the temperature, and the entropy of
    the distribution in nats, [K] each, in float32.

    The softmax is accumulated tile by tile (Milakov and Gimelshein 2018, "Online normalizer calculation for softmax"),
    and a tile's logits are recomputed for its gradient. The entropy has a gradient only if `learns_entropy`.
    """
    head: Any = layer.head  # linear
    outputs: tuple[Tensor, Tensor] = _TiledLogProbs.apply(  # type: ignore[no-untyped-call]
        states, head.weight, head.bias, token_ids, layer, temperature, learns_entropy
    )
    return outputs


class _TiledLogProbs(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        states: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        token_ids: Tensor,
        layer: OutputLayer,
        temperature: float,
        learns_entropy: bool,
    ) -> tuple[Tensor, Tensor]:
        device = states.device.type
        ctx.dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else weight.dtype
        ctx.num_ids, ctx.learns_entropy = layer.num_ids, learns_entropy
        # soft cap of (scale x head's output) / temperature
        ctx.divisor, ctx.bound = temperature / layer.scale, layer.soft_cap / temperature
        logsumexp, target_logits, mean_logit = (torch.empty(len(states), device=states.device) for _ in range(3))
        for rows in row_tiles(states):
            top = torch.full((len(states[rows]),), -torch.inf, device=states.device)
            total, weighted_sum, target_logit = torch.zeros_like(top), torch.zeros_like(top), torch.zeros_like(top)
            for tokens, logits in _logits(ctx, states[rows], weight, bias):
                new_top = torch.maximum(top, logits.amax(dim=1))
                rescale = (top - new_top).exp_()
                inside, index = _target_in_tile(token_ids[rows], tokens)
                target_logit = torch.where(inside, logits.gather(1, index)[:, 0], target_logit)
                exp_logits = (logits - new_top[:, None]).exp_()
                total = total * rescale + exp_logits.sum(dim=1)
                weighted_sum = weighted_sum * rescale + exp_logits.mul_(logits).sum(dim=1)
                top = new_top
            logsumexp[rows], target_logits[rows], mean_logit[rows] = (
                top + total.log(),
                target_logit,
                weighted_sum / total,
            )
        ctx.save_for_backward(states, weight, bias, token_ids, logsumexp, entropy := logsumexp - mean_logit)
        if not learns_entropy:
            ctx.mark_non_differentiable(entropy)
        return target_logits - logsumexp, entropy

    @staticmethod
    def backward(ctx: Any, grad_logprob: Tensor, grad_entropy: Tensor) -> tuple[Tensor | None, ...]:
        states, weight, bias, token_ids, logsumexp, entropy = ctx.saved_tensors
        grad_states = torch.zeros_like(states, dtype=torch.float32)
        grad_weight = None
        if ctx.needs_input_grad[1]:
            is_in_place = accumulates_gradient(weight)
            grad_weight = gradient_sum(weight) if is_in_place else torch.zeros_like(weight, dtype=torch.float32)
        grad_bias = None if bias is None else torch.zeros_like(bias, dtype=torch.float32)
        for rows in row_tiles(states):
            logprob_gradient = grad_logprob[rows, None]
            for tokens, logits in _logits(ctx, states[rows], weight, bias):
                slope = 1 - (logits / ctx.bound).square() if ctx.bound else None  # of the soft cap
                logprobs = logits.sub_(logsumexp[rows, None])
                # d logprob / d logits = onehot(sampled) - p;  d entropy / d logits = -p (log p + entropy)
                if ctx.learns_entropy:
                    factor = (
                        (logprobs + entropy[rows, None]).mul_(grad_entropy[rows, None]).add_(logprob_gradient).neg_()
                    )
                else:
                    factor = -logprob_gradient
                gradient = logprobs.exp_().mul_(factor)
                inside, index = _target_in_tile(token_ids[rows], tokens)
                gradient.scatter_add_(1, index, torch.where(inside[:, None], logprob_gradient, 0.0))
                gradient = gradient if slope is None else gradient.mul_(slope)
                gradient = (gradient if ctx.divisor == 1 else gradient.div_(ctx.divisor)).to(ctx.dtype)
                grad_states[rows] += gradient @ weight[tokens].to(ctx.dtype)
                if grad_weight is not None:
                    grad_weight[tokens] += gradient.T @ states[rows].to(ctx.dtype)
                if grad_bias is not None:
                    grad_bias[tokens] += gradient.sum(dim=0)
        weight_gradient = None if grad_weight is None or is_in_place else grad_weight.to(weight.dtype)
        return grad_states.to(states.dtype), weight_gradient, grad_bias, None, None, None, None


def _logits(ctx: Any, states: Tensor, weight: Tensor, bias: Tensor | None) -> Iterator[tuple[slice, Tensor]]:
    """Yield (tokens, the states' logits for them in float32, divided by the temperature), one tile at a time."""
    states = states.to(ctx.dtype)
    for tokens in split(ctx.num_ids, tile_width(states)):
        part = None if bias is None else bias[tokens].to(ctx.dtype)
        logits = nn.functional.linear(states, weight[tokens].to(ctx.dtype), part).float()
        logits = logits if ctx.divisor == 1 else logits.div_(ctx.divisor)
        yield tokens, logits.div_(ctx.bound).tanh_().mul_(ctx.bound) if ctx.bound else logits


def row_tiles(states: Tensor) -> Iterator[slice]:
    """Yield the slices of the states that share a tile."""
    return split(len(states), CPU_ROWS if states.device.type == "cpu" else GPU_ROWS)


def tile_width(states: Tensor) -> int:
    """Number of vocabulary tokens per tile for these states."""
    tile = CPU_TILE if states.device.type == "cpu" else GPU_TILE
    return max(1, tile // len(states))


def split(length: int, size: int) -> Iterator[slice]:
    """Yield slices of at most `size` that cover range(length)."""
    yield from (slice(start, min(start + size, length)) for start in range(0, length, size))


def _target_in_tile(token_ids: Tensor, tokens: slice) -> tuple[Tensor, Tensor]:
    """[K] bool, whether the sampled token is in the tile, and its index in the tile [K, 1] (0 if it is not)."""
    inside = (token_ids >= tokens.start) & (token_ids < tokens.stop)
    return inside, torch.where(inside, token_ids - tokens.start, 0)[:, None]
