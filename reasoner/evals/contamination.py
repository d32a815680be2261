"""Lines on how many evaluation problems stand in the training set (data.overlap): of a run, and of a run's model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from data import Problem, load
from data.overlap import describe_overlaps, find_overlaps
from reasoner.inference.model_spec import training_settings


def contamination_line(training: Iterable[Problem], sets: Mapping[str, Sequence[Problem]]) -> str:
    """How many problems of each set, by its name, stand in the training set; empty without sets."""
    training = list(training)
    parts = [
        f"{name}: {describe_overlaps(find_overlaps(training, problems), len(problems))}"
        for name, problems in sets.items()
        if problems
    ]
    return "; ".join(parts)


def contamination_of_model(folder: Path, sets: Mapping[str, Sequence[Problem]]) -> str:
    """The line for a checkpoint of a run of reinforcement learning and the sets that it is evaluated on; empty for any
    other model: what it was trained on is not recorded.
    """
    settings = training_settings(folder) or {}
    if settings.get("sft.data") or settings.get("rm.data") or "data.train" not in settings:
        return ""
    spec = settings["data.train"]
    try:
        return f"contamination by {spec}: {contamination_line(load(spec), sets)}"
    except (ValueError, OSError) as error:
        return f"contamination by {spec} cannot be checked: {error}"
