"""The band of a metric over runs that differ in their seeds alone, and where another run leaves it.

A curve is smoothed by the median of its last five steps. The band of a step is the mean of the runs, and on both sides
so many standard deviations of theirs: 1.75 times as many as keep each of the runs within the band of the others. So a
new seed is rarely outside, whatever the distribution of the seeds.

Shapes: R runs, S steps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reasoner.runs.metric_names import METRICS, TIMES

Array = NDArray[np.float64]
Lines = Sequence[Mapping[str, float]]  # the metrics of consecutive steps

# Compared are shares and rewards as they are, and by their logarithms metrics whose values lie far apart.
LINEAR = ("reward/mean", "correct", "frac_reward_zero_std", "completions/clipped_ratio")
LOGARITHMIC = ("completions/mean_length", "entropy", "kl", "grad_norm", "sampling/logprob_diff_mean")
SECONDS = "time/step"  # has a band and is not compared: seconds are those of a machine
FIRST_STEP = 4  # that is compared: the median has five steps from it on

_WINDOW = FIRST_STEP + 1
_MARGIN = 1.75  # times the standard deviations that the runs themselves need
_LEAST = 3.0  # standard deviations
_LEAST_DEVIATION = 0.01  # of a share or reward, or of a logarithm
_TINY = 1e-9  # instead of 0, of a logarithm


@dataclass(frozen=True, slots=True)
class Band:
    """The band of a metric by step, from step 0."""

    mean: tuple[float, ...]  # of logarithms: the geometric one
    low: tuple[float, ...]
    high: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Departure:
    """The first step at which a metric is outside its band."""

    metric: str
    step: int
    value: float  # the median of the last five steps
    low: float
    high: float

    @property
    def direction(self) -> str:
        return "high" if self.value > self.high else "low"

    def __str__(self) -> str:
        name = METRICS[self.metric].label or self.metric
        return f"{name} {self.value:.3g} at step {self.step}, normally {self.low:.3g} to {self.high:.3g}"


def band_of(name: str, runs: Sequence[Lines]) -> Band:
    """The band of a metric, over the steps that all runs have."""
    steps = min(map(len, runs))
    curves = np.stack([_smooth_curve(lines[:steps], name) for lines in runs])  # [R, S]
    mean, width = curves.mean(axis=0), max(_LEAST, _MARGIN * _needed(curves)) * _deviation(curves)
    sides = [_unscaled(side, name) for side in (mean, mean - width, mean + width)]
    if (METRICS | TIMES)[name].unit == "share":
        sides = [np.clip(side, 0, 1) for side in sides]
    return Band(*(tuple(side.tolist()) for side in sides))


def departures(lines: Lines, bands: Mapping[str, Band]) -> list[Departure]:
    """The first departure of each compared metric, in the order of their steps, as far as the bands go."""
    found = []
    for name in (*LINEAR, *LOGARITHMIC):
        if name not in bands or not any(name in line for line in lines):
            continue
        band = bands[name]
        values = _unscaled(_smooth_curve(lines[: len(band.low)], name), name)
        low, high = (np.array(side[: len(values)]) for side in (band.low, band.high))
        outside = np.flatnonzero((values < low) | (values > high))
        if len(outside := outside[outside >= FIRST_STEP]):
            step = int(outside[0])
            found.append(Departure(name, step, *(float(one[step]) for one in (values, low, high))))
    return sorted(found, key=lambda one: one.step)


def _needed(curves: Array) -> float:
    """The least number of standard deviations that keeps each of the curves [R, S] within the band of the others."""
    needed = 0.0
    for left_out, curve in enumerate(curves):
        rest = np.delete(curves, left_out, axis=0)
        distance = np.abs(curve - rest.mean(axis=0)) / _deviation(rest)
        needed = max(needed, float(distance[FIRST_STEP:].max(initial=0.0)))
    return needed


def _deviation(curves: Array) -> Array:
    """The standard deviation [S] of curves [R, S], from the variances of the five steps before and after."""
    window = 2 * _WINDOW + 1
    padded = np.pad(curves.var(axis=0, ddof=1), _WINDOW, mode="edge")
    variance = np.convolve(padded, np.full(window, 1 / window), mode="valid")
    deviation: Array = np.maximum(np.sqrt(variance), _LEAST_DEVIATION)
    return deviation


def _smooth_curve(lines: Lines, name: str) -> Array:
    """The median [S], on the metric's scale, of each step and the four before it. A step whose metric is lacking or not
    finite has the value of the step before; without one before, that of the first step that has one.
    """
    known = [line.get(name, math.nan) for line in lines]
    values, last = [], next(filter(math.isfinite, known), 0.0)
    for value in known:
        last = value if math.isfinite(value) else last
        values.append(last)
    scaled = np.array(values) if name in LINEAR else np.log(np.maximum(values, _TINY))
    return np.array([np.median(scaled[max(0, end - _WINDOW) : end]) for end in range(1, len(scaled) + 1)])


def _unscaled(values: Array, name: str) -> Array:
    return values if name in LINEAR else np.exp(values)
