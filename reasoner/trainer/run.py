"""A training run of any stage: its components, its position, its record and its checkpoints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from transformers import PreTrainedTokenizerBase

from reasoner.analysis.model_card import CardFacts, model_card
from reasoner.config.schema import Config
from reasoner.distributed.world import RunInterrupt, SharedError, World
from reasoner.rl.batch import Batch
from reasoner.rollouts.prompts import Template
from reasoner.runs.health import new_alarms
from reasoner.runs.health_checks import Alarm
from reasoner.trainer import checkpoint
from reasoner.trainer.callbacks import Callbacks
from reasoner.trainer.metrics_logger import MetricsLogger
from reasoner.trainer.model_trainer import ModelTrainer
from reasoner.trainer.shutdown import GracefulShutdown
from reasoner.trainer.snapshot import Snapshot, snapshot
from reasoner.trainer.trackers import Tracking


@dataclass(slots=True, kw_only=True)
class TrainingRun:
    """The components of a run, which reasoner.trainer.setup builds and closes, and what is done with them.

    Positions have one owner each: the number of steps done is the trainer's, because a checkpoint stores it; the
    number of tokens, sampled or in supervised finetuning learnt, is that of the metrics. Every rank of `world` has the
    same values; the first one writes.
    """

    cfg: Config
    run_dir: Path
    tokenizer: PreTrainedTokenizerBase
    trainer: ModelTrainer
    logger: MetricsLogger
    tracking: Tracking
    shutdown: GracefulShutdown
    start: int  # steps done when this process began
    template: Template | None = None  # of the policy's prompts, for its model card; a reward model has none
    callbacks: Callbacks = field(default_factory=Callbacks)
    _alarms: list[Alarm] = field(default_factory=list)  # raised by the last step

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
        return self.callbacks.stops or self._is_over(self.step, self.num_tokens)

    def _is_over(self, steps_done: int, num_tokens: float) -> bool:
        """Whether the run ends after so many steps, with so many tokens in all of them."""
        budget = self.cfg.max_train_tokens
        return steps_done >= self.cfg.steps or 0 < budget <= num_tokens

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

    def record(
        self,
        step: int,
        batch: Batch,
        metrics: Mapping[str, float],
        times: Mapping[str, float],
        *,
        rows: Sequence[Mapping[str, object]] = (),
        example: str = "",
    ) -> None:
        """Write what the step leaves after its rollouts (`rows`): metrics and alarms, the checkpoint last. `example` is
        a completion to show.
        """
        if metrics["skipped_updates"] and self.world.is_first:
            self.logger.log(f"a gradient was not finite: see {checkpoint.dump(self.run_dir, step, batch)}")
        is_last = self._is_over(step + 1, metrics.get("num_tokens", 0.0))
        self.logger.write(metrics, times, example=example)
        self.tracking.log_step(step, metrics, rows)
        self._alarms = new_alarms(self.logger.history)
        self.logger.alarm(self._alarms)
        if is_saved := is_due(step, self.cfg.run.save_interval) or is_last:
            self.save()
        self.notify("on_log", logs={**metrics, **times})
        if validation := {name: value for name, value in metrics.items() if name.startswith("validation/")}:
            self.notify("on_evaluate", metrics=validation)
        self.notify("on_step_end")
        if not is_saved and (self.callbacks.stops or self.callbacks.control.should_save):
            self.save()

    @contextmanager
    def calling(self, callbacks: Callbacks) -> Iterator[None]:
        """A block that trains, with callbacks."""
        self.callbacks = callbacks
        self.notify("on_train_begin")
        yield
        self.notify("on_train_end")

    def notify(self, event: str, **values: object) -> None:
        """Call the callbacks of an event."""
        values |= {"model": self.trainer.model, "processing_class": self.tokenizer}
        self.callbacks.notify(event, self.cfg, self.step, self.logger.history, **values)

    def save(self) -> Path:
        """Save a checkpoint of the trainer as it stands. A collective operation."""
        tensors = snapshot(self.trainer)
        path = self.world.from_first(lambda: self._save(tensors), "the checkpoint")
        self.callbacks.control.should_save = False
        self.notify("on_save")
        return path

    def _save(self, tensors: Snapshot) -> Path:
        run, place = self.cfg.run, (self.run_dir, self.step, self.trainer, self.tokenizer)
        card = self._card(self.step)
        return checkpoint.save(*place, keep=run.keep_last, every=run.save_interval, card=card, tensors=tensors)

    def _save_if_missing(self) -> None:
        """Let the first rank save a checkpoint of the last step, if there is none. A collective operation if the models
        are sharded.
        """
        tensors = snapshot(self.trainer)
        if self.world.is_first and not checkpoint.folder(self.run_dir, self.step).is_dir():
            self._save(tensors)

    def _card(self, steps_done: int) -> str:
        """The model card of the policy; empty for a reward model, and, with a message, where a file of the run's folder
        is damaged.
        """
        if self.template is None:
            return ""
        try:
            facts = CardFacts(steps_done, self.template, is_checkpoint=True, has_chat_template=False)
            return model_card(self.run_dir, facts)
        except ValueError as error:
            self.logger.log(f"no model card is written: {error}")
            return ""


def is_due(step: int, interval: int) -> bool:
    """Whether something that happens every `interval` steps happens after this step; never for the interval 0."""
    return interval > 0 and (step + 1) % interval == 0
