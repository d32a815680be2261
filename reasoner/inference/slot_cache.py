"""A key-value cache of preallocated tensors whose rows begin and end independently, and attention that reads it.

Shapes: S slots, C tokens of capacity, N rows in use (the first N slots), W tokens of the longest row, D head size.
A row's keys and values are at positions 0 to its length - 1; what follows is masked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, Cache, DynamicCache, PretrainedConfig
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask


class SlotCache(Cache):
    """Keys and values [S, heads, C, D] of every layer, allocated by the first `add`."""

    def __init__(self, num_slots: int, capacity: int) -> None:
        super().__init__(layers=[])
        self.num_slots, self.capacity = num_slots, capacity
        self._stores: list[tuple[Tensor, Tensor]] = []  # keys, values
        self._rows = self._positions = torch.empty(0, dtype=torch.long)
        self._width = 0
        self._cleared = 0  # tokens: the memory beyond is as it was allocated, and may hold NaN, which no mask hides

    def add(self, prompts: DynamicCache, row_of: Tensor, start: int) -> None:
        """Copy the keys and values of the prompts row_of [K] into the slots from `start` on."""
        layers: list[Any] = prompts.layers
        if not self._stores:
            self._stores = [(self._empty(layer.keys), self._empty(layer.values)) for layer in layers]
        self._clear(layers[0].keys.shape[2])
        for stores, layer in zip(self._stores, layers, strict=True):
            for store, own in zip(stores, (layer.keys, layer.values), strict=True):
                store[start : start + len(row_of), :, : own.shape[2]] = own.index_select(0, row_of)

    def _empty(self, like: Tensor) -> Tensor:
        """Allocate [S, heads, C, D] for keys or values [P, heads, L, D]."""
        return like.new_empty(self.num_slots, like.shape[1], self.capacity, like.shape[3])

    def _clear(self, width: int) -> None:
        """Fill with zeros what the first forward pass of this width reads."""
        if width > self._cleared:
            for stores in self._stores:
                for store in stores:
                    store[:, :, self._cleared : width] = 0
            self._cleared = width

    def move(self, sources: Sequence[int], targets: Sequence[int], width: int) -> None:
        """Copy the first `width` tokens of the slots `sources` into the slots `targets`."""
        if not sources:
            return
        device = self._stores[0][0].device
        rows = torch.tensor([sources, targets], device=device)
        if device.type != "cpu":  # whole rows: see write_tokens()
            width = self.capacity
        for stores in self._stores:
            for store in stores:
                own = store if width == self.capacity else store[:, :, :width]
                own[rows[1]] = own[rows[0]]

    def resize(self, num_slots: int, capacity: int) -> None:
        """Have fewer slots, or as many, of a larger capacity. Rows beyond the new number are lost."""
        self.num_slots, self.capacity = num_slots, capacity
        for layer, stores in enumerate(self._stores):  # layer by layer: only one layer is in memory twice
            keys, values = (store.new_empty(num_slots, store.shape[1], capacity, store.shape[3]) for store in stores)
            for own, store in zip((keys, values), stores, strict=True):
                own[:, :, : self._cleared] = store[:num_slots, :, : self._cleared]
            self._stores[layer] = keys, values

    def begin_step(self, positions: Tensor, width: int) -> None:
        """Set where the next forward pass writes: positions [N] of the first N slots. It reads the first `width`."""
        self._rows, self._positions, self._width = (
            torch.arange(len(positions), device=positions.device),
            positions,
            width,
        )
        self._clear(width)

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Write one token of every row [N, heads, 1, D] -> keys and values [N, heads, W, D]."""
        keys, values = self._stores[layer_idx]
        for store, states in ((keys, key_states), (values, value_states)):
            if store.device.type == "cpu":
                store[self._rows, :, self._positions] = states[:, :, 0].to(store.dtype)
            else:
                write_tokens(store, self._rows, self._positions, states[:, :, 0].to(store.dtype))
        size = len(self._rows)
        return keys[:size, :, : self._width], values[:size, :, : self._width]

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return self._width - 1


def write_tokens(store: Tensor, rows: Tensor, positions: Tensor, states: Tensor) -> None:
    """store[rows, :, positions] = states: [S, heads, C, D], [N], [N], [N, heads, D]. For a GPU.

    With deterministic algorithms torch's CUDA kernel copies the whole store, twice, unless the store is contiguous and
    the indexed dimensions are next to each other (aten/src/ATen/native/cuda/Indexing.cu, index_put_with_sort_kernel).
    """
    heads = torch.arange(store.shape[1], device=store.device)
    store[rows[:, None], heads, positions[:, None]] = states


def decode_masks(
    positions: Tensor, width: int, config: PretrainedConfig, dtype: torch.dtype
) -> Tensor | dict[str, Tensor]:
    """Additive mask [N, 1, 1, W] for queries at positions [N]: 0 up to the position, -inf after it.

    Where the config has a sliding window: of the window, or of both if the layers differ. ValueError for other layers.
    """
    distance = positions[:, None] - torch.arange(width, device=positions.device)

    def mask(window: int | None) -> Tensor:
        hidden = distance < 0 if window is None else (distance < 0) | (distance >= window)
        return torch.zeros(hidden.shape, dtype=dtype, device=hidden.device).masked_fill_(hidden, -torch.inf)[
            :, None, None
        ]

    window = getattr(config, "sliding_window", None)
    kinds = set(getattr(config, "layer_types", None) or ())
    if unknown := kinds - {"full_attention", "sliding_attention"}:
        raise ValueError(f"layers {sorted(unknown)} have no mask here; known are full_attention and sliding_attention")
    if "sliding_attention" in kinds:
        return {"full_attention": mask(None), "sliding_attention": mask(window)}
    return mask(None if kinds else window)


ATTENTION = "sdpa_shared_heads"


def _attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    blocks: Sequence[tuple[int, int, int]] = (),
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """transformers' sdpa; while decoding, blocks of rows (first, after the last, tokens) read no more than they hold.

    Query heads that share keys are rows of one product then: transformers copies the keys and values for each of them.
    """
    if not blocks or attention_mask is None:
        output: Tensor = sdpa_attention_forward(module, query, key, value, attention_mask, scaling=scaling, **kwargs)[0]
        return output, None
    num_rows, heads, _, size = query.shape
    shared = query.reshape(num_rows, key.shape[1], -1, size)
    parts = [
        scaled_dot_product_attention(
            shared[first:end],
            key[first:end, :, :width],
            value[first:end, :, :width],
            attn_mask=attention_mask[first:end, :, :, :width],
            scale=scaling,
        )
        for first, end, width in blocks
    ]
    return torch.cat(parts).reshape(num_rows, 1, heads, -1), None


AttentionInterface.register(ATTENTION, _attention)
AttentionMaskInterface.register(ATTENTION, sdpa_mask)
