"""The metrics and times of a training step (names: docs/METRICS.md)."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from reasoner.distributed.world import ALONE, World
from reasoner.rl.batch import Batch
from reasoner.rl.token_stats import TokenStats
from reasoner.rollouts.reward_models import mean_model_reward
from reasoner.runs.repetition import repeats
from reasoner.trainer.rollout_generator import RolloutGenerator, StepRollouts
from reasoner.types import RolloutGroup
from verifiers.reflection import rates, reflect
from verifiers.score import UNJUDGED


@dataclass(frozen=True, slots=True)
class CriticUpdate:
    """What the critic's own epochs over a step's batch did."""

    explained_variance: float  # before them
    loss: float | None = None  # mean over the last epoch of those before each update; None without epochs of its own
    num_skipped: int = 0  # updates left out because their gradient was not finite


@dataclass(slots=True)
class StepUpdate:
    """What the optimiser steps of a training step do, and what is measured meanwhile."""

    token_stats: TokenStats
    lr_factor: float  # of the learning rates
    norms: list[float] = field(default_factory=list)  # of the policy's gradients; one that is not finite is left out
    critic: CriticUpdate | None = None
    further: dict[str, float] = field(default_factory=dict)  # of the KL's target, the teacher and TRPO's step

    def metrics(self, lr: float) -> dict[str, float]:
        """The metrics of the step, of which `lr` is the learning rate: means over the tokens with a gradient. Without
        any there is no entropy, KL or log-probability difference.
        """
        finite = list(filter(math.isfinite, self.norms))
        known = finite or self.norms  # where no gradient is finite, the norm is not either
        averages, losses = self.token_stats.averages(), self.token_stats.losses(len(self.norms))
        metrics = {"loss": losses.pop("loss", 0.0), **averages}
        if averages:
            metrics["sampling/logprob_diff_max"] = self.token_stats.gap_max
        metrics |= {"grad_norm": sum(known) / max(1, len(known)), "lr": lr}
        num_skipped = len(self.norms) - len(finite)
        if self.critic is not None:
            metrics["critic/explained_variance"] = self.critic.explained_variance
            num_skipped += self.critic.num_skipped
            if self.critic.loss is not None:
                losses["critic/loss"] = self.critic.loss
        return {**metrics, "skipped_updates": float(num_skipped), **losses, **self.further}


def generation_metrics(step: int, rollouts: StepRollouts, generator: RolloutGenerator) -> dict[str, float]:
    """How the step's rollouts were generated: replaced groups with dynamic sampling, the age of the policy that sampled
    them, in updates, where rollouts may be off-policy, and the reward models' share of the reward.
    """
    cfg = generator.cfg
    metrics: dict[str, float] = {}
    if generator.algorithm.dynamic_sampling:
        metrics["dynamic_sampling/replaced"] = len(rollouts.all) - cfg.data.prompts_per_step
    if cfg.max_off_policy_steps:
        metrics["rollouts/policy_age"] = step - rollouts.policy_version
    if cfg.tools.names:
        metrics |= tool_metrics(rollouts.all)
    if cfg.reward.model:
        metrics["reward/model"] = mean_model_reward(rollouts.all, cfg.reward.model)
    return metrics


def tool_metrics(groups: Sequence[RolloutGroup]) -> dict[str, float]:
    """Calls of tools per completion, and the share of the calls that failed, if there are any."""
    completions = [completion for group in groups for completion in group.completions]
    errors = [is_error for completion in completions for is_error in completion.call_errors]
    metrics = {"tools/calls": len(errors) / len(completions)}
    return metrics | {"tools/error_rate": sum(errors) / len(errors)} if errors else metrics


def rollout_metrics(groups: Sequence[RolloutGroup], world: World = ALONE) -> dict[str, float]:
    """Means and shares over the step's completions, the groups that dynamic sampling replaced included. A collective
    operation: each rank searches its share of the texts.
    """
    scores = [score for group in groups for score in group.scores]
    completions = [completion for group in groups for completion in group.completions]
    checks = world.stripe(
        [(group.prompt.prefill + c.own_text, c.token_ids) for group in groups for c in group.completions],
        lambda own: [(reflect(text), repeats(ids)) for text, ids in own],
        "the reflection of the completions",
    )
    reflection = rates([own for own, _ in checks])
    size = len(scores)
    metrics = {
        "reward/mean": sum(s.reward for s in scores) / size,
        "correct": sum(s.correct for s in scores) / size,
        "well_formed": sum(s.well_formed for s in scores) / size,
        "completions/mean_length": sum(c.num_tokens for c in completions) / size,
        "completions/clipped_ratio": sum(c.finish == "length" for c in completions) / size,
        "reflection/self_check_rate": reflection.self_check_rate,
        "frac_reward_zero_std": sum(group.has_zero_variance for group in groups) / len(groups),
        "repetition": sum(is_loop for _, is_loop in checks) / size,
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
    """Seconds of the phases of a step. `previous` is the timer of the step before, if this process ran it."""

    def __init__(self, previous: StepTimer | None = None) -> None:
        self._start = self._end = time.monotonic()
        self._record_seconds = None if previous is None else self._start - previous._end
        self._phases: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """A block whose seconds are a metric of that name."""
        start = time.monotonic()
        yield
        self._end = time.monotonic()
        self._phases[name] = self._end - start

    def times(self, num_tokens: int) -> dict[str, float]:
        """The phases, the seconds of the step up to the end of the last one, and the speed of the step's tokens."""
        seconds = self._end - self._start
        times = self._phases | {"time/step": seconds, "tokens_per_second": num_tokens / seconds}
        return times if self._record_seconds is None else times | {"time/record": self._record_seconds}
