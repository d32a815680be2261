"""Settings and folder of a run that trains a reward model, without torch."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from reasoner.config.resolve import RunSettings, resolve, settings
from reasoner.config.reward_model import check_used, preset_values, reward_model_defaults
from reasoner.runs.run_dir import check_free, find_run, read_settings
from reasoner.trainer.launch import choose_preset

Values = Mapping[str, object]  # settings by dotted key


def resolve_reward_model_run(
    values: Values, *, origin: str, preset: str | None = None, files: Sequence[tuple[str, Values]] = ()
) -> tuple[RunSettings, Path]:
    """The settings of a new run and its folder: what suits the model of the preset, then `files`, then `values`.

    ValueError for settings that cannot be used or have no meaning here, and for a folder in use.
    """
    sources = {key: value for content in (*(own for _, own in files), values) for key, value in content.items()}
    check_used(list(sources))
    model, runs = str(sources.get("model", "base")), Path(str(sources.get("run.dir", "runs")))
    choice, why = choose_preset(preset, model, runs)
    layers = [(name, preset_values(content)) for name, content in choice.layers()]
    resolved = resolve(
        [*layers, ("reasoner reward-model", reward_model_defaults(choice.name)), *files, (origin, values)]
    )
    cfg = resolved.config
    if not cfg.rm.data:
        raise ValueError("rm.data is empty; name a file of preferences: --data FILE")
    if "/" in cfg.run.name or cfg.run.name.startswith("."):
        raise ValueError(f"run.name is {cfg.run.name!r}; it must be a plain name (the folder is run.dir)")
    note = "" if model == "base" else f"preset {choice.label}: {why}; lr {cfg.optim.lr:g}"
    name = cfg.run.name or f"{Path(cfg.model).name}-reward-model-{time.strftime('%m%d-%H%M%S')}"
    run_dir = Path(cfg.run.dir) / name
    check_free(run_dir)
    return replace(resolved, note=note), run_dir


def resolve_resumed_reward_model_run(name: str, *, runs: Path) -> tuple[RunSettings, Path]:
    """The stored settings of a run, none of which can change, and its folder. ValueError for a run of another kind."""
    run_dir = find_run(name, runs)
    stored = read_settings(run_dir)
    values = {key: value for key, value in stored["config"].items() if key in settings()}
    if not values.get("rm.data"):
        raise ValueError(f"{run_dir} does not train a reward model: reasoner train --resume {run_dir}")
    resolved = resolve([("the run", values)])
    return RunSettings(resolved.config, stored.get("origin", {})), run_dir
