"""Fingerprints of a run's inputs: the base model, the prompt template and the problems. A resumed run must have the
same ones: its settings name files and folders, whose contents may have changed since.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from data import Problem
from data.registry import fingerprint
from reasoner.config.schema import Config
from reasoner.models.folder import model_fingerprint
from reasoner.models.resolve import resolve_model
from reasoner.rollouts.prompts import Template
from reasoner.rollouts.reward_models import parse_reward_models
from reasoner.types import Prompt


def fingerprints_of(
    base: Path, template: Template, training: Mapping[str, str], validation: Sequence[Problem]
) -> dict[str, str]:
    """Hexadecimal SHA-256 digests by the setting that names the source: of the model's weights, config and tokenizer
    (16 digits, as `reasoner eval` has them), of the prompt template, of the training data (`training`), and of the
    validation problems where there are some.
    """
    fingerprints = {"model": model_fingerprint(base), "prompt.style": template.fingerprint, **training}
    if not validation:
        return fingerprints
    return fingerprints | {"validation.data": fingerprint(validation)}


def learning_fingerprints(cfg: Config, prompts: Sequence[Prompt] = ()) -> dict[str, str]:
    """Digests of what a run learns from besides its problems: of the reward models, separated by commas, of the
    teacher and of its own prompts, where there are some.
    """
    folders = [resolve_model(name, runs=Path(cfg.run.dir)) for name in parse_reward_models(cfg.reward.model)]
    teacher = [resolve_model(cfg.teacher.model, runs=Path(cfg.run.dir))] if cfg.teacher.loaded else []
    fingerprints = {
        name: ",".join(map(model_fingerprint, paths))
        for name, paths in (("reward.model", folders), ("teacher.model", teacher))
        if paths
    }
    if not cfg.teacher.prompt:
        return fingerprints
    own = repr([prompt.teacher_ids for prompt in prompts]).encode()
    return fingerprints | {"teacher.prompt": hashlib.sha256(own).hexdigest()}


def check_unchanged(
    stored: Mapping[str, Any], now: Mapping[str, str], settings: Mapping[str, object], log: Callable[[str], None]
) -> None:
    """Compare the fingerprints of `now` with those that a run's config.json holds (`stored`: run_dir.read_settings).
    ValueError where model, prompt or training data are not the ones that the run began with. Other validation problems
    are reported. `settings` are those of now, by dotted key.
    """
    then = stored.get("fingerprints", {})
    for name in now:
        if name != "validation.data" and then.get(name) != now[name]:
            raise ValueError(
                f"{name} is {settings[name]!r} as before, but its content has changed: its fingerprint is "
                f"{now[name][:16]}, and that of the run {str(then.get(name))[:16]}. Restore the old content, or start "
                "a new run"
            )
    before, after = (prints.get("validation.data") for prints in (then, now))
    if before and after and before != after:
        log(
            f"the validation problems {settings['validation.data']!r} have changed since the run began: validations "
            "before and after are not comparable, nor is the best policy so far"
        )
