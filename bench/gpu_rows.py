"""What the parts of bench/gpu.py share: their sizes, the rows that they tell, the device and its clock."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from gpu import write_row

Value = float | int | str | bool


@dataclass(frozen=True)
class Sizes:
    """The sizes of all parts. Lengths are in tokens."""

    shrink: int = 1  # divides the width and the number of layers of the models of random weights
    matrices: tuple[int, ...] = (4096, 8192, 16384)
    rows: tuple[int, ...] = (64, 256, 512)  # completions sampled at once
    sampled: int = 512  # length of each of them
    turns: int = 20  # of sleep, wake-up and weights
    updates: tuple[int, ...] = (4096, 16384)  # lengths of the completions of an update
    prompts_per_step: int = 16  # of the runs
    response: int = 2048  # longest of the runs


REHEARSAL = Sizes(
    shrink=8,
    matrices=(256, 512),
    rows=(16, 256),
    sampled=32,
    turns=3,
    updates=(24, 48),
    prompts_per_step=4,
    response=24,
)


def row(measure: str, value: Value, unit: str = "") -> None:
    """Add a row to the file of bench/gpu.py."""
    write_row(Path(os.environ["GPU_ROWS"]), os.environ["GPU_PART"], measure, value, unit)


def device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def clock() -> float:
    """Seconds, when the device has done all that it was given."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()
