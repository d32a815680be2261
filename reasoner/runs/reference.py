"""References: the bands within which the metrics of a preset run from seed to seed, and what it means to leave them.

`reasoner reference make RUNS --out FILE` makes one from runs that differ in their seeds alone; reasoner/references has
those that were made here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

from reasoner.runs.bands import FIRST_STEP, LINEAR, LOGARITHMIC, SECONDS, Band, Departure, Lines, band_of, departures
from reasoner.runs.io import write_text
from reasoner.runs.json_files import is_file, read_object
from reasoner.runs.metrics import read_metrics
from reasoner.runs.run_dir import read_settings

REFERENCE = "reference.json"  # of a run's folder: the copy of run.reference
CHECKED_STEPS = 20  # after which a run is compared with the reference of its preset
FEWEST_RUNS = 4
_FOLDER = Path(__file__).parents[1] / "references"
_FORMAT = 1
_TOGETHER, _AT_FIRST = 5, 2  # steps after the first departure
_SIDES = ("mean", "low", "high")

# Settings in which two runs of one recipe may differ.
_FREE = ("seed", "threads", "processes", "steps", "max_train_tokens", "engine.name")
_FREE_SECTIONS = ("run.", "validation.", "eval.", "verify.")
_INPUTS = ("model", "prompt.style", "data.train")  # by their fingerprints


@dataclass(frozen=True, slots=True)
class Reference:
    """The bands of runs of one recipe that differ in their seeds."""

    preset: str
    seeds: tuple[int, ...]
    fingerprints: Mapping[str, str]  # of model, prompt template and training problems
    settings: Mapping[str, object]  # that decide results, by dotted key
    bands: Mapping[str, Band]

    @property
    def label(self) -> str:
        return f"{len(self.seeds)} runs of preset {self.preset}"

    @property
    def num_steps(self) -> int:
        """The number of steps that the bands cover."""
        return max(len(band.mean) for band in self.bands.values())


@dataclass(frozen=True, slots=True)
class Comparison:
    """A run beside a reference."""

    reference: Reference
    num_steps: int  # that were compared
    departures: Sequence[Departure]
    differing: Sequence[str]  # settings, with both values
    seconds: tuple[float, float]  # of a step, the medians: of the run and of the reference; 0 if unknown

    @property
    def is_inside(self) -> bool:
        return not self.departures

    def __str__(self) -> str:
        if self.is_inside:
            own, normal = self.seconds
            speed = f"; a step takes {own:.1f} s, {normal:.1f} on their machine" if own and normal else ""
            return f"normal: the metrics of {self.num_steps} steps lie within those of {self.reference.label}{speed}"
        lines = [f"not as {self.reference.label} (medians of five steps):", *map(str, self.departures)]
        lines += [f"a likely cause: {meaning}" for meaning in likely_causes(self.departures)]
        lines += [f"settings other than the reference's: {', '.join(self.differing)}"] * bool(self.differing)
        return "\n  ".join(lines)


# Departures of these metrics in these directions, all of them, and what they hint at.
CAUSES: tuple[tuple[Mapping[str, str], str], ...] = (
    (
        {"sampling/logprob_diff_mean": "high"},
        "the engine does not sample from the policy that is trained: stale or other weights, another temperature, or "
        "a lower precision (engine.dtype)",
    ),
    ({"kl": "high", "grad_norm": "high"}, "updates are too large: the learning rate, or the clipping of gradients"),
    ({"entropy": "low", "correct": "low"}, "the policy has collapsed onto few answers"),
    (
        {"correct": "low", "reward/mean": "high"},
        "the reward pays for something else than right answers: a reward function, or the grader",
    ),
    ({"correct": "low", "reward/mean": "low"}, "what is rewarded cannot be learnt: wrong gold answers, or the grader"),
)


def likely_causes(outside: Sequence[Departure]) -> list[str]:
    """The meanings of the causes whose signs all come within five steps of the first departure, and one of them within
    two: what comes later follows from something else.
    """
    first = min((one.step for one in outside), default=0)
    early = {(one.metric, one.direction): one.step - first for one in outside if one.step - first <= _TOGETHER}
    return [
        meaning
        for signs, meaning in CAUSES
        if signs.items() <= early.keys() and min(early[sign] for sign in signs.items()) <= _AT_FIRST
    ]


def compare_run(run_dir: Path, lines: Lines, file: str = "") -> Comparison | None:
    """Compare a run's metrics so far with the reference of a file, else with its own; None where it has none.
    ValueError for a file that is no reference.
    """
    stored = read_settings(run_dir)
    reference = read_reference(Path(file)) if file else reference_of(run_dir, stored)
    if reference is None:
        return None
    config, settings = stored["config"], reference.settings
    differing = [f"{key} {config.get(key)} ({settings[key]})" for key in _differing(config, settings)]
    num_steps = min(len(lines), reference.num_steps)
    own = [line[SECONDS] for line in lines[:num_steps] if SECONDS in line]
    normal = reference.bands[SECONDS].mean[:num_steps] if SECONDS in reference.bands else ()
    seconds = (median(own or [0.0]), median(normal or [0.0]))
    return Comparison(reference, num_steps, departures(lines, reference.bands), differing, seconds)


def make_reference(run_dirs: Sequence[Path]) -> Reference:
    """The bands of runs, over the steps that all of them have. ValueError for fewer than four, for two of one seed, and
    for runs of different settings, models, prompts or problems.
    """
    if len(run_dirs) < FEWEST_RUNS:
        raise ValueError(
            f"a reference takes {FEWEST_RUNS} runs that differ in their seeds or more, not {len(run_dirs)}"
        )
    stored = [read_settings(run_dir) for run_dir in run_dirs]
    first, seeds = stored[0], tuple(int(one["config"]["seed"]) for one in stored)
    for run_dir, one in zip(run_dirs, stored, strict=True):
        if names := _differing_inputs(one, first) + _differing(one["config"], _deciding(first["config"])):
            raise ValueError(f"{run_dir} and {run_dirs[0]} differ in {', '.join(names)}; a reference is of one recipe")
    if len({*seeds}) < len(seeds):
        raise ValueError(f"the runs' seeds are {', '.join(map(str, seeds))}; each run must have its own")
    curves = [read_metrics(run_dir) for run_dir in run_dirs]
    if min(map(len, curves)) <= FIRST_STEP:
        raise ValueError(f"a reference takes runs of {FIRST_STEP + 1} steps or more, not {min(map(len, curves))}")
    bands = {
        name: band_of(name, curves)
        for name in (*LINEAR, *LOGARITHMIC, SECONDS)
        if all(any(name in line for line in lines) for lines in curves)
    }
    fingerprints = {key: first["fingerprints"][key] for key in _INPUTS}
    presets = (origin.removeprefix("preset ") for origin in first["origin"].values() if origin.startswith("preset "))
    preset = next(presets, str(first["config"]["model"]))
    return Reference(preset, seeds, fingerprints, _deciding(first["config"]), bands)


def reference_of(run_dir: Path, stored: Mapping[str, Any]) -> Reference | None:
    """The reference that a run is compared with: its copy of run.reference, or one of reasoner/references with the
    run's model, prompt, problems, rewards and algorithm; None where there is none. `stored`: read_settings() of the
    run. ValueError for a file that is no reference.
    """
    if is_file(run_dir / REFERENCE):
        return read_reference(run_dir / REFERENCE)
    for reference in _own_references():
        same = [key for key in reference.settings if key.startswith("reward.") or key == "algo.name"]
        if not _differing_inputs(stored, {"fingerprints": reference.fingerprints}) and all(
            stored["config"].get(key) == reference.settings[key] for key in same
        ):
            return reference
    return None


@cache
def _own_references() -> tuple[Reference, ...]:
    return tuple(map(read_reference, sorted(_FOLDER.glob("*.json"))))


def _differing(config: Mapping[str, object], settings: Mapping[str, object]) -> list[str]:
    return [key for key, value in settings.items() if config.get(key) != value]


def _deciding(config: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in config.items() if key not in _FREE and not key.startswith(_FREE_SECTIONS)}


def _differing_inputs(stored: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    own, others = (one.get("fingerprints", {}) for one in (stored, other))
    return [key for key in _INPUTS if own.get(key) != others.get(key)]


# ------------------------------------------------------------------------------------------------ files


def read_reference(path: Path) -> Reference:
    """Read a file of write_reference. ValueError for another format or a damaged file."""
    if not is_file(path):
        raise ValueError(f"there is no file {path}; reasoner reference make RUNS --out FILE makes a reference")
    content = read_object(path)
    try:
        if content["format"] != _FORMAT:
            raise ValueError(f"its format is {content['format']}, and this version reads {_FORMAT}")
        bands = {
            name: Band(*(tuple(map(float, one[side])) for side in _SIDES)) for name, one in content["bands"].items()
        }
        if any(len(band.mean) != len(band.low) or len(band.low) != len(band.high) for band in bands.values()):
            raise ValueError("the sides of a band have different lengths")
        seeds = tuple(map(int, content["seeds"]))
        return Reference(content["preset"], seeds, dict(content["fingerprints"]), dict(content["settings"]), bands)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(
            f"{path} is no reference ({error}); reasoner reference make RUNS --out FILE makes one"
        ) from error


def write_reference(path: Path, reference: Reference) -> None:
    """Write a reference; its numbers have four digits."""
    bands = {
        name: {side: [float(f"{value:.4g}") for value in getattr(band, side)] for side in _SIDES}
        for name, band in reference.bands.items()
    }
    content = {"preset": reference.preset, "seeds": reference.seeds, "fingerprints": reference.fingerprints}
    text = json.dumps({"format": _FORMAT, **content, "settings": reference.settings, "bands": bands})
    write_text(path, f"{text}\n")
