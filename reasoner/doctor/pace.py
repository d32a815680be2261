"""From what a step or two took to what the whole run will take."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from reasoner.config.schema import Config
from reasoner.console import speed
from reasoner.doctor.budget import extent
from reasoner.doctor.dry_run import Pace, Trial
from reasoner.doctor.findings import Line, Mark
from reasoner.rl.algorithms import Algorithm

_LONG = 24 * 3600  # seconds of a run that one should know of before


@dataclass(frozen=True, slots=True)
class Expected:
    """Seconds of a run whose responses have so many tokens on average."""

    length: float
    num_steps: int
    step: float
    steps: float  # all of them
    looks: float
    heldout: float
    saves: float
    start: float  # until the first step

    @property
    def total(self) -> float:
        return self.steps + self.looks + self.heldout + self.saves + self.start


def expected(
    trial: Trial, pace: Pace, algorithm: Algorithm, cfg: Config, *, start: float, save: float, share: float
) -> Expected:
    """With steps of that pace. `start`: seconds until the first step; `save`: of a checkpoint; `share`: of groups with
    a signal, which decides how much more is sampled where others are asked in the place of those without.
    """
    run = extent(cfg)
    refills = min(1 + cfg.algo.refills_most, 1 / max(share, 1e-6)) if algorithm.refills else 1
    made = refills * (pace.sample_seconds + pace.record_seconds) + pace.learn_seconds
    probe = trial.probe_seconds / cfg.run.probe_every if cfg.run.probe_every else 0
    step = made * run.per_step / pace.completions + trial.sync_seconds + probe
    steps = min(run.steps, ceil(cfg.tokens / (pace.length * run.per_step))) if cfg.tokens else run.steps
    slower = pace.sample_seconds / trial.now.sample_seconds
    once = trial.bulk.sample_seconds / trial.bulk.completions
    return Expected(
        length=pace.length,
        num_steps=steps,
        step=step,
        steps=steps * step,
        looks=once * run.per_look * (1 + slower * (run.looks - 1)) if run.looks else 0.0,
        heldout=once * run.heldout * (1 + slower) / 2,  # one half is the untrained model's
        saves=save * (run.saves + max(0, run.looks - 1) / 3),  # the best policy has a third of a checkpoint's bytes
        start=start,
    )


def pace_lines(trial: Trial, now: Expected, later: Expected | None, cfg: Config) -> Iterator[Line]:
    """`later`: with responses like those that are right now, where these are longer: there a run moves as it learns."""
    run, pace = extent(cfg), trial.now
    made = "a step" if pace.completions == run.per_step else f"{pace.completions} of a step's {run.per_step}"
    yield Line(
        Mark.OK,
        "speed",
        f"{made} on trial: {speed(pace.tokens / pace.sample_seconds)} sampled and graded, "
        f"{speed(pace.tokens / pace.learn_seconds)} learnt from; weights handed over in {trial.sync_seconds:.2f} s",
    )
    each = f"{now.step:,.1f} s a step as responses are now ({now.length:.0f} tokens)"
    if later is not None:
        each += f", {later.step:,.1f} s once they are as long as those that are right now ({later.length:.0f})"
    after = later or now
    told = {
        "in all": (now.total, after.total),
        f"{now.num_steps} steps": (now.steps, after.steps),
        "evaluation": (now.looks + now.heldout, after.looks + after.heldout),
        "checkpoints": (now.saves, after.saves),
        "before the first step": (now.start, after.start),
    }
    parts = ", ".join(f"{name} {_span(*seconds)}" for name, seconds in told.items() if max(seconds) >= 1)
    yield Line(Mark.LOOK if after.total > _LONG else Mark.OK, "time", f"{each}; {parts}")


def _span(seconds: float, later: float) -> str:
    found = list(dict.fromkeys(map(_told, (seconds, later))))
    return " to ".join(found)


def _told(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
