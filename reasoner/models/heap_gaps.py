"""Gaps in the heap between stored activations, on a CPU: bounded by returning freed memory to the system.

torch asks for tensors at multiples of 64 bytes. glibc's malloc looks for such a block with 96 bytes to spare, so that a
freed block does not hold the next tensor of its size (seen with 2.36). The temporaries of every layer then leave gaps
between the activations that it stores: at 30M parameters with LoRA they took as much memory as the activations.
"""

from __future__ import annotations

import ctypes
import resource
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers.modeling_layers import GradientCheckpointingLayer

from reasoner.runtime import release_free_memory

GAP_SHARE = 1 / 8  # of what malloc has in use: gaps beyond it are returned
_STATM = Path("/proc/self/statm")


class _Mallinfo(ctypes.Structure):
    """glibc's struct mallinfo2: bytes of the heap, counts of its blocks."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    ]


def bound_gaps(backbone: nn.Module) -> None:
    """Bound the gaps between the activations that the backbone's layers store. No number changes. No effect where the C
    library is not glibc, without gradients, on a GPU, or for layers that are not known to transformers as such.
    """
    if _read_mallinfo() is None or not _STATM.is_file():
        return
    gaps = _Gaps()
    backbone.register_forward_pre_hook(gaps.before_pass)
    for module in backbone.modules():
        if isinstance(module, GradientCheckpointingLayer):
            module.register_forward_pre_hook(gaps.before_layer)


@dataclass(slots=True)
class _Gaps:
    """Looks at the process before each layer's forward pass and after its backward pass. Freed memory is returned only
    where the process has grown: pages that are used again are cleared again, which takes time.
    """

    highest: int = 0  # bytes before any pass, and at any look after which nothing was returned
    without: int | None = None  # bytes beside the blocks in use (libraries, Python's objects) where there are no gaps

    def before_pass(self, backbone: nn.Module, args: tuple[Any, ...]) -> None:
        """Hook before the backbone's forward pass: what others have freed, as an engine its cache, can be used."""
        self.highest = max(self.highest, _anonymous_bytes())

    def before_layer(self, layer: nn.Module, args: tuple[Any, ...]) -> None:
        """Hook before a layer's forward pass; sets that after its backward pass."""
        states = args[0] if args else None
        if not isinstance(states, Tensor) or states.device.type != "cpu" or not torch.is_grad_enabled():
            return
        self.look()
        if states.requires_grad:
            states.register_hook(self.look)  # type: ignore[no-untyped-call]

    def look(self, gradient: Tensor | None = None) -> None:
        """Return freed memory if the process has more than ever, and more gaps than GAP_SHARE allows."""
        resident = _anonymous_bytes()
        if resident <= self.highest:
            return
        in_use = _bytes_in_use()
        if self.without is None or resident - in_use - self.without > GAP_SHARE * in_use:
            release_free_memory()
            resident = _anonymous_bytes()
            self.without = resident - in_use
        self.without = min(self.without, resident - in_use)
        self.highest = max(self.highest, resident)


def _bytes_in_use() -> int:
    """Bytes of malloc's blocks that are in use, those outside of its heaps included."""
    info = cast(_Mallinfo, _read_mallinfo())
    return int(info.uordblks) + int(info.hblkhd)


def _read_mallinfo() -> _Mallinfo | None:
    function = getattr(ctypes.CDLL(None), "mallinfo2", None) if sys.platform == "linux" else None
    if function is None:
        return None
    function.restype = _Mallinfo
    return cast(_Mallinfo, function())


def _anonymous_bytes() -> int:
    """Bytes of the process in memory that belong to no file."""
    _, resident, shared, *_ = map(int, _STATM.read_text().split())
    return (resident - shared) * resource.getpagesize()
