"""Stages of training: the command of each, which settings it has a use for, and its defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reasoner.config.check import no_effect
from reasoner.config.schema import Config, settings


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage of training. The settings that it has a use for say so in their declaration."""

    command: str  # that starts and resumes its runs
    source: str  # the setting that names what it trains on
    takes: str  # what that may be, for messages
    length: str  # what its number of steps follows from
    # Its own defaults, beside a preset's: for the embedded base, for other models, and of these with LoRA.
    base_defaults: Mapping[str, object] = field(default_factory=dict)
    defaults: Mapping[str, object] = field(default_factory=dict)
    lora_defaults: Mapping[str, object] = field(default_factory=dict)


_OF_RL = ("optim.lr", "optim.warmup_steps", "optim.decay_share")  # that a preset chooses for reinforcement learning
# The schedule of transformers' Trainer, to which supervised finetuning adds a warm-up of 3 % once its length is known;
# and no reference model.
_WITHOUT_ROLLOUTS = {"optim.decay_share": 1.0, "algo.beta": 0.0}

STAGES = {
    "rl": Stage("train", "data.train", "a data set or a file of problems", "steps"),
    "sft": Stage(
        "sft",
        "sft.data",
        "FILE, runs:RUN or a data set of the hub",
        "sft.epochs",
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
        "rm.epochs",
        base_defaults={"optim.lr": 1e-3, **_WITHOUT_ROLLOUTS},
        defaults={"optim.lr": 1e-5, **_WITHOUT_ROLLOUTS},  # OpenRLHF's 9e-6, rounded
    ),
}


def is_used(key: str, stage: str) -> bool:
    """Whether a setting has a meaning in a stage."""
    return stage in settings()[key].stages


def problem_sets(cfg: Config) -> dict[str, str]:
    """The problems that a run asks, by setting: to train, while it trains, and at its end."""
    sets = {
        "data.train": cfg.data.train,
        "validation.data": cfg.validation.data if cfg.validation.interval else "",
        "eval.heldout": cfg.eval.heldout if cfg.eval.heldout_problems else "",
    }
    return {key: spec for key, spec in sets.items() if spec and is_used(key, cfg.stage)}


def check_used(named: Mapping[str, object], stage: str) -> None:
    """ValueError for the first of the named settings, values by key, that a stage would ignore."""
    for key, value in named.items():
        if key in settings() and not is_used(key, stage):
            commands = " or ".join(f"reasoner {STAGES[other].command}" for other in settings()[key].stages)
            length = f" (the length of reasoner {STAGES[stage].command} is {STAGES[stage].length})"
            raise ValueError(no_effect(key, value, f"{commands}{length if key == 'steps' else ''}"))


def preset_values(values: Mapping[str, object], stage: str) -> dict[str, object]:
    """The settings of a preset that a stage takes over."""
    unused = () if stage == "rl" else _OF_RL
    return {key: value for key, value in values.items() if is_used(key, stage) and key not in unused}


def stage_defaults(stage: str, preset: str, lora_rank: object) -> dict[str, object]:
    """Defaults of a stage beside those of a preset: learning rate and schedule, and no reference model."""
    own = STAGES[stage]
    if preset == "base":
        return dict(own.base_defaults)
    return {**own.defaults, **(own.lora_defaults if lora_rank else {})}
