"""Predict the time of the whole run from the seconds that a trial step took."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from reasoner.config.schema import Config
from reasoner.console import speed
from reasoner.doctor.budget import run_budget
from reasoner.doctor.findings import Finding, Severity
from reasoner.doctor.trial_step import TrialStep
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
    trial: TrialStep,
    algorithm: Algorithm,
    cfg: Config,
    *,
    setup_seconds: float,
    checkpoint_seconds: float,
    informative_share: float,
) -> TimeEstimate:
    """Predict the run's time with steps as long as the trial step. `informative_share`: share of groups with non-zero
    variance, which decides how much dynamic sampling adds.
    """
    run, timing = run_budget(cfg), trial.now
    rounds = 1.0
    if algorithm.dynamic_sampling:
        rounds = min(1 + cfg.algo.dynamic_sampling_max_rounds, 1 / max(informative_share, 1e-6))
    completion_seconds = rounds * (timing.generate_seconds + timing.record_seconds) + timing.train_seconds
    probe = trial.probe_seconds / cfg.run.parity_interval if cfg.run.parity_interval else 0
    step = completion_seconds * run.completions_per_step / timing.completions + trial.sync_seconds + probe
    steps = run.steps
    if cfg.max_train_tokens:
        steps = min(steps, ceil(cfg.max_train_tokens / (timing.mean_length * run.completions_per_step)))
    each = trial.bulk.generate_seconds / trial.bulk.completions
    return TimeEstimate(
        mean_length=timing.mean_length,
        num_steps=steps,
        step=step,
        steps=steps * step,
        validation=each * run.completions_per_validation * run.validations,
        heldout=each * run.heldout_completions,
        # The best policy has a third of a checkpoint's bytes.
        checkpoints=checkpoint_seconds * (run.checkpoints + max(0, run.validations - 1) / 3),
        setup=setup_seconds,
    )


def time_findings(trial: TrialStep, run_time: TimeEstimate, cfg: Config) -> Iterator[Finding]:
    """Findings on speed and time."""
    whole, timing = run_budget(cfg).completions_per_step, trial.now
    size = "a step" if timing.completions == whole else f"{timing.completions} of a step's {whole}"
    yield Finding(
        Severity.OK,
        "speed",
        f"{size} in a trial step: {speed(timing.tokens / timing.generate_seconds)} sampled and graded, "
        f"{speed(timing.tokens / timing.train_seconds)} trained on; weights synced in {trial.sync_seconds:.2f} s",
    )
    seconds = {
        "in total": run_time.total,
        f"{run_time.num_steps} steps": run_time.steps,
        "evaluation": run_time.validation + run_time.heldout,
        "checkpoints": run_time.checkpoints,
        "before the first step": run_time.setup,
    }
    parts = ", ".join(f"{name} {_duration(own)}" for name, own in seconds.items() if own >= 1)
    step = f"{run_time.step:,.1f} s a step with completions of the present length ({run_time.mean_length:.0f} tokens)"
    yield Finding(Severity.WARNING if run_time.total > _LONG else Severity.OK, "time", f"{step}; {parts}")


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
