"""A run that trains a policy: a training run with an engine that samples from it, to train on or to validate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from reasoner.models.lora import policy_weights
from reasoner.rl.batch import Batch
from reasoner.rl.token_stats import TokenStats
from reasoner.runs import rollouts as store
from reasoner.trainer import checkpoint
from reasoner.trainer.parity import parity_check
from reasoner.trainer.policy_trainer import PolicyTrainer
from reasoner.trainer.rollback import respond_to_alarms
from reasoner.trainer.rollout_generator import RolloutGenerator, StepRollouts
from reasoner.trainer.run import TrainingRun, is_due
from reasoner.trainer.step_metrics import generation_metrics, rollout_metrics, stored_advantages
from reasoner.trainer.validation import BEST_BY, Validator, evaluate_heldout
from reasoner.types import EngineUnavailableError, Prompt


@dataclass(slots=True, kw_only=True)
class PolicyRun(TrainingRun):
    """A run of reinforcement learning or supervised finetuning."""

    trainer: PolicyTrainer
    base: Path  # folder of the model before training
    generator: RolloutGenerator
    validator: Validator
    heldout: Sequence[Prompt]

    def is_last(self, step: int, rollouts: StepRollouts) -> bool:
        """Whether the run ends after the step that trains on these rollouts."""
        return self._is_over(step + 1, self.num_tokens + rollouts.num_tokens)

    def steps_to_prefetch(self, step: int, rollouts: StepRollouts) -> range:
        """The later steps whose rollouts are generated with weights from before this step's update: the next
        max_off_policy_steps. Not across a step that saves a checkpoint: a run that resumes from it must sample as one
        that was not interrupted.
        """
        if self.is_last(step, rollouts):
            return range(0)
        interval = self.cfg.run.save_interval
        next_save = step - step % interval + interval - 1
        return range(step + 1, min(step + self.cfg.max_off_policy_steps, next_save, self.cfg.steps - 1) + 1)

    def needs_engine(self, step: int, rollouts: StepRollouts) -> bool:
        """Whether the engine must have the weights of after the step before the next one begins: always where it is not
        more than one step ahead; else for a validation, and where no step is prefetched.
        """
        if self.cfg.max_off_policy_steps < 2 or self.is_last(step, rollouts):
            return True
        return is_due(step, self.cfg.run.save_interval) or is_due(step, self.cfg.validation.interval)

    def validate_before_first_step(self) -> None:
        """Validate the initial policy, and save it where a rollback may need it."""
        if self.start:
            return
        with self.shutdown.interruptible():
            self.validator.validate(0)
        if self.cfg.run.on_alarm == "rollback":
            self.save()

    def new_token_stats(self) -> TokenStats:
        """An empty collector for the statistics of a step's tokens."""
        return TokenStats(keeps_tokens=self.cfg.run.token_stats)

    def step_metrics(self, step: int, rollouts: StepRollouts, update: Mapping[str, float]) -> dict[str, float]:
        """The step's metrics, without those of a validation. Compares engine and policy where that is due."""
        num_tokens = self.num_tokens + rollouts.num_tokens
        metrics: dict[str, float] = {"step": step, "num_tokens": num_tokens, **rollout_metrics(rollouts.all), **update}
        if self.trainer.attempt:
            metrics["rollbacks"] = self.trainer.attempt
        dynamic_sampling = self.trainer.algorithm.dynamic_sampling
        metrics |= generation_metrics(step, rollouts, self.cfg, dynamic_sampling=dynamic_sampling)
        is_probed = step == 0 or is_due(step, self.cfg.run.parity_interval)
        if is_probed and self.needs_engine(step, rollouts):
            prompts = [group.prompt for group in rollouts.all]
            with self._engine_may_fail("parity check"):
                generator, policy = self.generator, self.trainer.policy
                gap = parity_check(generator.engine, policy, prompts, generator.sampling, generator.world)
                metrics["parity/logprob_diff_max"] = gap
        return metrics

    @contextmanager
    def _engine_may_fail(self, what: str) -> Iterator[None]:
        """A block between an update and its record: without an engine the step is recorded all the same, and the next
        one ends the run, with a checkpoint.
        """
        try:
            yield
        except EngineUnavailableError as error:
            self.logger.log(f"no {what} of step {self.step - 1}: {error}")

    def is_validation_due(self, step: int, num_tokens: float) -> bool:
        """Whether the policy is validated after the step: every validation.interval steps, and after the last one.
        `num_tokens` is the number up to and with the step.
        """
        return is_due(step, self.cfg.validation.interval) or self._is_over(step + 1, num_tokens)

    def validate_if_due(self, step: int, num_tokens: float) -> dict[str, float]:
        """Validate the policy after the step, if that is due, and keep it if it is the best one so far."""
        if not self.is_validation_due(step, num_tokens):
            return {}
        metrics: dict[str, float] = {}
        with self._engine_may_fail("validation"):
            metrics = self.validator.validate(step + 1)
        if metrics:
            self._save_if_best(step + 1, metrics[BEST_BY])
        return metrics

    def _save_if_best(self, steps_done: int, score: float) -> None:
        if self.world.from_first(lambda: score > self._best_score(), "the best score so far"):
            weights = policy_weights(self.trainer.policy, keeps=self.world.is_first)
            place = (self.run_dir, steps_done, self.trainer, self.tokenizer)

            def save() -> None:
                checkpoint.save_best(*place, score=score, card=self._card(steps_done), weights=weights)

            self.world.from_first(save, "the best checkpoint")

    def _best_score(self) -> float:
        """The score of the best checkpoint; if that was lost, of the best validation so far; -1 before the first."""
        score = checkpoint.best_score(self.run_dir)
        scores = [line[BEST_BY] for line in self.logger.history if BEST_BY in line]
        return max(scores, default=-1.0) if score is None else score

    def write_rollouts(
        self, step: int, rollouts: StepRollouts, batch: Batch, token_stats: TokenStats
    ) -> list[dict[str, object]]:
        """Write the step's rollouts, and return them as rows; only the first rank does."""
        if not self.world.is_first:
            return []
        advantages = stored_advantages(batch, rollouts.replaced)
        return store.write_step(self.run_dir, step, rollouts.all, advantages, token_stats.tokens)

    def respond_to_alarms(self) -> None:
        """Apply run.on_alarm to the alarms that the last step raised: warn, stop or roll back.

        RuntimeError to stop; a checkpoint is saved first, so the run can be resumed.
        """
        if not self._alarms:
            return
        how = self.cfg.run.on_alarm
        if respond_to_alarms(self._alarms, how, self.run_dir, self.trainer, self.logger, self.save):
            self.generator.attempt = self.trainer.attempt
            self.generator.update_weights(self.trainer.policy, version=self.step)

    def evaluate_heldout(self) -> None:
        """Evaluate the policy, and the model before training, on the held-out problems; print and write the results."""
        own = f", {self.step - self.start} of them now" if self.start else ""
        plural = "s" * (self.step != 1)
        self.logger.log(f"{self.step} step{plural} done{own}; {self.logger.minutes():.1f} minutes of training in all")
        if self.callbacks.stops:  # a step ahead of the policy, the engine may have the weights of before
            self.generator.update_weights(self.trainer.policy, version=self.step)
        if self.heldout:
            with self.shutdown.interruptible():
                evaluate_heldout(self.run_dir, self.generator, self.heldout, self.base, self.cfg)
