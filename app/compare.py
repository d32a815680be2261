"""Compare runs: their curves, the settings that differ, and the held-out problems one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from app.overview import curves
from app.run_library import RunLibrary
from reasoner.evals import compare as paired_evals
from reasoner.evals.eval_log import read_manifest
from reasoner.evals.paired import format_p
from reasoner.runs.json_files import read_object
from reasoner.runs.metric_names import METRICS
from reasoner.runs.run_dir import read_settings

_MOST = 6  # runs
_MOST_FLIPS = 200  # problems that are sent
_METRICS = {"step", *(name for name, row in METRICS.items() if "compare" in row.places)}

Read = Callable[[Path, str], dict[str, paired_evals.Samples]]


def compare(library: RunLibrary, runs: list[str]) -> dict[str, Any]:
    """Compare two to six runs by name; held-out problems are compared with those of the first run.

    ValueError for another number of runs, and for a run that does not exist.
    """
    if not 2 <= len(set(runs)) <= _MOST:
        raise ValueError(f"{len(set(runs))} runs are chosen; choose two to {_MOST}")
    names = list(dict.fromkeys(runs))
    settings = [read_settings(library.run(name))["config"] for name in names]
    versions = [read_object(library.run(name) / "versions.json") for name in names]
    read = cache(paired_evals.samples_by_problem)  # those of the first run once for all the others
    pages = [_heldout(library, names[0], other, read) for other in names[1:]]
    adjusted = iter(paired_evals.with_adjusted_p(one for page in pages for one in page["differences"]))
    return {
        "runs": names,
        "curves": {name: _curves(library, name) for name in names},
        "settings": _differences(settings),
        "versions": _differences(versions),
        "heldout": [
            page | {"differences": [_difference(next(adjusted)) for _ in page["differences"]]} for page in pages
        ],
    }


def _curves(library: RunLibrary, name: str) -> dict[str, Any]:
    own = curves(library.run(name))
    metrics = [{key: value for key, value in line.items() if key in _METRICS} for line in own["metrics"]]
    return own | {"metrics": metrics}


def _heldout(library: RunLibrary, a: str, b: str, read: Read) -> dict[str, Any]:
    """The held-out problems after training: the differences of B minus A, and the problems that flipped."""
    evals = library.evals()
    folders = [evals.get(f"{name}/after") for name in (a, b)]
    empty: dict[str, Any] = {"a": a, "b": b, "fault": None, "differences": [], "flips": [], "num_flips": 0}
    if folders[0] is None or folders[1] is None:
        missing = " and ".join(name for name, folder in zip((a, b), folders, strict=True) if folder is None)
        verb = "have" if " and " in missing else "has"
        return empty | {"fault": f"{missing} {verb} no held-out evaluation: training is not finished, or makes none"}
    try:
        a_folder, b_folder = (library.evaluation(f"{name}/after") for name in (a, b))
        manifests = [read_manifest(folder) for folder in (a_folder, b_folder)]
        if faults := paired_evals.mismatches(manifests[1], manifests[0]):
            return empty | {"fault": "; ".join(faults)}
        pairs = {  # that of B first: a difference is the first minus the second
            spec: (read(b_folder, spec), read(a_folder, other))
            for spec, other in paired_evals.match_sets(manifests[1]["data"], manifests[0]["data"]).items()
        }
        flips = [
            asdict(flip) | {"a": flip.b, "b": flip.a}
            for spec, both in pairs.items()
            for flip in paired_evals.find_flips(spec, *both)
        ]
        differences = paired_evals.compare_metrics(pairs)
    except (ValueError, OSError) as error:  # also for a set of a single problem
        return empty | {"fault": str(error)}
    return empty | {"differences": differences, "flips": flips[:_MOST_FLIPS], "num_flips": len(flips)}


def _difference(one: paired_evals.MetricComparison) -> dict[str, Any]:
    values = {"a": one.b, "b": one.a, "difference": asdict(one.difference), "p": format_p(one.p_holm)}
    return {"set": one.spec, "metric": one.metric, **values}


def _differences(values: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The keys whose values differ between runs, in alphabetical order: `key`, and `values`, one of each run."""
    keys = sorted({key for own in values for key in own})
    rows = [{"key": key, "values": [own.get(key) for own in values]} for key in keys]
    return [row for row in rows if any(value != row["values"][0] for value in row["values"])]
