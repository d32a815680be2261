"""A training run of any stage: its components, its position, its record, its checkpoints and its validation."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from transformers import PreTrainedTokenizerBase

from reasoner.config.schema import Config
from reasoner.distributed.world import RunInterrupt, SharedError, World
from reasoner.inference.answers import ANSWERS
from reasoner.runs.health import Alarm, new_alarms
from reasoner.runs.reference import CHECKED_STEPS, compare_run
from reasoner.trainer import checkpoint
from reasoner.trainer.callbacks import Callbacks
from reasoner.trainer.checkpoint_writer import CheckpointWriter
from reasoner.trainer.metrics_logger import MetricsLogger
from reasoner.trainer.rollout_generator import RolloutGenerator
from reasoner.trainer.schedule import is_due
from reasoner.trainer.shutdown import GracefulShutdown
from reasoner.trainer.snapshot import is_copied, snapshot
from reasoner.trainer.step_metrics import StepTimer
from reasoner.trainer.trackers import Tracking
from reasoner.trainer.trainer import Trainer
from reasoner.trainer.validation import BEST_BY, Validator, discard_heldout, evaluate_heldout
from reasoner.types import EngineUnavailableError, Prompt


@dataclass(slots=True, kw_only=True)
class TrainingRun:
    """The components of a run, which reasoner.trainer.setup opens and closes, and what is done with them.

    Positions have one owner each: the number of steps done is the trainer's, because a checkpoint stores it; the
    number of tokens, sampled or in supervised finetuning learnt, is that of the metrics. Every rank of `world` has the
    same values; the first one writes.
    """

    cfg: Config
    run_dir: Path
    base: Path  # folder of the model before training
    tokenizer: PreTrainedTokenizerBase
    trainer: Trainer
    generator: RolloutGenerator
    validator: Validator
    heldout: Sequence[Prompt]
    logger: MetricsLogger
    tracking: Tracking
    shutdown: GracefulShutdown
    start: int  # steps done when this process began
    callbacks: Callbacks = field(default_factory=Callbacks)
    writer: CheckpointWriter = field(default_factory=CheckpointWriter)
    _alarms: list[Alarm] = field(default_factory=list)  # raised by the last step
    _tokenizer_copy: PreTrainedTokenizerBase = field(init=False)  # the thread's: a tokenizer serves one at a time

    def __post_init__(self) -> None:
        self._tokenizer_copy = deepcopy(self.tokenizer)

    @property
    def world(self) -> World:
        """The ranks of the run."""
        return self.trainer.world

    @property
    def step(self) -> int:
        """The number of the next step; the first is 0."""
        return self.trainer.steps_done

    @property
    def num_tokens(self) -> float:
        """Tokens of the steps that are recorded."""
        return self.logger.num_tokens()

    @property
    def is_finished(self) -> bool:
        """Whether the run has done its steps, or sampled its tokens, or a callback ended it."""
        return self.callbacks.stops or self.is_last(self.step - 1, self.num_tokens)

    def is_last(self, step: int, num_tokens: float) -> bool:
        """Whether the run ends after the step, where it has so many tokens in all steps so far."""
        budget = self.cfg.max_train_tokens
        return step + 1 >= self.cfg.steps or 0 < budget <= num_tokens

    def steps(self) -> Iterator[tuple[int, StepTimer]]:
        """Yield (number, timer) of each step until the run is finished."""
        timer = None
        while not self.is_finished:
            timer = StepTimer(previous=timer)
            yield self.step, timer

    @contextmanager
    def save_if_interrupted(self) -> Iterator[None]:
        """A block that leaves the trainer as it is after the last step: whatever ends it, a checkpoint is saved.

        RuntimeError that names the step for an error in the block; RunInterrupt for a signal. Where the ranks hold
        shards, the checkpoint is saved if the block ends on all of them, by a signal or a SharedError.
        """
        step = self.step
        try:
            with self.shutdown.interruptible():
                self.logger.progress.begin(f"step {step}")
                yield
        except BaseException as error:
            is_shared = isinstance(error, RunInterrupt | SharedError)  # raised on every rank
            try:
                if step and (is_shared or not self.trainer.is_sharded):
                    self._save_if_missing()
                elif step and self.world.is_first:
                    self.logger.log(f"no checkpoint of step {step}: each rank has a shard, and one of them has failed")
            except OSError as disk_error:
                self.logger.log(str(disk_error))
            if is_shared:  # none may end, and have the others ended, before that
                self.world.from_first(lambda: None, "the checkpoint")
            if isinstance(error, Exception):
                raise RuntimeError(f"sampling of step {step} failed: {type(error).__name__}: {error}") from error
            raise

    # ------------------------------------------------------------------------------------------------ record

    def record(
        self,
        step: int,
        metrics: Mapping[str, float],
        times: Mapping[str, float],
        *,
        rows: Sequence[Mapping[str, object]] = (),
        example: str = "",
    ) -> None:
        """Write what the step leaves after its rollouts (`rows`): metrics and alarms, the checkpoint last. `example` is
        a completion to show.
        """
        self.world.from_first(self.writer.check, "the last checkpoint")
        if self.world.is_first:
            discard_heldout(self.run_dir)
        self.logger.write(metrics, times, example=example)
        if step + 1 == CHECKED_STEPS and self.world.is_first:
            self._log_comparison()
        self.tracking.log_step(step, metrics, rows)
        self._alarms = new_alarms(self.logger.history)
        self.logger.alarm(self._alarms)
        is_last = self.is_last(step, metrics.get("num_tokens", 0.0))
        if is_saved := is_due(step, self.cfg.run.save_interval) or is_last:
            self.save()
        self.notify("on_log", logs={**metrics, **times})
        if validation := {name: value for name, value in metrics.items() if name.startswith("validation/")}:
            self.notify("on_evaluate", metrics=validation)
        self.notify("on_step_end")
        if not is_saved and (self.callbacks.stops or self.callbacks.control.should_save):
            self.save()

    def _log_comparison(self) -> None:
        """Say whether the run is as those of its reference, if it has one."""
        try:
            if comparison := compare_run(self.run_dir, self.logger.history):
                self.logger.log(str(comparison))
        except ValueError as error:  # a file of the run's folder was damaged: no reason to end the run
            self.logger.log(f"not compared with other runs: {error}")

    @contextmanager
    def calling(self, callbacks: Callbacks) -> Iterator[None]:
        """A block that trains, with callbacks."""
        self.callbacks = callbacks
        self.notify("on_train_begin")
        yield
        self.wait_for_checkpoints()
        if self.world.is_first:
            shutil.rmtree(self.run_dir / ANSWERS, ignore_errors=True)
        self.notify("on_train_end")

    def notify(self, event: str, **values: object) -> None:
        """Call the callbacks of an event."""
        values |= {"model": self.trainer.model, "processing_class": self.tokenizer}
        self.callbacks.notify(event, self.cfg, self.step, self.logger.history, **values)

    def save(self) -> None:
        """Write a checkpoint of the trainer as it stands, while training goes on. A collective operation. A callback
        finds it written.
        """
        self.world.from_first(lambda: self.writer.begin(self.step), "the last checkpoint")
        self._submit_checkpoint()
        if self.generator.log is not None:
            self.generator.log.begin(self.step)
        self.callbacks.control.should_save = False
        if self.callbacks.is_called("on_save"):
            self.wait_for_checkpoints()
            self.notify("on_save")

    def wait_for_checkpoints(self) -> None:
        """Wait until all checkpoints are written. A collective operation."""
        self.world.from_first(self.writer.wait, "the checkpoint")

    def _save_if_missing(self) -> None:
        """Save a checkpoint of the last step, if there is none. A collective operation if the models are sharded."""
        self.writer.wait()
        is_missing = not checkpoint.folder(self.run_dir, self.step).is_dir()
        if self.trainer.is_sharded:
            is_missing = self.world.from_first(lambda: is_missing, "whether there is a checkpoint")
        if is_missing:
            self._submit_checkpoint()
            self.writer.wait()

    def _submit_checkpoint(self) -> None:
        """Begin to write a checkpoint of the trainer as it stands."""
        run = self.cfg.run
        self._submit(checkpoint.save, self.step, keep=run.keep_last, every=run.save_interval)

    def _submit(self, write: Callable[..., object], step: int, *, weights_only: bool = False, **values: object) -> None:
        """Copy the state after `step` steps, and `write` it in the thread: where the models are sharded, each rank its
        part, a collective operation; otherwise the first rank alone. It is waited for where there is no copy.
        """
        if not self.world.is_first and not self.trainer.is_sharded:
            return
        copies = is_copied(self.trainer)
        state = snapshot(self.trainer, weights_only=weights_only, copies=copies)
        place = (self.run_dir, step, self.trainer, self._tokenizer_copy, state)
        self.writer.submit(step, partial(write, *place, **values, world=self.writer.world))
        if not copies:
            self.writer.wait()

    def respond_to_alarms(self) -> None:
        """With run.on_alarm stop: RuntimeError for an alarm that the last step raised. A checkpoint is saved first, so
        the run can be resumed.
        """
        if self.cfg.run.on_alarm != "stop" or not self._alarms:
            return
        self.wait_for_checkpoints()
        self.save()
        self.wait_for_checkpoints()
        alarm = min(self._alarms, key=lambda alarm: alarm.since)
        raise RuntimeError(f"stopped by the alarm {alarm.name!r} with {self.step} steps done")

    # -------------------------------------------------------------------------------------------- validation

    @contextmanager
    def engine_may_fail(self, what: str) -> Iterator[None]:
        """A block between an update and its record: without an engine the step is recorded all the same, and the next
        one ends the run, with a checkpoint.
        """
        try:
            yield
        except EngineUnavailableError as error:
            self.logger.log(f"no {what} of step {self.step - 1}: {error}")

    def validate_before_first_step(self) -> None:
        """Validate the initial policy."""
        if self.start:
            return
        with self.shutdown.interruptible():
            self.validator.validate(0)

    def is_validation_due(self, step: int, num_tokens: float) -> bool:
        """Whether the policy is validated after the step: every validation.interval steps, and after the last one.
        `num_tokens` is the number up to and with the step.
        """
        return is_due(step, self.cfg.validation.interval) or self.is_last(step, num_tokens)

    def validate_if_due(self, step: int, num_tokens: float) -> dict[str, float]:
        """Validate the policy after the step, if that is due, and keep it if it is the best one so far."""
        if not self.is_validation_due(step, num_tokens):
            return {}
        metrics: dict[str, float] = {}
        with self.engine_may_fail("validation"):
            metrics = self.validator.validate(step + 1)
        if metrics:
            self.wait_for_checkpoints()
            score = metrics[BEST_BY]
            if self.world.from_first(lambda: score > self._best_score(), "the best score so far"):
                self._submit(checkpoint.save_best, step + 1, weights_only=True, score=score)
        return metrics

    def _best_score(self) -> float:
        """The score of the best checkpoint; if that was lost, of the best validation so far; -1 before the first."""
        score = checkpoint.best_score(self.run_dir)
        scores = [line[BEST_BY] for line in self.logger.history if BEST_BY in line]
        return max(scores, default=-1.0) if score is None else score

    def evaluate_heldout(self) -> None:
        """Evaluate the policy, and the model before training, on the held-out problems; print and write the results."""
        own = f", {self.step - self.start} of them now" if self.start else ""
        plural = "s" * (self.step != 1)
        self.logger.log(f"{self.step} step{plural} done{own}; {self.logger.minutes():.1f} minutes of training in all")
        if self.callbacks.stops:  # a step ahead of the policy, the engine may have the weights of before
            self.generator.update_weights(self.trainer.model, version=self.step)
        if self.heldout:
            with self.shutdown.interruptible():
                evaluate_heldout(self.run_dir, self.generator, self.heldout, self.base, self.cfg)
