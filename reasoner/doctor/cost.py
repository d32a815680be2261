"""Time and disk space of the whole run, predicted from what a trial step took."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from math import ceil

from reasoner.config.schema import Config
from reasoner.console import speed
from reasoner.doctor.findings import Finding, Severity
from reasoner.doctor.trial_step import TrialStep
from reasoner.rl.algorithms import Algorithm
from reasoner.runs.run_dir import nearest
from reasoner.trainer.checkpoint import room_needed
from reasoner.trainer.setup import RunContext
from reasoner.trainer.trainer import Trainer

_LONG = 24 * 3600  # seconds: a longer run gets a warning
_MIB = 2**20


def cost_findings(
    run: RunContext, trainer: Trainer, trial: TrialStep, *, informative_share: float
) -> Iterator[Finding]:
    """The findings on speed, time and disk. `informative_share`: as in estimate_time()."""
    time = estimate_time(trial, run.algorithm, run.cfg, informative_share=informative_share)
    yield from _time_findings(trial, time, run.cfg)
    yield _disk_finding(run, trainer, trial, time)


@dataclass(frozen=True, slots=True)
class TimeEstimate:
    """Predicted seconds of a run whose completions have `mean_length` tokens on average."""

    mean_length: float  # tokens of a completion
    num_steps: int
    step: float  # one step
    steps: float  # all steps
    evaluation: float  # validations and the final table

    @property
    def total(self) -> float:
        return self.steps + self.evaluation


def estimate_time(trial: TrialStep, algorithm: Algorithm, cfg: Config, *, informative_share: float) -> TimeEstimate:
    """Predict the run's time with steps as long as the trial step. `informative_share`: share of groups with non-zero
    variance, which decides how much dynamic sampling adds.
    """
    timing, per_step = trial.now, cfg.completions_per_step
    rounds = 1.0
    if algorithm.dynamic_sampling:
        rounds = min(1 + cfg.algo.dynamic_sampling_max_rounds, 1 / max(informative_share, 1e-6))
    completion_seconds = rounds * (timing.generate_seconds + timing.record_seconds) + timing.train_seconds
    probe = trial.probe_seconds / cfg.run.parity_interval if cfg.run.parity_interval else 0
    step = completion_seconds * per_step / timing.completions + trial.sync_seconds + probe
    steps = cfg.steps
    if cfg.max_train_tokens:
        steps = min(steps, ceil(cfg.max_train_tokens / (timing.mean_length * per_step)))
    num, own = num_validations(steps, cfg.validation.interval), cfg.validation
    validation = num * own.problems * (own.samples + 1)  # one greedy
    heldout = 2 * cfg.eval.heldout_problems * (cfg.eval.samples + 1)  # of the models before and after training
    each = trial.bulk.generate_seconds / trial.bulk.completions
    return TimeEstimate(timing.mean_length, steps, step, steps * step, each * (validation + heldout))


def num_validations(steps: int, interval: int) -> int:
    """Validations of a run, the one before the first step and the one after the last included."""
    return 1 + ceil(steps / interval) if interval else 0


def _time_findings(trial: TrialStep, time: TimeEstimate, cfg: Config) -> Iterator[Finding]:
    whole, timing = cfg.completions_per_step, trial.now
    size = "a step" if timing.completions == whole else f"{timing.completions} of a step's {whole}"
    yield Finding(
        Severity.OK,
        "speed",
        f"{size} in a trial step: {speed(timing.tokens / timing.generate_seconds)} sampled and graded, "
        f"{speed(timing.tokens / timing.train_seconds)} trained on; weights synced in {trial.sync_seconds:.2f} s",
    )
    seconds = {"in total": time.total, f"{time.num_steps} steps": time.steps, "evaluation": time.evaluation}
    parts = ", ".join(f"{name} {_duration(own)}" for name, own in seconds.items() if own >= 1)
    text = f"{time.step:,.1f} s a step with completions of the present length ({time.mean_length:.0f} tokens); {parts}"
    measurements = {"dry_run": {"now": asdict(timing), "bulk": asdict(trial.bulk)}}
    measurements["time"] = asdict(time) | {"total": time.total}
    severity = Severity.WARNING if time.total > _LONG else Severity.OK
    yield Finding(severity, "time", text, measurements=measurements)


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _disk_finding(run: RunContext, trainer: Trainer, trial: TrialStep, time: TimeEstimate) -> Finding:
    """The finding on disk space. That of checkpoints is computed as a run computes it when it starts."""
    folder, keep = nearest(run.run_dir), run.cfg.run.keep_last
    free = shutil.disk_usage(folder).free
    bytes_per_token = trial.rollout_bytes / max(1, trial.now.tokens)
    rollouts = bytes_per_token * time.num_steps * run.cfg.completions_per_step * time.mean_length
    checkpoint, checkpoints = room_needed(trainer, keep=keep)
    required = checkpoints + rollouts
    sizes = {"checkpoint": checkpoint, "rollouts": rollouts, "required": required, "free": free}
    text = (
        f"{required / _MIB:,.0f} MiB in total: {rollouts / _MIB:,.1f} of rollouts ({bytes_per_token:.0f} bytes a "
        f"token), {checkpoint / _MIB:,.0f} each checkpoint, of which {keep} are kept; "
        f"{free / _MIB:,.0f} free in {folder}"
    )
    measurements = {"disk": sizes | {"bytes_per_token": bytes_per_token}}
    if required <= free:
        return Finding(Severity.OK, "disk", text, measurements=measurements)
    fewer = keep > 1 and required - (keep - 1) * checkpoint <= free
    return Finding(Severity.ERROR, "disk", text, "--run.keep_last 1" if fewer else "", measurements)
