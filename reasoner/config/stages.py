"""Stages of training: which settings each has a use for, and the defaults of supervised finetuning.

rl: reinforcement learning (`reasoner train`); sft: supervised finetuning (`reasoner sft`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

COMMANDS = {"rl": "train", "sft": "sft"}  # that starts and resumes a run of the stage

# Settings, and sections of settings ("algo."), without a meaning in a stage.
UNUSED: dict[str, tuple[str, ...]] = {
    "rl": ("sft.",),
    "sft": (
        "steps", "max_train_tokens", "max_off_policy_steps", "control", "run.parity_interval", "run.token_stats",
        "data.", "reward.", "algo.", "critic.",
    ),
}  # fmt: skip
# Settings of a preset that are chosen for reinforcement learning.
_OF_RL = ("optim.lr", "optim.warmup_steps", "optim.decay_share")

# Measured on the embedded base, whose own samples make some ten steps: decay would halve what they teach (docs/SFT.md).
_OF_BASE = {"optim.lr": 5e-4, "optim.decay_share": 0.0, "sft.epochs": 3}


def is_used(key: str, stage: str) -> bool:
    """Whether a setting has a meaning in a stage."""
    return not any(key == name or (name.endswith(".") and key.startswith(name)) for name in UNUSED[stage])


def check_used(keys: Iterable[str], stage: str) -> None:
    """ValueError for settings that a stage would ignore."""
    if unused := [key for key in keys if not is_used(key, stage)]:
        why = "; its length is sft.epochs" if "steps" in unused else ""
        raise ValueError(f"{', '.join(unused)}: without a meaning for reasoner {COMMANDS[stage]}{why}")


def preset_values(values: Mapping[str, object], stage: str) -> dict[str, object]:
    """The settings of a preset that a stage takes over."""
    if stage == "rl":
        return dict(values)
    return {key: value for key, value in values.items() if is_used(key, stage) and key not in _OF_RL}


def sft_defaults(preset: str, lora_rank: int) -> dict[str, object]:
    """Defaults of supervised finetuning beside those of a preset: learning rate and schedule, and no reference model.

    2e-5 is TRL's; ten times that with LoRA. Linear decay over the whole run is the schedule of transformers' Trainer;
    setup adds a warm-up of 3 % once the number of steps is known.
    """
    if preset == "base":
        return {**_OF_BASE, "algo.beta": 0.0}
    return {"optim.lr": 2e-4 if lora_rank else 2e-5, "optim.decay_share": 1.0, "algo.beta": 0.0}
