"""The algorithms: each a row that names its parts. To add one, add a row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from typing import get_args

from torch import Tensor

from reasoner.config import AlgoConfig
from reasoner.rl.advantages import group_advantages
from reasoner.rl.kl import KL
from reasoner.rl.losses import Weighting


@dataclass(frozen=True, slots=True)
class Algorithm:
    """What turns rewards into a gradient."""

    credit: Callable[[Tensor], Tensor]  # [P, G] rewards -> [P, G] advantages
    weights: Weighting
    clip_low: float = 0.2
    clip_high: float = 0.2
    drops_flat: bool = False  # groups whose rewards are all equal leave the batch, denominator included


ALGORITHMS: dict[str, Algorithm] = {
    # DeepSeekMath (Shao et al. 2024) and DeepSeek-R1: every completion weighs the same.
    "grpo": Algorithm(group_advantages, "sequence"),
    # Liu et al. 2025: neither the deviation nor the length of a completion in the denominator.
    "dr_grpo": Algorithm(partial(group_advantages, scale="none"), "constant"),
    # Yu et al. 2025: clip-higher, token mean, groups without a signal left out.
    "dapo": Algorithm(group_advantages, "token", clip_high=0.28, drops_flat=True),
}


def resolve(cfg: AlgoConfig) -> Algorithm:
    """The row that the settings name, with their overrides. ValueError for an unknown name or part."""
    if cfg.name not in ALGORITHMS:
        close = get_close_matches(cfg.name, ALGORITHMS, 1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"unknown algorithm {cfg.name!r}; known are {', '.join(ALGORITHMS)}{hint}")
    if cfg.kl not in KL:
        raise ValueError(f"unknown KL estimator {cfg.kl!r}; known are {', '.join(KL)}")
    if cfg.weights is not None and cfg.weights not in get_args(Weighting):
        raise ValueError(f"unknown weighting {cfg.weights!r}; known are {', '.join(get_args(Weighting))}")
    row = ALGORITHMS[cfg.name]
    return replace(
        row,
        weights=cfg.weights or row.weights,  # type: ignore[arg-type]
        clip_low=row.clip_low if cfg.clip_low is None else cfg.clip_low,
        clip_high=row.clip_high if cfg.clip_high is None else cfg.clip_high,
    )
