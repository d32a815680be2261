"""Attention of completions to their prompt and to themselves without a mask of [T, L + T].

A completion's token sees its whole prompt and the completion up to itself. As a mask this is T (L + T) numbers a row,
in float32, kept by every layer for the backward pass; and the kernel computes what the mask hides, nearly half of it.
Equal to the masked attention except for rounding:

- On a CPU, for long completions, two calls of torch's fused kernel: the prompt's without a mask and the completion's
  own with `is_causal`, joined by their log-sum-exp; in the backward pass the kernel gets the joint output and
  log-sum-exp (as in Liu et al. 2023, "Ring Attention with Blockwise Transformers").
- On a GPU in bfloat16, one call of torch's flash attention for rows of unequal lengths, packed into one line. It takes
  keys and values of grouped heads as they are; with a mask transformers repeats them for every head.

Shapes: N rows, H heads, G heads of keys and values, T completion positions, L longest prompt, D head size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn.attention.varlen import varlen_attn
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward

LONG_COMPLETION = 512  # tokens: shorter ones have a mask, which is small, and their numbers stay the same to the bit

_flash = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
_flash_backward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward


class PrefixCausalMask(Tensor):
    """The mask [N, 1, T, L + T] as its description: attention that gets it in place of a mask does not need it.

    As a subclass of Tensor it passes through transformers' models unchanged. Any other operation than attention sees
    the mask itself.
    """

    prompt_mask: Tensor  # [N, L] bool, False in the padding
    _places: tuple[Tensor, Tensor] | None = None

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

    def places(self) -> tuple[Tensor, Tensor]:
        """Of the N (L + T) keys those outside the padding, and where each row's begin and end: [N + 1] int32."""
        if self._places is None:  # the same in every layer
            own = self.prompt_mask.new_ones(self.shape[0], self.shape[2])
            visible = torch.cat([self.prompt_mask, own], dim=1)
            self._places = visible.flatten().nonzero()[:, 0], _bounds(visible.sum(dim=1))
        return self._places

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is scaled_dot_product_attention:
            return _attention(*args, **(kwargs or {}))
        return super().__torch_function__(func, types, args, kwargs)  # type: ignore[no-untyped-call]


def avoids_mask(backbone: nn.Module, length: int, device: torch.device) -> bool:
    """Whether completions of `length` tokens take PrefixCausalMask: long ones on a CPU, all where rows are packed."""
    return sees_all(backbone) and (packs_rows(device) or (device.type == "cpu" and length >= LONG_COMPLETION))


def sees_all(backbone: nn.Module) -> bool:
    """Whether all layers attend to every earlier token through torch's scaled_dot_product_attention."""
    config: Any = getattr(backbone, "config", None)
    if getattr(config, "_attn_implementation", None) != "sdpa":
        return False
    kinds = set(getattr(config, "layer_types", None) or ()) - {"full_attention"}
    return not kinds and getattr(config, "sliding_window", None) is None


def packs_rows(device: torch.device) -> bool:
    """Whether flash attention takes packed rows here: under autocast on a GPU that has bfloat16."""
    is_low = device.type == "cuda" and torch.is_autocast_enabled("cuda")
    has_kernel = is_low and torch.cuda.is_bf16_supported(including_emulation=False)
    return has_kernel and torch.backends.cuda.flash_sdp_enabled()  # type: ignore[no-untyped-call]


def attend(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **kwargs: Any
) -> tuple[Tensor, None]:
    """transformers' attention through torch, which packs rows where it can: [N, H, T, D] queries, [N, G, L + T, D] keys
    and values -> [N, T, H, D].
    """
    size = key.shape[-1]
    has_kernel = size == value.shape[-1] and size % 8 == 0 and size <= 256
    if has_kernel and isinstance(attention_mask, PrefixCausalMask) and packs_rows(query.device):
        return _packed_attention(query, key, value, attention_mask, kwargs.get("scaling")), None
    output, _ = sdpa_attention_forward(module, query, key, value, attention_mask, **kwargs)
    return output, None


AttentionInterface.register("sdpa", attend)


def _packed_attention(query: Tensor, key: Tensor, value: Tensor, mask: PrefixCausalMask, scale: float | None) -> Tensor:
    rows, heads, length, size = query.shape
    places, bounds = mask.places()
    if torch.is_autocast_enabled(query.device.type):
        query, key, value = (one.to(torch.get_autocast_dtype(query.device.type)) for one in (query, key, value))
    queries = query.transpose(1, 2).reshape(rows * length, heads, size)
    keys, values = (_Pack.apply(one.transpose(1, 2).flatten(0, 1), places) for one in (key, value))  # type: ignore[no-untyped-call]
    output = varlen_attn(
        *(queries, keys, values, _bounds(bounds.new_full((rows,), length)), bounds, length, key.shape[2]),
        scale=scale,
        window_size=(-1, 0),  # causal, with the last query beside the last key
        enable_gqa=heads != key.shape[1],
    )
    assert isinstance(output, Tensor)
    return output.view(rows, length, heads, size)


def _bounds(lengths: Tensor) -> Tensor:
    """[N] -> [N + 1] int32: where each row begins and ends in a line of all rows."""
    return nn.functional.pad(lengths.cumsum(0), (1, 0)).int()


class _Pack(torch.autograd.Function):
    """Rows of a tensor, none of them twice: index_select, whose gradient need not be added up."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, places: Tensor) -> Tensor:
        ctx.save_for_backward(places)
        ctx.shape = tensor.shape
        return tensor.index_select(0, places)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (places,) = ctx.saved_tensors
        return gradient.new_zeros(ctx.shape).index_copy_(0, places, gradient), None


def _attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: PrefixCausalMask, scale: float | None = None, **kwargs: Any
) -> Tensor:
    """[N, H, T, D] queries; [N, H, L + T, D] keys and values -> [N, H, T, D]."""
    is_fused = torch.backends.cuda.flash_sdp_enabled()  # type: ignore[no-untyped-call]
    # sdpa_kernel(MATH) asks for what can be differentiated twice; the kernel is a CPU's, for heads of one size alone
    # (DeepSeek has two).
    if not is_fused or query.device.type != "cpu" or query.shape[-1] != value.shape[-1]:
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
    return ((key[:, :, :width], value[:, :, :width], False), (key[:, :, width:], value[:, :, width:], True))
