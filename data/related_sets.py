"""Which problem sets belong together, by their names: the validation and test problems of a benchmark whose training
problems are named, and sets that have problems in common.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from data import registry
from data.environments.spec import is_environment
from data.files import local_path
from data.hub import HUB
from data.options import Subset, join_options, split_options, split_subset
from data.spec import parse_table, split_mixture

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
    whole, subset = split_subset(training)
    place = _identity(whole)[0][:2]
    benchmark = next((name for name in HUB if HUB[name].heldout and place == (HUB[name].path, "train")), None)
    if benchmark is None:
        return None
    (name, options), size = split_options(whole), VALIDATION if subset is None else subset.size
    rest, sample = (join_options(name, [*options, f"{side}={size}"]) for side in ("without_sample", "sample"))
    train, validation = (sample, rest) if subset is not None and not subset.is_rest else (rest, sample)
    return OwnSets(benchmark, train, validation, HUB[benchmark].heldout)


def shared_set(training: str, evaluation: str) -> str:
    """The first part of an evaluation's spec that names problems of the training set: the same set, and not the side of
    its division that is not trained on, or a file and its folder. Empty without one. Nothing is read.
    """
    trained = [_identity(part) for part, _ in split_mixture(training)]
    parts = (part for part, _ in split_mixture(evaluation))
    return next((part for part in parts if any(_have_common(_identity(part), own) for own in trained)), "")


def sources_of(spec: str) -> set[str]:
    """Where the problems of a spec come from: named sets without splits, names on the hub, files, environments."""
    return {_identity(part)[0][0] for part, _ in split_mixture(spec)}


_Identity = tuple[tuple[str, str, str], Subset | None]  # (source, split, configuration), subset


def _identity(spec: str) -> _Identity:
    """What a part of a mixture is."""
    if is_environment(spec):
        return (spec, "", ""), None
    whole, subset = split_subset(spec)
    if registry.is_table(whole):
        table = parse_table(whole)
        name = table.name if table.is_hub else str(local_path(table.name).resolve())
        return (name, table.split, table.config or ""), subset
    name, _, split = whole.partition(":")
    if not split and name in registry.SOURCES:
        split = registry.SOURCES[name].splits[0]
    row = HUB.get(name)
    return ((row.path, split, row.config or "") if row else (name, split, "")), subset


def _have_common(one: _Identity, other: _Identity) -> bool:
    (place, subset), (other_place, other_subset) = one, other
    if place != other_place:
        name, other_name = place[0], other_place[0]
        return name == str(Path(other_name).parent) or other_name == str(Path(name).parent)
    if subset is None or other_subset is None or subset.is_rest == other_subset.is_rest:
        return True
    sample, rest = (other_subset, subset) if subset.is_rest else (subset, other_subset)
    return sample.size > rest.size
