"""Log-probabilities from the output layer in tiles, without storing the logits of a whole batch; with a teacher's
output layer beside it, the KL divergence from the teacher over the whole vocabulary.

Shapes: K states of width H, V tokens.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn

from reasoner.models.embedding_gradients import accumulates_gradient, gradient_sum
from reasoner.models.output_layer import OutputLayer

CPU_ROWS, GPU_ROWS = 2**10, 2**13  # states per tile: for each the head is cast, and its gradient added up, once
CPU_TILE, GPU_TILE = 2**19, 2**26  # logits per tile: fits a CPU's cache; fills a GPU


Teacher = tuple[OutputLayer, Tensor]  # the output layer of a frozen model, and its states [K, H'] before the tokens


def selective_log_softmax(
    layer: OutputLayer,
    states: Tensor,
    token_ids: Tensor,
    *,
    temperature: float,
    learns_entropy: bool,
    teacher: Teacher | None = None,
) -> tuple[Tensor, ...]:
    """States [K, H] and the token sampled after each [K] -> its log-probability at the temperature, and the entropy of
    the distribution in nats, [K] each, in float32 at least.

    With a teacher also KL(policy || teacher) [K] at the same temperature in nats: the sum over the vocabulary of
    p (log p - log q), with a gradient. The teacher may have more ids than the policy, not fewer.

    The softmax is accumulated tile by tile (Milakov and Gimelshein 2018, "Online normalizer calculation for softmax"),
    and a tile's logits are recomputed for its gradient. The entropy has a gradient only if `learns_entropy`.
    """
    head: Any = layer.head  # linear
    scaling, other = _Scaling.of(layer, temperature, states), None
    if teacher is not None:
        own = _Scaling.of(teacher[0], temperature, teacher[1])
        other = _Teacher(own, teacher[0], teacher[1].detach().to(own.dtype))
    outputs: tuple[Tensor, Tensor, Tensor] = _TiledLogProbs.apply(  # type: ignore[no-untyped-call]
        states, head.weight, head.bias, token_ids, layer.num_ids, scaling, learns_entropy, other
    )
    return outputs[:2] if teacher is None else outputs


@dataclass(frozen=True, slots=True)
class _Scaling:
    """What becomes of the head's output, computed in `dtype`: soft cap of (scale x output) / temperature."""

    dtype: torch.dtype
    divisor: float
    bound: float  # 0: no cap

    @classmethod
    def of(cls, layer: OutputLayer, temperature: float, states: Tensor) -> _Scaling:
        head, device = cast(nn.Linear, layer.head), states.device.type
        dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else head.weight.dtype
        return cls(dtype, temperature / layer.scale, layer.soft_cap / temperature)

    def logits(self, states: Tensor, weight: Tensor, bias: Tensor | None, tokens: slice) -> Tensor:
        """[K, H] states in `dtype` -> their logits for the tokens of a tile, in float32 at least."""
        part = None if bias is None else bias[tokens].to(self.dtype)
        logits = _wide(nn.functional.linear(states, weight[tokens].to(self.dtype), part))
        logits = logits if self.divisor == 1 else logits.div_(self.divisor)
        return logits.div_(self.bound).tanh_().mul_(self.bound) if self.bound else logits


@dataclass(frozen=True, slots=True, eq=False)
class _Teacher:
    """A frozen model's output layer, and its states [K, H'] in the precision of the computation."""

    scaling: _Scaling
    layer: OutputLayer
    states: Tensor

    def logits(self, rows: slice, tokens: slice) -> Tensor:
        head: Any = self.layer.head
        return self.scaling.logits(self.states[rows], head.weight, head.bias, tokens)


