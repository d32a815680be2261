"""The table of algorithms: a row names the parts of one. To add an algorithm, add a row; `--algo.PART value` replaces
one part of any row.

The parts are tables of pure functions: returns, baselines and scales (advantages.py), surrogates (surrogates.py),
ratios and weights (losses.py), KL estimators (kl.py). docs/ALGORITHMS.md has the formulas. Their names are declared in
reasoner.config.algorithm, so that settings are checked without torch; tests/rl/test_maths.py compares the two.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from reasoner.config.algorithm import AlgoConfig
from reasoner.config.check import Rule, check_rules
from reasoner.config.other_names import did_you_mean
from reasoner.config.schema import Config, settings

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
    trust: str = "none"  # or "constrained": bounds KL(old || new) (trust_region.py)
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

# Parts that do not go together.
PART_RULES = (
    Rule("algo.returns == 'process'", "algo.scale == algo.baseline == 'group'", "steps are normalised over a group"),
    Rule("algo.returns == 'process'", "algo.kl_in == 'loss'", "process returns take rewards from steps alone"),
    Rule("algo.returns == 'process'", "not algo.filter_zero_advantages", "steps may differ where rewards are equal"),
    Rule("algo.scale == 'group'", "algo.kl_in == 'loss'", "it divides by the deviation of the rewards alone"),
    Rule("algo.scale == 'group'", f"algo.baseline in {GROUPED}", "equal rewards must give advantage 0"),
    Rule("algo.returns == 'gae'", "algo.baseline == 'value'", "it takes a critic"),
    Rule("algo.baseline == 'value'", "algo.returns in ('gae', 'to_go')", "a critic values the state of each token"),
    Rule("algo.trust == 'constrained'", "algo.critic_backbone == 'separate'", "TRPO's step is the policy's alone"),
    Rule("algo.trust == 'constrained'", "algo.epochs * algo.minibatches == 1", "TRPO takes one step on all rows"),
    Rule("algo.trust == 'constrained'", "algo.surrogate in ('ratio', 'clip')", "TRPO's line search compares its value"),
    Rule(
        "algo.surrogate in ('plain', 'ratio')", "algo.epochs * algo.minibatches == 1", "no clip holds several updates"
    ),
    Rule("algo.dynamic_sampling", "algo.filter_zero_advantages", "it replaces the groups that are left out"),
    Rule("algo.dual_clip != 0", "algo.dual_clip > 1 and algo.surrogate == 'clip'", "it bounds the clipped ratio"),
    Rule("algo.kl == 'k1' and algo.kl_in == 'loss'", "algo.beta == 0", "k1 in the loss has no gradient on average"),
)


def resolve_algorithm(cfg: AlgoConfig) -> Algorithm:
    """Return the row named by `cfg.name` with the overrides in `cfg` applied. ValueError for an unknown name or part,
    and for parts that do not go together.
    """
    if cfg.name not in ALGORITHMS:
        hint = did_you_mean(cfg.name, ALGORITHMS)
        raise ValueError(f"unknown algorithm {cfg.name!r}; known are {', '.join(ALGORITHMS)}{hint}")
    overrides: dict[str, Any] = {
        field.name: value for field in fields(Algorithm) if (value := getattr(cfg, field.name, None)) is not None
    }
    row = replace(ALGORITHMS[cfg.name], **overrides)
    parts = with_parts(cfg, row)
    for key, setting in settings().items():
        if key.startswith("algo."):
            setting.check(getattr(parts, key.removeprefix("algo.")))
    check_rules(PART_RULES, {"algo": parts})
    return row


def sampler_correction(cfg: Config) -> str:
    """algo.importance_sampling, with what "auto" stands for: engine and trainer differ by rounding alone where both
    compute in float32 with the same weights.
    """
    if cfg.algo.importance_sampling != "auto":
        return cfg.algo.importance_sampling
    precisions = {cfg.engine.dtype, cfg.optim.dtype}
    return "none" if precisions == {"float32"} and not cfg.max_off_policy_steps else "token"


def with_parts(cfg: AlgoConfig, row: Algorithm) -> AlgoConfig:
    """The settings with the parts of an algorithm, none of them empty."""
    return replace(cfg, **asdict(row))
