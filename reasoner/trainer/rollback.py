"""Responses to alarms. A rollback returns to the state before an alarm's cause: the run goes on from an earlier
checkpoint, with other samples and half the learning rate. The records of the abandoned steps are moved to
RUN/rolled-back/N.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from reasoner.models.checksums import damage
from reasoner.models.lora import load_weights
from reasoner.runs.health import Alarm
from reasoner.runs.run_dir import STEP_PATTERN
from reasoner.trainer import checkpoint
from reasoner.trainer.metrics_logger import MetricsLogger
from reasoner.trainer.trainer import Trainer

MAX_ROLLBACKS = 3  # in a run
_FILES = ("metrics.jsonl", "times.jsonl", "evals.jsonl", "alarms.jsonl")


def respond_to_alarms(
    alarms: Sequence[Alarm],
    how: str,
    run_dir: Path,
    trainer: Trainer,
    logger: MetricsLogger,
    save: Callable[[], object],
) -> bool:
    """Apply run.on_alarm (`how`) to new alarms: warn, stop or roll back. Returns whether the run was rolled back, after
    which the engine needs the trainer's weights. RuntimeError to stop, also where no rollback is left and where every
    checkpoint is damaged; a checkpoint is saved first.
    """
    if how == "warn":
        return False
    alarm, reason = min(alarms, key=lambda alarm: alarm.since), ""
    if how == "rollback" and trainer.attempt < MAX_ROLLBACKS:
        path = trainer.world.from_first(lambda: _checkpoint_before(run_dir, alarm), "the checkpoint to return to")
        if path is not None:
            _roll_back(run_dir, path, trainer, logger, save)
            done, number = trainer.steps_done, trainer.attempt
            logger.log(f"back to {done} steps done, half the learning rate, other samples; rollback {number}")
            return True
        reason = ", and no checkpoint to return to is undamaged"
    elif how == "rollback":
        reason = f", after {trainer.attempt} rollbacks"
    save()
    raise RuntimeError(f"stopped by the alarm {alarm.name!r} with {trainer.steps_done} steps done{reason}")


def _roll_back(run_dir: Path, path: Path, trainer: Trainer, logger: MetricsLogger, save: Callable[[], object]) -> None:
    """Return trainer and folder to the checkpoint.

    That checkpoint is written again first, with the rollback in its state: a run that is killed later resumes from it,
    and finish() does what is left to do. The records of an earlier attempt of the same number are replaced.
    """
    world = trainer.world
    attempt, scale = trainer.attempt + 1, trainer.lr_scale / 2
    load_weights(trainer.policy, path)
    step = checkpoint.load(path, trainer)
    trainer.attempt, trainer.lr_scale = attempt, scale
    if world.is_first:
        shutil.rmtree(run_dir / "rolled-back" / str(attempt), ignore_errors=True)
    save()
    world.from_first(lambda: finish(run_dir, step, attempt), "the records of the steps that are abandoned")
    logger.rewind(step)


def _checkpoint_before(run_dir: Path, alarm: Alarm) -> Path | None:
    """The newest undamaged checkpoint from before the alarm's cause; without one the oldest undamaged one, or None."""
    checkpoints = checkpoint.list_checkpoints(run_dir)
    before = [path for path in checkpoints if checkpoint.step_of(path) <= alarm.since]
    candidates = [*reversed(before), *checkpoints[len(before) :]]
    return next((path for path in candidates if not damage(path)), None)


def finish(run_dir: Path, step: int, attempt: int) -> None:
    """Move the records after `step` to rolled-back/ATTEMPT, unless that was done. Finishes a rollback that was killed
    in between as well.
    """
    aside = run_dir / "rolled-back" / str(attempt)
    if aside.is_dir():
        return
    for later in (later for later in checkpoint.list_checkpoints(run_dir) if checkpoint.step_of(later) > step):
        shutil.rmtree(later)
    beside = aside.with_name(f"{attempt}.partial")
    (beside / "rollouts").mkdir(parents=True, exist_ok=True)
    for name in _FILES:
        if (run_dir / name).is_file():
            shutil.copy(run_dir / name, beside / name)
    for shard in sorted((run_dir / "rollouts").glob(f"{STEP_PATTERN}.parquet")):
        if checkpoint.step_of(shard) >= step:
            shard.rename(beside / "rollouts" / shard.name)
    beside.rename(aside)