class _TiledLogProbs(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        states: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        token_ids: Tensor,
        num_ids: int,
        scaling: _Scaling,
        learns_entropy: bool,
        teacher: _Teacher | None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        ctx.num_ids, ctx.scaling, ctx.learns_entropy, ctx.teacher = num_ids, scaling, learns_entropy, teacher
        ctx.sums = _wide(weight[:0]).dtype
        make = {"device": states.device, "dtype": ctx.sums}
        logsumexp, target_logits, mean_logit, mean_gap = (torch.empty(len(states), **make) for _ in range(4))
        teacher_logsumexp = torch.full((len(states),), -torch.inf, **make)
        for rows in row_tiles(states):
            top = torch.full((len(states[rows]),), -torch.inf, **make)
            total, weighted_sum, target_logit, gap_sum = (torch.zeros_like(top) for _ in range(4))
            for tokens, logits in _logits(ctx, states[rows], weight, bias):
                new_top = torch.maximum(top, logits.amax(dim=1))
                rescale = (top - new_top).exp_()
                inside, index = _target_in_tile(token_ids[rows], tokens)
                target_logit = torch.where(inside, logits.gather(1, index)[:, 0], target_logit)
                exp_logits = (logits - new_top[:, None]).exp_()
                total = total * rescale + exp_logits.sum(dim=1)
                if teacher is not None:
                    others = teacher.logits(rows, tokens)
                    teacher_logsumexp[rows] = torch.logaddexp(teacher_logsumexp[rows], others.logsumexp(dim=1))
                    gap_sum = gap_sum * rescale + others.neg_().add_(logits).mul_(exp_logits).sum(dim=1)
                weighted_sum = weighted_sum * rescale + exp_logits.mul_(logits).sum(dim=1)
                top = new_top
            logsumexp[rows], target_logits[rows], mean_logit[rows], mean_gap[rows] = (
                top + total.log(),
                target_logit,
                weighted_sum / total,
                gap_sum / total,
            )
            if teacher is not None:  # the ids that the policy lacks
                for tokens in split(teacher.layer.num_ids, tile_width(states[rows]), start=num_ids):
                    others = teacher.logits(rows, tokens).logsumexp(dim=1)
                    teacher_logsumexp[rows] = torch.logaddexp(teacher_logsumexp[rows], others)
        entropy, kl = logsumexp - mean_logit, mean_gap - (logsumexp - teacher_logsumexp)
        ctx.save_for_backward(states, weight, bias, token_ids, logsumexp, entropy, teacher_logsumexp, kl)
        fixed = [*([] if learns_entropy else [entropy]), *([kl] if teacher is None else [])]
        ctx.mark_non_differentiable(*fixed)
        return target_logits - logsumexp, entropy, kl

    @staticmethod
    def backward(ctx: Any, grad_logprob: Tensor, grad_entropy: Tensor, grad_kl: Tensor) -> tuple[Tensor | None, ...]:
        states, weight, bias, token_ids, logsumexp, entropy, teacher_logsumexp, kl = ctx.saved_tensors
        dtype, divisor, bound, teacher = ctx.scaling.dtype, ctx.scaling.divisor, ctx.scaling.bound, ctx.teacher
        grad_states = torch.zeros_like(states, dtype=ctx.sums)
        grad_weight = None
        if ctx.needs_input_grad[1]:
            is_in_place = accumulates_gradient(weight)
            grad_weight = gradient_sum(weight) if is_in_place else torch.zeros_like(weight, dtype=ctx.sums)
        grad_bias = None if bias is None else torch.zeros_like(bias, dtype=ctx.sums)
        for rows in row_tiles(states):
            logprob_gradient = grad_logprob[rows, None]
            for tokens, logits in _logits(ctx, states[rows], weight, bias):
                slope = 1 - (logits / bound).square() if bound else None  # of the soft cap
                logprobs = logits.sub_(logsumexp[rows, None])
                # d logprob / d logits = onehot(sampled) - p;  d entropy / d logits = -p (log p + entropy);
                # d KL / d logits = p (log p - log q - KL)
                if ctx.learns_entropy:
                    factor = (
                        (logprobs + entropy[rows, None]).mul_(grad_entropy[rows, None]).add_(logprob_gradient).neg_()
                    )
                else:
                    factor = -logprob_gradient
                if teacher is not None:
                    gap = teacher.logits(rows, tokens).sub_(teacher_logsumexp[rows, None]).neg_().add_(logprobs)
                    factor = gap.sub_(kl[rows, None]).mul_(grad_kl[rows, None]).add_(factor)
                gradient = logprobs.exp_().mul_(factor)
                inside, index = _target_in_tile(token_ids[rows], tokens)
                gradient.scatter_add_(1, index, torch.where(inside[:, None], logprob_gradient, 0.0))
                gradient = gradient if slope is None else gradient.mul_(slope)
                gradient = (gradient if divisor == 1 else gradient.div_(divisor)).to(dtype)
                grad_states[rows] += gradient @ weight[tokens].to(dtype)
                if grad_weight is not None:
                    grad_weight[tokens] += gradient.T @ states[rows].to(dtype)
                if grad_bias is not None:
                    grad_bias[tokens] += gradient.sum(dim=0)
        weight_gradient = None if grad_weight is None or is_in_place else grad_weight.to(weight.dtype)
        return grad_states.to(states.dtype), weight_gradient, grad_bias, *[None] * 5


def _logits(ctx: Any, states: Tensor, weight: Tensor, bias: Tensor | None) -> Iterator[tuple[slice, Tensor]]:
    """Yield (tokens, the states' logits for them, divided by the temperature), one tile at a time."""
    states = states.to(ctx.scaling.dtype)
    for tokens in split(ctx.num_ids, tile_width(states)):
        yield tokens, ctx.scaling.logits(states, weight, bias, tokens)


def _wide(tensor: Tensor) -> Tensor:
    """The tensor in float32, or in float64 where it is."""
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


def row_tiles(states: Tensor) -> Iterator[slice]:
    """Yield the slices of the states that share a tile."""
    return split(len(states), CPU_ROWS if states.device.type == "cpu" else GPU_ROWS)


def tile_width(states: Tensor) -> int:
    """Number of vocabulary tokens per tile for these states."""
    tile = CPU_TILE if states.device.type == "cpu" else GPU_TILE
    return max(1, tile // len(states))


def split(length: int, size: int, start: int = 0) -> Iterator[slice]:
    """Yield slices of at most `size` that cover range(start, length)."""
    yield from (slice(begin, min(begin + size, length)) for begin in range(start, length, size))


def _target_in_tile(token_ids: Tensor, tokens: slice) -> tuple[Tensor, Tensor]:
    """[K] bool, whether the sampled token is in the tile, and its index in the tile [K, 1] (0 if it is not)."""
    inside = (token_ids >= tokens.start) & (token_ids < tokens.stop)
    return inside, torch.where(inside, token_ids - tokens.start, 0)[:, None]
