"""Stages of training: the command of each, which settings it has a use for, and its defaults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from reasoner.config.schema import Config


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage of training. Names that end in "." stand for sections of settings."""

    command: str  # that starts and resumes its runs
    source: str  # the setting that names what it trains on
    takes: str  # what that may be, for messages
    unused: tuple[str, ...]  # settings without a meaning in it
    length: str  # what its number of steps follows from
    unused_of_preset: tuple[str, ...] = ()  # settings that a preset chooses for reinforcement learning
    # Its own defaults, beside a preset's: for the embedded base, for other models, and of these with LoRA.
    base_defaults: Mapping[str, object] = field(default_factory=dict)
    defaults: Mapping[str, object] = field(default_factory=dict)
    lora_defaults: Mapping[str, object] = field(default_factory=dict)


_OF_SAMPLING = (  # of runs that learn from their own rollouts
    "steps", "max_train_tokens", "max_off_policy_steps", "control", "run.parity_interval", "run.token_stats",
    "run.importance_ratio",
    "data.", "reward.", "algo.", "critic.", "ptx.",
)  # fmt: skip
_OF_ENGINE = ("sampling.", "engine.", "verify.", "validation.", "eval.")
_OF_RL = ("optim.lr", "optim.warmup_steps", "optim.decay_share")
# The schedule of transformers' Trainer, to which supervised finetuning adds a warm-up of 3 % once its length is known;
# and no reference model.
_WITHOUT_ROLLOUTS = {"optim.decay_share": 1.0, "algo.beta": 0.0}

STAGES = {
    "rl": Stage("train", "data.train", "a data set or a file of problems", ("sft.", "rm."), "steps"),
    "sft": Stage(
        "sft",
        "sft.data",
        "FILE, runs:RUN or a data set of the hub",
        (*_OF_SAMPLING, "rm."),
        "sft.epochs",
        _OF_RL,
        # Measured on the embedded base, whose own samples make some ten steps: decay would halve what they teach
        # (docs/SFT.md).
        base_defaults={"optim.lr": 5e-4, "optim.decay_share": 0.0, "sft.epochs": 3, "algo.beta": 0.0},
        defaults={"optim.lr": 2e-5, **_WITHOUT_ROLLOUTS},  # TRL's
        lora_defaults={"optim.lr": 2e-4},  # ten times that
    ),
    "reward-model": Stage(
        "reward-model train",
        "rm.data",
        "a FILE of preferences",
        (*_OF_SAMPLING, *_OF_ENGINE, "processes", "run.on_alarm", "run.track", "lora.", "sft."),
        "rm.epochs",
        _OF_RL,
        base_defaults={"optim.lr": 1e-3, **_WITHOUT_ROLLOUTS},
        defaults={"optim.lr": 1e-5, **_WITHOUT_ROLLOUTS},  # OpenRLHF's 9e-6, rounded
    ),
}


def is_used(key: str, stage: str) -> bool:
    """Whether a setting has a meaning in a stage."""
    return not any(key == name or (name.endswith(".") and key.startswith(name)) for name in STAGES[stage].unused)


def problem_sets(cfg: Config) -> dict[str, str]:
    """The problems that a run asks, by setting: to train, while it trains, and at its end."""
    sets = {
        "data.train": cfg.data.train,
        "validation.data": cfg.validation.data if cfg.validation.interval else "",
        "eval.heldout": cfg.eval.heldout if cfg.eval.heldout_problems else "",
    }
    return {key: spec for key, spec in sets.items() if spec and is_used(key, cfg.stage)}


def check_used(keys: Iterable[str], stage: str) -> None:
    """ValueError for settings that a stage would ignore."""
    if unused := [key for key in keys if not is_used(key, stage)]:
        others = [other.command for name, other in STAGES.items() if all(is_used(key, name) for key in unused)]
        why = f"; reasoner {others[0]} takes {'it' if len(unused) == 1 else 'them'}" if others else ""
        if "steps" in unused:
            why = f"; its length is {STAGES[stage].length}"
        elif "processes" in unused:
            why = "; it is one process: leave --processes and torchrun out"
        raise ValueError(f"{', '.join(unused)}: without a meaning for reasoner {STAGES[stage].command}{why}")


def preset_values(values: Mapping[str, object], stage: str) -> dict[str, object]:
    """The settings of a preset that a stage takes over."""
    unused = STAGES[stage].unused_of_preset
    return {key: value for key, value in values.items() if is_used(key, stage) and key not in unused}


def stage_defaults(stage: str, preset: str, lora_rank: int) -> dict[str, object]:
    """Defaults of a stage beside those of a preset: learning rate and schedule, and no reference model."""
    own = STAGES[stage]
    if preset == "base":
        return dict(own.base_defaults)
    return {**own.defaults, **(own.lora_defaults if lora_rank else {})}
