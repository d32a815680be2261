"""What follows an alarm. A rollback goes back to before its cause: the same run from an earlier checkpoint, with other
samples and half the learning rate. What is left behind is kept in RUN/rolled-back/N.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from reasoner.models.loading import load_policy
from reasoner.runs.health import Alarm
from reasoner.trainer import checkpoint
from reasoner.trainer.metrics_logger import MetricsLogger
from reasoner.trainer.policy_trainer import PolicyTrainer
from reasoner.types import Engine

MOST = 3  # times in a run
_FILES = ("metrics.jsonl", "times.jsonl", "evals.jsonl", "alarms.jsonl")


def respond_to_alarms(
    begun: Sequence[Alarm],
    how: str,
    run_dir: Path,
    learner: PolicyTrainer,
    logger: MetricsLogger,
    engine: Engine,
    keep: Callable[[int], Path],
) -> None:
    """Do after alarms what run.on_alarm asks for. RuntimeError where that is to stop; the run can be gone on with."""
    alarm = min(begun, key=lambda alarm: alarm.since)
    if how == "rollback" and learner.attempt < MOST:
        step = _roll_back(run_dir, alarm, learner, logger, keep)
        engine.update_weights(learner.policy_state(), version=step)
        logger.log(f"back to {step} steps done, half the learning rate, other samples; rollback {learner.attempt}")
    elif how != "warn":
        keep(logger.steps_done)
        rolled = f", after {learner.attempt} rollbacks" if how == "rollback" else ""
        raise RuntimeError(f"stopped by the alarm {alarm.name!r} with {logger.steps_done} steps done{rolled}")


def _roll_back(
    run_dir: Path, alarm: Alarm, learner: PolicyTrainer, logger: MetricsLogger, keep: Callable[[int], Path]
) -> int:
    """Put learner and folder back to the newest checkpoint from before the alarm's cause, or the oldest that is left;
    its number of steps. The engine still has the weights of before.

    The checkpoint is made anew first, with the rollback in its state: a run that is killed later goes on with it, and
    `finish` does what is left to do. The records of an attempt of the same number, which a run that went back to an
    older checkpoint makes again, are replaced.
    """
    there = checkpoint.list_checkpoints(run_dir)
    before = [path for path in there if checkpoint.step_of(path) <= alarm.since and not checkpoint.damage(path)]
    path = before[-1] if before else there[0]
    attempt, scale = learner.attempt + 1, learner.lr_scale / 2
    learner.policy.load_state_dict(load_policy(path, device=learner.policy.device).state_dict())
    step = checkpoint.load(path, learner)
    learner.attempt, learner.lr_scale = attempt, scale
    shutil.rmtree(run_dir / "rolled-back" / str(attempt), ignore_errors=True)
    keep(step)
    finish(run_dir, step, attempt)
    logger.rewind(step)
    return step


def finish(run_dir: Path, step: int, attempt: int) -> None:
    """Put what a rollback to `step` leaves behind into rolled-back/ATTEMPT, unless that was done. A rollback that was
    killed in between is finished by the same call.
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
    for shard in sorted((run_dir / "rollouts").glob("step-??????.parquet")):
        if checkpoint.step_of(shard) >= step:
            shard.rename(beside / "rollouts" / shard.name)
    beside.rename(aside)
