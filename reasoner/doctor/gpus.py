"""Kinds of GPU whose memory `reasoner doctor --gpu` predicts."""

from __future__ import annotations

from reasoner.config.presets import MACHINES

GPUS = {"rtx-4090": "24gb", "a100": "80gb", "h100": "80gb", "h200": "141gb"}  # kind: its size in presets.MACHINES


def gpu_bytes(kind: str) -> int:
    """Bytes of memory of a kind of GPU. ValueError for an unknown one."""
    if kind not in GPUS:
        raise ValueError(f"--gpu is {kind!r}; known are {', '.join(GPUS)}")
    return MACHINES[GPUS[kind]]
