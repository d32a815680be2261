"""The table of algorithms: a row names the parts of one. To add an algorithm, add a row; `--algo.PART value` replaces
one part of any row.

The parts are tables of pure functions: returns, baselines and scales (advantages.py), surrogates (surrogates.py),
ratios and weights (losses.py), KL estimators (kl.py). docs/ALGORITHMS.md has the formulas. PART_CHOICES repeats the
names in the tables of files that import torch, so that settings are checked without it; tests/rl/test_maths.py compares
the two.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from reasoner.config.learning import AlgoConfig
from reasoner.rl.surrogates import SURROGATES

if TYPE_CHECKING:
    from reasoner.rl.losses import LossAggregation

GROUPED = ("group", "leave_one_out")  # baselines that give a zero-variance group an advantage of exactly 0


@dataclass(frozen=True, slots=True)
class Algorithm:
    """The parts that turn rewards into a gradient."""

    # RETURNS; "process": the steps of the reasoning are rewarded separately; "gae": generalised advantage estimation
    returns: str = "total"
    baseline: str = "group"  # BASELINES, or "value": a critic's estimate
    scale: str = "none"  # SCALES
    ratio: str = "token"  # RATIOS
    surrogate: str = "clip"  # SURROGATES
    clip_low: float = 0.2
    clip_high: float = 0.2
    dual_clip: float = 0.0  # 0 = off
    loss_aggregation: LossAggregation = "sequence"
    step_credit: str = "gated"  # STEP_CREDIT: how step rewards add up, with returns "process"
    kl: str = "k3"  # KL
    kl_in: str = "loss"  # or "reward": a penalty on each token before returns are computed
    filter_zero_advantages: bool = False  # leave zero-variance groups out of the batch and of the denominator
    filter_metric: str = "reward"  # what such a group is judged by; "correct": groups with all or none correct
    dynamic_sampling: bool = False  # replace such groups by sampling new prompts (dynamic sampling)
    critic_backbone: str = "separate"  # the critic's backbone; "shared": a value head on the policy's, trained with it
    trust: str = "none"  # or "penalty", "constrained": bounds KL(old || new) (trust_region.py)
    epochs: int = 1  # passes over a step's completions
    minibatches: int = 1  # optimiser steps per epoch

    @property
    def critic(self) -> bool:
        """Whether a critic is trained with the policy."""
        return self.baseline == "value"

    @property
    def updates(self) -> int:
        """Number of optimiser steps on one training step's completions."""
        return self.epochs * self.minibatches


ALGORITHMS: dict[str, Algorithm] = {
    # Williams 1992; Sutton et al. 2000: the vanilla policy gradient, with the mean of the batch as baseline.
    "reinforce": Algorithm("to_go", "batch", surrogate="plain", loss_aggregation="constant"),
    # Ahmadian et al. 2024: leave-one-out, KL in the reward.
    "rloo": Algorithm(
        "total", "leave_one_out", surrogate="plain", loss_aggregation="constant", kl="k1", kl_in="reward"
    ),
    # Hu et al. 2025: KL in the reward, advantages whitened over the batch, no group.
    "reinforce_pp": Algorithm("to_go", "none", "batch", loss_aggregation="token", kl="k1", kl_in="reward"),
    # Schulman et al. 2017, in the form of InstructGPT: a critic, GAE, KL in the reward, two passes.
    "ppo": Algorithm(
        "gae", "value", "batch", loss_aggregation="token", kl="k1", kl_in="reward", epochs=2, minibatches=2
    ),
    # Schulman et al. 2015, on group-relative advantages: no clip, a step within delta of KL(old || new).
    "trpo": Algorithm(scale="group", surrogate="ratio", loss_aggregation="token", trust="constrained"),
    # DeepSeekMath (Shao et al. 2024) and DeepSeek-R1: every completion has the same weight.
    "grpo": Algorithm(scale="group"),
    # DeepSeekMath, section 4.1.3: every step of the reasoning has its own reward. The paper sums them
    # (step_credit "sum"), which rewards many easy steps even when the answer is wrong.
    "grpo_process": Algorithm("process", scale="group"),
    # Liu et al. 2025: neither the deviation nor the length of a completion in the denominator.
    "dr_grpo": Algorithm(loss_aggregation="constant"),
    # Yu et al. 2025: clip-higher, token mean, dynamic sampling in place of zero-variance groups.
    "dapo": Algorithm(
        scale="group", loss_aggregation="token", clip_high=0.28, filter_zero_advantages=True, dynamic_sampling=True
    ),
    # Zheng et al. 2025: one ratio per sequence, clipped very close to 1.
    "gspo": Algorithm(scale="group", ratio="sequence", clip_low=3e-4, clip_high=4e-4),
    # MiniMax-M1 2025: the importance weight is clipped; every token keeps a gradient.
    "cispo": Algorithm(scale="group", surrogate="clip_weight", loss_aggregation="token", clip_high=4.0),
}

