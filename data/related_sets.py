"""Which problem sets belong together, by their names: the validation and test problems of a benchmark whose training
problems are named, and sets that have problems in common.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from data.files import local_path
from data.hub import HUB
from data.spec import Part, parts

VALIDATION = 200  # problems of a published training split that are kept for validation


@dataclass(frozen=True, slots=True)
class OwnSets:
    """The problem sets of a benchmark, each as a spec."""

    benchmark: str  # a key of HUB
    train: str
    validation: str
    heldout: str


def own_sets(training: str) -> OwnSets | None:
    """The sets of the benchmark whose training problems a spec names, by its name or its name on the hub. None for any
    other.

    Validation takes a sample of the same problems, which then are not trained on.
    """
    part, *others = parts(training)
    names = (name for name, row in HUB.items() if row.heldout and (part.on_hub, part.split) == (row.path, "train"))
    if others or (benchmark := next(names, None)) is None:
        return None
    size = VALIDATION if part.subset is None else part.subset.size
    options = f"{part.query}&" if part.query else ""
    rest, sample = (f"{part.place}?{options}{side}={size}" for side in ("without_sample", "sample"))
    train, validation = (sample, rest) if part.subset is not None and not part.subset.is_rest else (rest, sample)
    return OwnSets(benchmark, train, validation, HUB[benchmark].heldout)


def shared_set(training: str, evaluation: str) -> str:
    """The first part of an evaluation's spec that names problems of the training set: the same set, and not the side of
    its division that is not trained on, or a file and its folder. Empty without one. Nothing is read.
    """
    trained = parts(training)
    return next((part.text for part in parts(evaluation) if any(_have_common(part, own) for own in trained)), "")


def sources_of(spec: str) -> set[str]:
    """Where the problems of a spec come from: named sets without splits, names on the hub, files, environments."""
    return {_place(part)[0] for part in parts(spec)}


def _place(part: Part) -> tuple[str, str, str]:
    """(source, split, configuration or parameters) of a set."""
    if part.kind == "environment":
        return part.name, part.split, part.query
    if part.kind == "file":
        return str(local_path(part.name).resolve()), "", ""
    config = HUB[part.name].config if part.name in HUB else part.options.get("config")
    return part.on_hub or part.name, part.split, config or ""


def _have_common(one: Part, other: Part) -> bool:
    (name, *place), (other_name, *other_place) = _place(one), _place(other)
    if (name, place) != (other_name, other_place):
        return name == str(Path(other_name).parent) or other_name == str(Path(name).parent)
    if one.subset is None or other.subset is None or one.subset.is_rest == other.subset.is_rest:
        return True
    sample, rest = (other.subset, one.subset) if one.subset.is_rest else (one.subset, other.subset)
    return sample.size > rest.size
