"""Settings that are lists of names with weights: "NAME=0.5, OTHER" (reward.functions, reward.model)."""

from __future__ import annotations

from math import isfinite


def parse_weighted(setting: str, text: str, form: str) -> dict[str, float]:
    """Parse the value of a setting into weights by name, 1 where none is stated. `form` is a name as messages show it.

    ValueError, naming the setting, for an entry without a name, for a weight that is not a finite number, and for a
    name that stands twice.
    """
    weights: dict[str, float] = {}
    for entry in filter(None, map(str.strip, text.split(","))):
        name, number = map(str.strip, entry.rsplit("=", 1)) if "=" in entry else (entry, "1")
        try:
            weight = float(number)
        except ValueError:
            weight = float("nan")
        if not name or not isfinite(weight):
            raise ValueError(f"{setting} has {entry!r}; it takes {form} or {form}=WEIGHT, a finite number")
        if name in weights:
            raise ValueError(f"{setting} has {name!r} twice")
        weights[name] = weight
    return weights
