"""What bench/update_memory.py gives to both sides: the batch, the variants, and the gauge of memory and time."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import torch
from transformers import AutoConfig, AutoModelForCausalLM
from workloads import forget_peak, peak, resident

PROMPT = 64  # tokens


@dataclass(frozen=True, slots=True)
class Update:
    """One optimiser step on responses of equal length to one prompt: what pads nothing and so suits both sides."""

    prompt: list[int]
    completions: list[list[int]]
    rewards: list[float]

    @classmethod
    def of(cls, rows: int, tokens: int, vocabulary: int) -> Update:
        draw = random.Random(0)
        prompt, *responses = (
            [draw.randrange(10, vocabulary) for _ in range(length)] for length in (PROMPT, *[tokens] * rows)
        )
        return cls(prompt, responses, [float(row % 2) for row in range(rows)])

    @property
    def rows(self) -> int:
        return len(self.completions)

    @property
    def tokens(self) -> int:
        return len(self.completions[0])


@dataclass(frozen=True, slots=True)
class Variant:
    """Settings of an update that both sides have."""

    side: str  # ours or trl
    is_recomputed: bool  # gradient checkpointing
    rank: int  # of LoRA; 0 without
    at_once: int  # responses that go through the model at once
    moments: str = "float32"  # optim.state_dtype, ours alone
    reference: str = "float32"  # algo.reference_dtype, ours alone

    @property
    def label(self) -> str:
        parts = [f"LoRA r={self.rank}" if self.rank else "full"]
        parts += ["recomputed"] * self.is_recomputed + ["8-bit moments"] * (self.moments != "float32")
        parts += ["bfloat16 reference"] * (self.reference != "float32")
        return f"{'ours' if self.side == 'ours' else 'TRL'}, {', '.join(parts)}"


def import_model_code(folder: Path, *, has_adapter: bool) -> None:
    """Import what building the folder's model needs: code is not part of an update's memory, and takes 30 to 40 MiB."""
    if has_adapter:
        import_module("peft")
    with torch.device("meta"):
        AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder, trust_remote_code=False))


class Gauge:
    """Seconds and memory of an update. `before`: bytes of the process before the weights were loaded."""

    def __init__(self, before: int) -> None:
        self._before = before

    def begin(self) -> None:
        forget_peak()
        self._resident = resident()
        self._began = time.perf_counter()

    def end(self) -> dict[str, float]:
        """Seconds by the clock; bytes of the process at most, of that above the level before the weights, and of the
        latter what was there when the update began: weights, gradients, optimiser state, reference.
        """
        memory = {"peak": peak(), "above": peak() - self._before, "resident": self._resident - self._before}
        return {"seconds": time.perf_counter() - self._began} | memory
