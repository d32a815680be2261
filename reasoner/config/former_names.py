"""Names and values that settings had in earlier run folders, and those of today (reasoner.runs.migrate); settings that
are gone; former defaults; former names of presets.
"""

from __future__ import annotations

from collections.abc import Mapping

SETTINGS = {
    "ahead": "max_off_policy_steps",
    "algo.drops_flat": "algo.filter_zero_advantages",
    "algo.entropy": "algo.entropy_coef",
    "algo.group": "algo.group_size",
    "algo.importance": "algo.importance_sampling",
    "algo.importance_cap": "algo.importance_clip_max",
    "algo.mask_truncated": "algo.mask_truncated_completions",
    "algo.missing_end": "algo.missing_eos_penalty",
    "algo.refills": "algo.dynamic_sampling",
    "algo.refills_most": "algo.dynamic_sampling_max_rounds",
    "algo.refresh_reference": "algo.ref_sync_steps",
    "algo.trunk": "algo.critic_backbone",
    "algo.weights": "algo.loss_aggregation",
    "critic.coefficient": "critic.vf_coef",
    "eval.every": "validation.interval",
    "eval.selection": "validation.data",
    "eval.selection_problems": "validation.problems",
    "eval.selection_samples": "validation.samples",
    "optim.weights": "optim.sharding",
    "run.keep": "run.keep_last",
    "run.probe_every": "run.parity_interval",
    "run.save_every": "run.save_interval",
    "run.token_figures": "run.token_stats",
    "tokens": "max_train_tokens",
}
# Settings that are gone, with the default that run folders have of them, and what to use instead.
REMOVED: dict[str, tuple[object, str]] = {
    "reward.custom": ("", "it is now 'reward.functions', whose functions take lists of completions (docs/DATA.md)"),
    "sampling.top_p": (1.0, "training samples from the whole distribution, as the importance ratio needs it"),
}
# Former defaults. A run folder has them also of settings that the run has no use for.
DEFAULTS: dict[str, object] = {"critic.epochs": 1, "critic.minibatches": 1}
_PROBLEMS = {"generated:selection": "generated:validation"}
# Values, by the setting of format 2.
VALUES: dict[str, Mapping[str, str]] = {
    "algo.critic_backbone": {"own": "separate"},
    **dict.fromkeys(("data.train", "validation.data", "eval.heldout"), _PROBLEMS),
}

# Presets whose names did not say the model; run folders have them as origins of settings.
PRESETS = {
    "cpu": "smollm-135m@cpu",
    "cpu-large": "qwen2.5-0.5b@cpu",
    "0.5b": "qwen2.5-0.5b@24gb",
    "1.5b": "qwen2.5-math-1.5b@80gb",
}


def renamed_setting(key: str) -> str:
    """The sentence that refuses a setting that was renamed or removed and says what to use; empty for any other key."""
    if key in REMOVED:
        return f"unknown setting {key!r}; {REMOVED[key][1]}"
    return f"unknown setting {key!r}; it is now {SETTINGS[key]!r}" if key in SETTINGS else ""
