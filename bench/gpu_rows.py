"""What the parts of bench/gpu.py share: their sizes, the rows that they tell, the device and its clock."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from gpu import write_row

Value = float | int | str | bool


class SkipPart(Exception):
    """Why a part cannot run here."""


@dataclass(frozen=True)
class Sizes:
    """The sizes of all parts. Lengths are in tokens."""

    matrices: tuple[int, ...] = (2048, 4096, 8192, 16384)
    steps: int = 12  # of the training run; a quarter of them is done again
    prompts_per_step: int = 16
    response: int = 288  # longest of the training run
    shrink: int = 1  # divides the width and the number of layers of the models of random weights
    micro_batch_tokens: tuple[int, ...] = (8192, 32768)
    learning: tuple[int, int, int, int] = (16, 8, 128, 512)  # prompts, G, tokens of a prompt and of a response
    batches: tuple[int, ...] = (16, 64, 256)  # responses sampled at once
    sampled: int = 128  # tokens of each of them
    repeats: int = 2


REHEARSAL = Sizes(
    matrices=(256, 512),
    steps=8,
    prompts_per_step=4,
    response=24,
    shrink=8,
    micro_batch_tokens=(256,),
    learning=(2, 4, 16, 24),
    batches=(8, 16),
    sampled=8,
    repeats=1,
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
