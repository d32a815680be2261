"""The settings of `reasoner reward-model train`: those of the tree that it uses, and its own defaults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

REWARD_MODEL = "rm."  # begins the keys of its own section
_USED = ("model", "seed", "threads", "prompt.", "run.name", "run.dir", "run.save_interval", "run.keep_last", "optim.")
_OF_RL = ("optim.lr", "optim.warmup_steps", "optim.decay_share")  # a preset chooses them for reinforcement learning


def is_used(key: str) -> bool:
    """Whether the training of a reward model uses the setting."""
    return any(key == name or (name.endswith(".") and key.startswith(name)) for name in (*_USED, REWARD_MODEL))


def check_used(keys: Sequence[str]) -> None:
    """Raise ValueError for settings that the training of a reward model would ignore."""
    if unused := [key for key in keys if not is_used(key)]:
        raise ValueError(f"{', '.join(unused)}: without a meaning for reasoner reward-model train")


def preset_values(values: Mapping[str, object]) -> dict[str, object]:
    """The settings of a preset that are taken over: those that suit the model and the machine."""
    return {key: value for key, value in values.items() if is_used(key) and key not in _OF_RL}


def reward_model_defaults(preset: str) -> dict[str, object]:
    """Defaults beside those of the preset: learning rate and schedule.

    1e-5 is OpenRLHF's 9e-6, rounded; 1e-3 was measured for the embedded base. The rate decays linearly to 0.
    """
    return {"optim.lr": 1e-3 if preset == "base" else 1e-5, "optim.decay_share": 1.0}
