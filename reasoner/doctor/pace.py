"""Predict the time of the whole run from the seconds that one or two trial steps took."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from reasoner.config.schema import Config
from reasoner.console import speed
from reasoner.doctor.budget import run_budget
from reasoner.doctor.dry_run import DryRun, StepTiming
from reasoner.doctor.findings import Finding, Severity
from reasoner.rl.algorithms import Algorithm

_LONG = 24 * 3600  # seconds: a longer run is marked


@dataclass(frozen=True, slots=True)
class Expected:
    """Predicted seconds of a run whose completions have `length` tokens on average."""

    length: float
    num_steps: int
    step: float  # one step
    steps: float  # all steps
    looks: float  # validation
    heldout: float  # the final table
    saves: float  # checkpoints
    start: float  # set-up before the first step

    @property
    def total(self) -> float:
        return self.steps + self.looks + self.heldout + self.saves + self.start


def expected(
    trial: DryRun, pace: StepTiming, algorithm: Algorithm, cfg: Config, *, start: float, save: float, share: float
) -> Expected:
    """Predict the run's time with steps of this pace. `start`: seconds until the first step; `save`: seconds of a
    checkpoint; `share`: share of groups with non-zero variance, which decides how much dynamic sampling adds.
    """
    run = run_budget(cfg)
    dynamic_sampling = (
        min(1 + cfg.algo.dynamic_sampling_max_rounds, 1 / max(share, 1e-6)) if algorithm.dynamic_sampling else 1
    )
    completion_seconds = dynamic_sampling * (pace.sample_seconds + pace.record_seconds) + pace.learn_seconds
    probe = trial.probe_seconds / cfg.run.parity_interval if cfg.run.parity_interval else 0
    step = completion_seconds * run.per_step / pace.completions + trial.sync_seconds + probe
    steps = (
        min(run.steps, ceil(cfg.max_train_tokens / (pace.length * run.per_step))) if cfg.max_train_tokens else run.steps
    )
    slower = pace.sample_seconds / trial.now.sample_seconds
    each = trial.bulk.sample_seconds / trial.bulk.completions
    return Expected(
        length=pace.length,
        num_steps=steps,
        step=step,
        steps=steps * step,
        looks=each * run.per_look * (1 + slower * (run.looks - 1)) if run.looks else 0.0,
        heldout=each * run.heldout * (1 + slower) / 2,  # one half is the untrained model's
        saves=save * (run.saves + max(0, run.looks - 1) / 3),  # the best policy has a third of a checkpoint's bytes
        start=start,
    )


def pace_lines(trial: DryRun, now: Expected, later: Expected | None, cfg: Config) -> Iterator[Finding]:
    """Lines on speed and time. `later`: the prediction for completions as long as the correct ones are now, where these
    are longer than average: training moves towards them.
    """
    run, pace = run_budget(cfg), trial.now
    size = "a step" if pace.completions == run.per_step else f"{pace.completions} of a step's {run.per_step}"
    yield Finding(
        Severity.OK,
        "speed",
        f"{size} on trial: {speed(pace.tokens / pace.sample_seconds)} sampled and graded, "
        f"{speed(pace.tokens / pace.learn_seconds)} trained on; weights synced in {trial.sync_seconds:.2f} s",
    )
    step = f"{now.step:,.1f} s a step with completions of the present length ({now.length:.0f} tokens)"
    if later is not None:
        step += f", {later.step:,.1f} s once they are as long as the correct ones are now ({later.length:.0f})"
    after = later or now
    ranges = {
        "in all": (now.total, after.total),
        f"{now.num_steps} steps": (now.steps, after.steps),
        "evaluation": (now.looks + now.heldout, after.looks + after.heldout),
        "checkpoints": (now.saves, after.saves),
        "before the first step": (now.start, after.start),
    }
    parts = ", ".join(f"{name} {_span(*seconds)}" for name, seconds in ranges.items() if max(seconds) >= 1)
    yield Finding(Severity.LOOK if after.total > _LONG else Severity.OK, "time", f"{step}; {parts}")


def _span(seconds: float, later: float) -> str:
    """Both durations, or one where they read the same."""
    return " to ".join(dict.fromkeys(map(_duration, (seconds, later))))


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