PART_CHOICES: dict[str, Collection[str]] = {
    "returns": ("total", "to_go", "process", "gae"),
    "baseline": ("none", "batch", "moving", "group", "leave_one_out", "value"),
    "scale": ("none", "group", "batch"),
    "ratio": ("token", "sequence"),
    "surrogate": SURROGATES,
    "loss_aggregation": ("token", "sequence", "constant"),
    "filter_metric": ("reward", "correct"),
    "step_credit": ("sum", "gated"),
    "kl": ("k1", "k2", "k3", "k3_reverse"),
    "kl_in": ("loss", "reward"),
    "critic_backbone": ("separate", "shared"),
    "trust": ("none", "penalty", "constrained"),
}


def resolve_algorithm(cfg: AlgoConfig) -> Algorithm:
    """Return the row named by `cfg.name` with the overrides in `cfg` applied. ValueError for an unknown name or part,
    for incompatible parts, and for settings that would have no effect.
    """
    if cfg.name not in ALGORITHMS:
        close = get_close_matches(cfg.name, ALGORITHMS, 1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"unknown algorithm {cfg.name!r}; known are {', '.join(ALGORITHMS)}{hint}")
    overrides: dict[str, Any] = {
        field.name: value for field in fields(Algorithm) if (value := getattr(cfg, field.name, None)) is not None
    }
    row = replace(ALGORITHMS[cfg.name], **overrides)
    for part, choices in PART_CHOICES.items():
        if getattr(row, part) not in choices:
            raise ValueError(f"algo.{part} is {getattr(row, part)!r}; known are {', '.join(choices)}")
    for fault in [*_incompatible_parts(row), *_settings_without_effect(row, cfg)]:
        raise ValueError(f"{cfg.name}: {fault}")
    return row


def _surrogates_with(field: str) -> str:
    """The surrogates whose row has a field set, for messages."""
    return " or ".join(name for name, surrogate in SURROGATES.items() if getattr(surrogate, field))


def _settings_without_effect(row: Algorithm, cfg: AlgoConfig) -> list[str]:
    """One sentence for each setting that differs from its default and has no effect in this run."""
    surrogate = SURROGATES[row.surrogate]
    conditions = {  # setting -> (does it have an effect, why it needs that)
        "kl_target": (cfg.beta > 0, "adapts the KL term's coefficient: it needs algo.beta above 0"),
        "kl_controller": (cfg.kl_target > 0, "adapts algo.beta to algo.kl_target, which must be above 0"),
        "kl_horizon": (cfg.kl_controller == "proportional", "belongs to algo.kl_controller proportional"),
        "ref_sync_steps": (cfg.beta > 0, "replaces the reference of the KL term: it needs algo.beta above 0"),
        "penalty": (row.trust == "penalty", "is the coefficient of algo.trust penalty"),
        "penalty_target": (row.trust == "penalty", "adapts the coefficient of algo.trust penalty"),
        "delta": (row.trust == "constrained", "bounds the step of algo.trust constrained"),
        "fisher_rows": (row.trust == "constrained", "belongs to algo.trust constrained"),
        "damping": (row.trust == "constrained", "belongs to algo.trust constrained"),
        "importance_clip_max": (
            cfg.importance_sampling != "none",
            "caps the weights of algo.importance_sampling token or sequence",
        ),
        "moving_decay": (row.baseline == "moving", "belongs to algo.baseline moving"),
        "clip_low": (surrogate.has_low_clip, f"bounds the ratio of algo.surrogate {_surrogates_with('has_low_clip')}"),
        "clip_high": (
            surrogate.has_high_clip,
            f"bounds the ratio of algo.surrogate {_surrogates_with('has_high_clip')}",
        ),
        "step_credit": (row.returns == "process", "belongs to algo.returns process"),
        "stop_kl": (row.updates > 1, "skips updates after a step's first: algo.epochs or algo.minibatches above 1"),
        "filter_metric": (row.filter_zero_advantages, "is what algo.filter_zero_advantages judges a group by"),
        "dynamic_sampling_max_rounds": (row.dynamic_sampling, "bounds the rounds of algo.dynamic_sampling"),
    }
    return [
        f"algo.{name} {getattr(cfg, name)} has no effect here: it {reason}"
        for name, (has_effect, reason) in conditions.items()
        if not has_effect and getattr(cfg, name) != AlgoConfig.__dataclass_fields__[name].default
    ] + (
        ["algo.kl k1 in the loss has no gradient on average: use it in the reward (algo.kl_in reward), or k2 or k3"]
        if cfg.beta > 0 and row.kl == "k1" and row.kl_in == "loss"
        else []
    )


