"""The algorithms: each a row that names its parts. To add one, add a row; `--algo.PART value` replaces one part of any.

The parts are tables of pure functions: returns, baselines and scales (advantages.py), ratios, surrogates and weights
(losses.py), KL estimators (kl.py). docs/ALGORITHMS.md has the formulas. Their names stand here once more (_CHOICES), so
that settings are checked without torch; tests/rl/test_maths.py compares them with the tables.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from reasoner.config.schema import AlgoConfig

if TYPE_CHECKING:
    from reasoner.rl.losses import Weighting

GROUPED = ("group", "leave_one_out")  # baselines that give a group of equal rewards exactly no advantage


@dataclass(frozen=True, slots=True)
class Algorithm:
    """What turns rewards into a gradient."""

    # RETURNS; "process": the steps of a thought are rewarded one by one; "gae": rewards and values in one estimate
    returns: str = "total"
    baseline: str = "group"  # BASELINES, or "value": a critic
    scale: str = "none"  # SCALES
    ratio: str = "token"  # RATIOS
    surrogate: str = "clip"  # SURROGATES
    clip_low: float = 0.2
    clip_high: float = 0.2
    dual_clip: float = 0.0  # 0 = off
    weights: Weighting = "sequence"
    step_credit: str = "gated"  # STEP_CREDIT: how the steps of a thought add up, with returns "process"
    kl: str = "k3"  # KL
    kl_in: str = "loss"  # or "reward": a penalty on each token before returns are made
    drops_flat: bool = False  # groups whose rewards are all equal leave the batch, denominator included
    refills: bool = False  # and other questions are asked in their place
    trunk: str = "own"  # of a critic; or "shared": a head on the policy's trunk, learnt in the same steps
    trust: str = "none"  # or "penalty", "constrained": what holds the policy near the one that sampled (trust.py)
    epochs: int = 1  # passes over a step's completions
    minibatches: int = 1  # optimiser steps of each

    @property
    def critic(self) -> bool:
        """A critic is learnt beside the policy."""
        return self.baseline == "value"

    @property
    def updates(self) -> int:
        """Optimiser steps on the completions of a step."""
        return self.epochs * self.minibatches


ALGORITHMS: dict[str, Algorithm] = {
    # Williams 1992; Sutton et al. 2000: the vanilla policy gradient, with the mean of the batch as baseline.
    "reinforce": Algorithm("to_go", "batch", surrogate="plain", weights="constant"),
    # Ahmadian et al. 2024: leave-one-out, KL in the reward.
    "rloo": Algorithm("total", "leave_one_out", surrogate="plain", weights="constant", kl="k1", kl_in="reward"),
    # Hu et al. 2025: KL in the reward, advantages whitened over the batch, no group.
    "reinforce_pp": Algorithm("to_go", "none", "batch", weights="token", kl="k1", kl_in="reward"),
    # Schulman et al. 2017, as InstructGPT has it: a critic, GAE, KL in the reward, two passes.
    "ppo": Algorithm("gae", "value", "batch", weights="token", kl="k1", kl_in="reward", epochs=2, minibatches=2),
    # Schulman et al. 2015, on group-relative advantages: no clip, a step within delta of KL(old || new).
    "trpo": Algorithm(scale="group", surrogate="ratio", weights="token", trust="constrained"),
    # DeepSeekMath (Shao et al. 2024) and DeepSeek-R1: every completion weighs the same.
    "grpo": Algorithm(scale="group"),
    # DeepSeekMath, section 4.1.3: every step of the thought has a reward of its own. The paper adds them up
    # (step_credit "sum"), which pays for many easy steps whatever the answer.
    "grpo_process": Algorithm("process", scale="group"),
    # Liu et al. 2025: neither the deviation nor the length of a completion in the denominator.
    "dr_grpo": Algorithm(weights="constant"),
    # Yu et al. 2025: clip-higher, token mean, groups without a signal replaced by others.
    "dapo": Algorithm(scale="group", weights="token", clip_high=0.28, drops_flat=True, refills=True),
    # Zheng et al. 2025: one ratio for a sequence, clipped very near 1.
    "gspo": Algorithm(scale="group", ratio="sequence", clip_low=3e-4, clip_high=4e-4),
    # MiniMax-M1 2025: the weight is clipped, no token's gradient is lost.
    "cispo": Algorithm(scale="group", surrogate="clip_weight", weights="token", clip_high=4.0),
}

_CHOICES: dict[str, tuple[str, ...]] = {
    "returns": ("total", "to_go", "process", "gae"),
    "baseline": ("none", "batch", "moving", "group", "leave_one_out", "value"),
    "scale": ("none", "group", "batch"),
    "ratio": ("token", "sequence"),
    "surrogate": ("plain", "ratio", "clip", "clip_weight"),
    "weights": ("token", "sequence", "constant"),
    "step_credit": ("sum", "gated"),
    "kl": ("k1", "k2", "k3", "k3_reverse"),
    "kl_in": ("loss", "reward"),
    "trunk": ("own", "shared"),
    "trust": ("none", "penalty", "constrained"),
}


def resolve(cfg: AlgoConfig) -> Algorithm:
    """The row that the settings name, with their overrides. ValueError for an unknown name or part, and for parts that
    make no sense together.
    """
    if cfg.name not in ALGORITHMS:
        close = get_close_matches(cfg.name, ALGORITHMS, 1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"unknown algorithm {cfg.name!r}; known are {', '.join(ALGORITHMS)}{hint}")
    given: dict[str, Any] = {
        field.name: value for field in fields(Algorithm) if (value := getattr(cfg, field.name, None)) is not None
    }
    row = replace(ALGORITHMS[cfg.name], **given)
    for part, known in _CHOICES.items():
        if getattr(row, part) not in known:
            raise ValueError(f"algo.{part} is {getattr(row, part)!r}; known are {', '.join(known)}")
    for fault in [*_nonsense(row), *_without_effect(row, cfg)]:
        raise ValueError(f"{cfg.name}: {fault}")
    return row


def _without_effect(row: Algorithm, cfg: AlgoConfig) -> list[str]:
    """Settings that were changed and that this run would not look at."""
    needed = {
        "kl_target": (cfg.beta > 0, "adapts the KL term's coefficient: it needs algo.beta above 0"),
        "refresh_reference": (cfg.beta > 0, "replaces the reference of the KL term: it needs algo.beta above 0"),
        "penalty": (row.trust == "penalty", "is the coefficient of algo.trust penalty"),
        "penalty_target": (row.trust == "penalty", "adapts the coefficient of algo.trust penalty"),
        "delta": (row.trust == "constrained", "bounds the step of algo.trust constrained"),
        "fisher_rows": (row.trust == "constrained", "belongs to algo.trust constrained"),
        "damping": (row.trust == "constrained", "belongs to algo.trust constrained"),
        "importance_cap": (cfg.importance != "none", "caps the weights of algo.importance token or sequence"),
        "moving_decay": (row.baseline == "moving", "belongs to algo.baseline moving"),
        "refills_most": (row.refills, "bounds the rounds of algo.refills"),
    }
    return [
        f"algo.{name} {getattr(cfg, name):g} has no effect here: it {reason}"
        for name, (has_effect, reason) in needed.items()
        if not has_effect and getattr(cfg, name) != AlgoConfig.__dataclass_fields__[name].default
    ] + (
        ["algo.kl k1 in the loss has no gradient on average: use it in the reward (algo.kl_in reward), or k2 or k3"]
        if cfg.beta > 0 and row.kl == "k1" and row.kl_in == "loss"
        else []
    )


def _nonsense(row: Algorithm) -> list[str]:
    faults = {
        "process returns are normalised over the steps of a group: algo.scale must be group and algo.baseline group": (
            row.returns == "process" and (row.scale, row.baseline) != ("group", "group")
        ),
        "process returns take rewards from steps alone: KL must stay in the loss (algo.kl_in loss)": (
            row.returns == "process" and row.kl_in == "reward"
        ),
        "the deviation of a group is one of rewards: with algo.scale group KL stays in the loss (algo.kl_in loss)": (
            row.kl_in == "reward" and row.scale == "group"
        ),
        "algo.scale group divides by the deviation of the group's rewards, which is 0 where they are equal: it needs a "
        "baseline that leaves such groups without advantage (algo.baseline group or leave_one_out)": (
            row.scale == "group" and row.baseline not in GROUPED
        ),
        "algo.drops_flat looks at the rewards of whole completions: process returns may differ where those are equal": (
            row.drops_flat and row.returns == "process"
        ),
        "gae makes advantages of rewards and values: it needs algo.baseline value": (
            row.returns == "gae" and row.baseline != "value"
        ),
        "a critic tells what a token's state is worth: algo.baseline value needs algo.returns gae or to_go": (
            row.baseline == "value" and row.returns not in ("gae", "to_go")
        ),
        "a shared trunk is one that a critic shares: algo.trunk shared needs algo.baseline value": (
            row.trunk == "shared" and row.baseline != "value"
        ),
        "a constrained step has no place for the loss of a critic on the same trunk (algo.trunk own)": (
            row.trunk == "shared" and row.trust == "constrained"
        ),
        "a constrained step is one step on all completions (algo.epochs 1, algo.minibatches 1)": (
            row.trust == "constrained" and row.updates > 1
        ),
        "a constrained step looks for its length on the surrogate's value: algo.surrogate must be ratio or clip": (
            row.trust == "constrained" and row.surrogate not in ("ratio", "clip")
        ),
        "an unclipped ratio needs something that keeps it near 1: algo.trust penalty or constrained, or one update": (
            row.surrogate == "ratio" and row.trust == "none" and row.updates > 1
        ),
        "a refill needs flat groups to be dropped (algo.drops_flat)": row.refills and not row.drops_flat,
        "algo.dual_clip must be above 1, or 0 for none": row.dual_clip != 0 and row.dual_clip <= 1,
        "algo.dual_clip bounds the clipped surrogate alone (algo.surrogate clip)": (
            row.dual_clip != 0 and row.surrogate != "clip"
        ),
        "a plain surrogate has no ratio: several updates on the same completions (algo.epochs, algo.minibatches) need "
        "algo.surrogate clip or clip_weight": row.surrogate == "plain" and row.updates > 1,
    }
    return [sentence for sentence, is_so in faults.items() if is_so]
