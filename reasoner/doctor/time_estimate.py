"""Predict the time of the whole run from the seconds that one or two trial steps took."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from reasoner.config.schema import Config
from reasoner.console import speed
from reasoner.doctor.budget import run_budget
from reasoner.doctor.findings import Finding, Severity
from reasoner.doctor.trial_steps import StepTiming, TrialSteps
from reasoner.rl.algorithms import Algorithm

_LONG = 24 * 3600  # seconds: a longer run gets a warning


@dataclass(frozen=True, slots=True)
class TimeEstimate:
    """Predicted seconds of a run whose completions have `mean_length` tokens on average."""

    mean_length: float  # tokens of a completion
    num_steps: int
    step: float  # one step
    steps: float  # all steps
    validation: float
    heldout: float  # the final table
    checkpoints: float
    setup: float  # before the first step

    @property
    def total(self) -> float:
        return self.steps + self.validation + self.heldout + self.checkpoints + self.setup


def estimate_time(
    trial: TrialSteps,
    timing: StepTiming,
    algorithm: Algorithm,
    cfg: Config,
    *,
    setup_seconds: float,
    checkpoint_seconds: float,
    informative_share: float,
) -> TimeEstimate:
    """Predict the run's time with steps of this timing. `informative_share`: share of groups with non-zero variance,
    which decides how much dynamic sampling adds.
    """
    run = run_budget(cfg)
    rounds = 1.0
    if algorithm.dynamic_sampling:
        rounds = min(1 + cfg.algo.dynamic_sampling_max_rounds, 1 / max(informative_share, 1e-6))
    completion_seconds = rounds * (timing.generate_seconds + timing.record_seconds) + timing.train_seconds
    probe = trial.probe_seconds / cfg.run.parity_interval if cfg.run.parity_interval else 0
    step = completion_seconds * run.completions_per_step / timing.completions + trial.sync_seconds + probe
    steps = run.steps
    if cfg.max_train_tokens:
        steps = min(steps, ceil(cfg.max_train_tokens / (timing.mean_length * run.completions_per_step)))
    slower = timing.generate_seconds / trial.now.generate_seconds
    each = trial.bulk.generate_seconds / trial.bulk.completions
    return TimeEstimate(
        mean_length=timing.mean_length,
        num_steps=steps,
        step=step,
        steps=steps * step,
        validation=each * run.completions_per_validation * (1 + slower * (run.validations - 1))
        if run.validations
        else 0.0,
        heldout=each * run.heldout_completions * (1 + slower) / 2,  # one half is the untrained model's
        # The best policy has a third of a checkpoint's bytes.
        checkpoints=checkpoint_seconds * (run.checkpoints + max(0, run.validations - 1) / 3),
        setup=setup_seconds,
    )


def time_findings(trial: TrialSteps, now: TimeEstimate, later: TimeEstimate | None, cfg: Config) -> Iterator[Finding]:
    """Findings on speed and time. `later`: the prediction for completions as long as the correct ones are now, where
    these are longer than average: training moves towards them.
    """
    run, timing = run_budget(cfg), trial.now
    whole = run.completions_per_step
    size = "a step" if timing.completions == whole else f"{timing.completions} of a step's {whole}"
    yield Finding(
        Severity.OK,
        "speed",
        f"{size} in a trial step: {speed(timing.tokens / timing.generate_seconds)} sampled and graded, "
        f"{speed(timing.tokens / timing.train_seconds)} trained on; weights synced in {trial.sync_seconds:.2f} s",
    )
    step = f"{now.step:,.1f} s a step with completions of the present length ({now.mean_length:.0f} tokens)"
    if later is not None:
        step += f", {later.step:,.1f} s once they are as long as the correct ones are now ({later.mean_length:.0f})"
    after = later or now
    ranges = {
        "in total": (now.total, after.total),
        f"{now.num_steps} steps": (now.steps, after.steps),
        "evaluation": (now.validation + now.heldout, after.validation + after.heldout),
        "checkpoints": (now.checkpoints, after.checkpoints),
        "before the first step": (now.setup, after.setup),
    }
    parts = ", ".join(f"{name} {_span(*seconds)}" for name, seconds in ranges.items() if max(seconds) >= 1)
    yield Finding(Severity.WARNING if after.total > _LONG else Severity.OK, "time", f"{step}; {parts}")


def _span(seconds: float, later: float) -> str:
    """Both durations, or one where they read the same."""
    return " to ".join(dict.fromkeys(map(_duration, (seconds, later))))


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
