"""The metrics and times of a training step (names: docs/METRICS.md)."""

from __future__ import annotations

import time
from collections.abc import Sequence

from reasoner.config.schema import Config
from reasoner.rl.batch import Batch
from reasoner.rollouts.reward_models import mean_model_reward
from reasoner.runs.repetition import repetition
from reasoner.trainer.rollout_generator import StepRollouts
from reasoner.types import RolloutGroup
from verifiers.reflection import rates
from verifiers.score import UNJUDGED


def generation_metrics(step: int, rollouts: StepRollouts, cfg: Config, *, dynamic_sampling: bool) -> dict[str, float]:
    """How the step's rollouts were generated: replaced groups with dynamic sampling, the age of the policy that sampled
    them, in updates, where rollouts may be off-policy, and the reward models' share of the reward.
    """
    metrics: dict[str, float] = {}
    if dynamic_sampling:
        metrics["dynamic_sampling/replaced"] = len(rollouts.all) - cfg.data.prompts_per_step
    if cfg.max_off_policy_steps:
        metrics["rollouts/policy_age"] = step - rollouts.policy_version
    if cfg.reward.model:
        metrics["reward/model"] = mean_model_reward(rollouts.all, cfg.reward.model)
    return metrics


def rollout_metrics(groups: Sequence[RolloutGroup]) -> dict[str, float]:
    """Means and shares over the step's completions, the groups that dynamic sampling replaced included."""
    scores = [score for group in groups for score in group.scores]
    completions = [completion for group in groups for completion in group.completions]
    reflection = rates(group.prompt.prefill + c.text for group in groups for c in group.completions)
    size = len(scores)
    metrics = {
        "reward/mean": sum(s.reward for s in scores) / size,
        "correct": sum(s.correct for s in scores) / size,
        "well_formed": sum(s.well_formed for s in scores) / size,
        "completions/mean_length": sum(len(c.token_ids) for c in completions) / size,
        "completions/clipped_ratio": sum(c.finish == "length" for c in completions) / size,
        "reflection/self_check_rate": reflection.self_check_rate,
        "frac_reward_zero_std": sum(group.has_zero_variance for group in groups) / len(groups),
        "repetition": repetition([completion.token_ids for completion in completions]),
        "grading/failed": sum(s.verdict in UNJUDGED for s in scores) / size,
    }
    if reflection.errors_caught_share is None:
        return metrics
    return metrics | {"reflection/errors_caught": reflection.errors_caught_share}


def stored_advantages(batch: Batch, replaced: Sequence[RolloutGroup]) -> list[float]:
    """The advantage of each completion's first token, which is that of the whole; 0 in groups that were replaced."""
    return [*batch.advantages[:, 0].tolist(), *(0.0 for group in replaced for _ in group.completions)]


def grading_times(groups: Sequence[RolloutGroup]) -> dict[str, float]:
    """The longest time that a completion of the step was graded for."""
    return {"time/grade_max": max(score.seconds for group in groups for score in group.scores)}


class StepTimer:
    """Seconds of the parts of a step. `previous` is the timer of the step before, if this process ran it."""

    def __init__(self, previous: StepTimer | None = None) -> None:
        self._start = self._last = time.monotonic()
        self._record_seconds = None if previous is None else self._start - previous._last
        self._laps: dict[str, float] = {}

    def lap(self, name: str) -> None:
        """Record the time since the last lap under the name of a metric."""
        now = time.monotonic()
        self._laps[name], self._last = now - self._last, now

    def times(self, num_tokens: int) -> dict[str, float]:
        """The laps, the seconds of the whole step up to the last lap, and the speed of the step's tokens."""
        seconds = self._last - self._start
        times = self._laps | {"time/step": seconds, "tokens_per_second": num_tokens / seconds}
        return times if self._record_seconds is None else times | {"time/record": self._record_seconds}