def _incompatible_parts(row: Algorithm) -> list[str]:
    """One sentence for each combination of parts in the row that does not work."""
    surrogate = SURROGATES[row.surrogate]
    faults = {
        "process returns are normalised over the steps of a group: algo.scale must be group and algo.baseline group": (
            row.returns == "process" and (row.scale, row.baseline) != ("group", "group")
        ),
        "process returns take rewards from steps alone: KL must stay in the loss (algo.kl_in loss)": (
            row.returns == "process" and row.kl_in == "reward"
        ),
        "algo.scale group divides by the deviation of the rewards alone: KL must stay in the loss (algo.kl_in loss)": (
            row.kl_in == "reward" and row.scale == "group"
        ),
        "algo.scale group divides by the deviation of the group's rewards, which is 0 when they are equal: it needs a "
        "baseline that gives such groups an advantage of 0 (algo.baseline group or leave_one_out)": (
            row.scale == "group" and row.baseline not in GROUPED
        ),
        "algo.filter_zero_advantages compares the rewards of whole completions; process returns may differ when those "
        "are equal": (row.filter_zero_advantages and row.returns == "process"),
        "algo.returns gae needs a critic: algo.baseline must be value": (
            row.returns == "gae" and row.baseline != "value"
        ),
        "a critic estimates the value of each token's state: algo.baseline value needs algo.returns gae or to_go": (
            row.baseline == "value" and row.returns not in ("gae", "to_go")
        ),
        "algo.critic_backbone shared needs a critic: algo.baseline must be value": (
            row.critic_backbone == "shared" and row.baseline != "value"
        ),
        "algo.trust constrained cannot include the loss of a critic on a shared backbone: algo.critic_backbone must be "
        "separate": (row.critic_backbone == "shared" and row.trust == "constrained"),
        "algo.trust constrained takes one step on all completions: algo.epochs and algo.minibatches must be 1": (
            row.trust == "constrained" and row.updates > 1
        ),
        "algo.trust constrained line-searches on the surrogate's value: algo.surrogate must be "
        f"{_surrogates_with('has_objective')}": row.trust == "constrained" and not surrogate.has_objective,
        "an unclipped ratio must be kept near 1: it needs algo.trust penalty or constrained, or a single update": (
            surrogate.has_ratio and not surrogate.has_high_clip and row.trust == "none" and row.updates > 1
        ),
        "algo.dynamic_sampling replaces dropped groups: it needs algo.filter_zero_advantages": row.dynamic_sampling
        and not row.filter_zero_advantages,
        "algo.clip_low and algo.clip_high must be at least 0": min(row.clip_low, row.clip_high) < 0,
        "algo.dual_clip must be above 1, or 0 for none": row.dual_clip != 0 and row.dual_clip <= 1,
        "algo.dual_clip applies to the clipped surrogate only: it needs algo.surrogate "
        f"{_surrogates_with('has_dual_clip')}": row.dual_clip != 0 and not surrogate.has_dual_clip,
        f"algo.surrogate {row.surrogate} has no ratio: several updates on the same completions (algo.epochs, "
        f"algo.minibatches) need algo.surrogate {_surrogates_with('has_high_clip')}": not surrogate.has_ratio
        and row.updates > 1,
    }
    return [sentence for sentence, is_so in faults.items() if is_so]
