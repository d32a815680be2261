"""Advantages: how much better than its peers each completion was.

Shapes: P prompts, G completions of each.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

Scale = Literal["std", "none"]


def group_advantages(rewards: Tensor, *, scale: Scale = "std", eps: float = 1e-6) -> Tensor:
    """[P, G] rewards -> [P, G]: distance from the group's mean, in population standard deviations for "std".

    "std" is GRPO (Shao et al. 2024, section 4.1.2; DeepSeek-R1, eq. 3), "none" Dr. GRPO (Liu et al. 2025). A flat group
    gives exact zeros. Flat is asked of the rewards themselves, with a tolerance: rounding leaves seven rewards of 0.7 a
    deviation that is not quite zero, and dividing by it would make noise as loud as an answer.
    """
    if rewards.shape[1] < 2:
        raise ValueError(f"a group needs at least 2 completions to compare, not {rewards.shape[1]}")
    rewards = rewards.double()
    flat = rewards.amax(dim=1, keepdim=True) - rewards.amin(dim=1, keepdim=True) < _FLAT
    centred = rewards - rewards.mean(dim=1, keepdim=True)
    if scale == "std":
        centred = centred / (centred.square().mean(dim=1, keepdim=True).sqrt() + eps)
    return torch.where(flat, 0.0, centred).float()


_FLAT = 1e-5  # rewards closer together than this count as equal
