"""Attention of long completions to their prompt and to themselves on a CPU, without a mask of [T, L + T].

A completion's token sees its whole prompt and the completion up to itself. As a mask this is T (L + T) numbers a row,
in float32, kept by every layer for the backward pass; and the kernel computes what the mask hides, nearly half of it.
So two calls of torch's fused kernel instead, the prompt's without a mask and the completion's own with `is_causal`,
joined by their log-sum-exp; in the backward pass the kernel gets the joint output and log-sum-exp (as in Liu et al.
2023, "Ring Attention with Blockwise Transformers"). Equal to the masked attention except for rounding.

Shapes: N rows, H heads, T completion positions, L longest prompt, D head size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

LONG_COMPLETION = 512  # tokens: shorter ones have a mask, which is small, and their numbers stay the same to the bit

_flash = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
_flash_backward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward


class PrefixCausalMask(Tensor):
    """The mask [N, 1, T, L + T] as its description: attention that gets it in place of a mask does not need it.

    As a subclass of Tensor it passes through transformers' models unchanged. Any other operation than attention sees
    the mask itself.
    """

    prompt_mask: Tensor  # [N, L] bool, False in the padding

    @classmethod
    def of(cls, prompt_mask: Tensor, length: int) -> Self:
        """`prompt_mask` [N, L], 0 in the padding; `length` T."""
        rows, width = prompt_mask.shape
        everything = torch.ones((), dtype=torch.bool, device=prompt_mask.device)
        mask = everything.expand(rows, 1, length, width + length).as_subclass(cls)
        mask.prompt_mask = prompt_mask.bool()
        return mask

    def dense(self) -> Tensor:
        """[N, 1, T, L + T] bool."""
        rows, length = self.shape[0], self.shape[2]
        own = torch.ones(length, length, dtype=torch.bool, device=self.prompt_mask.device).tril()
        prompt = self.prompt_mask[:, None].expand(rows, length, -1)
        return torch.cat([prompt, own.expand(rows, -1, -1)], dim=2)[:, None]

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is scaled_dot_product_attention:
            return _attention(*args, **(kwargs or {}))
        return super().__torch_function__(func, types, args, kwargs)  # type: ignore[no-untyped-call]


def avoids_mask(backbone: nn.Module, length: int, device: torch.device) -> bool:
    """Whether completions of `length` tokens take PrefixCausalMask: long ones on a CPU, in models whose layers all
    attend to every earlier token through torch's scaled_dot_product_attention.
    """
    config: Any = getattr(backbone, "config", None)
    if device.type != "cpu" or length < LONG_COMPLETION or getattr(config, "_attn_implementation", None) != "sdpa":
        return False
    kinds = set(getattr(config, "layer_types", None) or ()) - {"full_attention"}
    return not kinds and getattr(config, "sliding_window", None) is None


def _attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: PrefixCausalMask, scale: float | None = None, **kwargs: Any
) -> Tensor:
    """[N, H, T, D] queries; [N, H, L + T, D] keys and values -> [N, H, T, D]."""
    is_fused = torch.backends.cuda.flash_sdp_enabled()  # type: ignore[no-untyped-call]
    if not is_fused:  # sdpa_kernel(MATH) asks for what can be differentiated twice
        return scaled_dot_product_attention(query, key, value, attn_mask=attn_mask.dense(), scale=scale, **kwargs)
    if torch.is_autocast_enabled("cpu"):
        query, key, value = (tensor.to(torch.get_autocast_dtype("cpu")) for tensor in (query, key, value))
    visible = attn_mask.prompt_mask
    bias = None if visible.all() else torch.zeros(visible.shape, dtype=query.dtype).masked_fill_(~visible, -torch.inf)
    output: Tensor = _PrefixAttention.apply(  # type: ignore[no-untyped-call]
        query, key, value, None if bias is None else bias[:, None, None], visible.shape[1], scale
    )
    return output


class _PrefixAttention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None, width: int, scale: float | None
    ) -> Tensor:
        """`bias` [N, 1, 1, L] is added to the scores of the prompt; `width` L."""
        parts = [
            _flash(query, keys, values, 0.0, is_own, attn_mask=None if is_own else bias, scale=scale)
            for keys, values, is_own in _parts(key, value, width)
        ]
        logsumexp = torch.logaddexp(parts[0][1], parts[1][1])
        prompt, own = (output * (part - logsumexp).exp()[..., None] for output, part in parts)
        joint: Tensor = (prompt + own).to(query.dtype)
        ctx.save_for_backward(query, key, value, bias, joint, logsumexp)
        ctx.width, ctx.scale = width, scale
        return joint

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, bias, output, logsumexp = ctx.saved_tensors
        gradient = gradient if gradient.stride(-1) == 1 else gradient.contiguous()
        (of_query, *of_prompt), (more, *of_own) = (
            _flash_backward(
                *(gradient, query, keys, values, output, logsumexp, 0.0, is_own),
                attn_mask=None if is_own else bias,
                scale=ctx.scale,
            )
            for keys, values, is_own in _parts(key, value, ctx.width)
        )
        of_key, of_value = (torch.cat(pair, dim=2) for pair in zip(of_prompt, of_own, strict=True))
        return of_query + more, of_key, of_value, None, None, None


def _parts(key: Tensor, value: Tensor, width: int) -> tuple[tuple[Tensor, Tensor, bool], ...]:
    """(keys, values, whether they are the completion's own) of the prompt, then of the completion."""
    return (
        (key[:, :, :width], value[:, :, :width], False),
        (key[:, :, width:], value[:, :, width:], True),
    )
