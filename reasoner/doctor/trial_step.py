"""Run one training step and discard it, to see the model's responses and the time of a step.

The step is the run's own, with its problems and seeds, or a part of it. More samples of the run's next problems follow.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from data import problem_order
from reasoner.config.schema import Config
from reasoner.console import log
from reasoner.rl.token_stats import TokenStats
from reasoner.runs import rollouts as store
from reasoner.trainer.parity import NUM_PROMPTS, NUM_SAMPLES, NUM_TOKENS, max_logprob_diff
from reasoner.trainer.rollout_generator import RolloutGenerator
from reasoner.trainer.step_metrics import rollout_metrics, stored_advantages
from reasoner.trainer.train import train_step
from reasoner.trainer.trainer import Trainer
from reasoner.types import Prompt, RolloutGroup

_MAX_COMPLETIONS = 512  # of a step: of a larger step only a part is run, and its seconds are scaled
_FIRST_STEP_SECONDS = 300  # limit for sampling the first step, as predicted from the parity probe
_MORE_SECONDS = 45  # limit for samples beyond the first step
_MORE_STEP = -1  # step number for the seeds of those samples; no step of the run has it


Part = tuple[Sequence[Prompt], int]  # prompts, and the completions of each


def _num_completions(parts: Sequence[Part]) -> int:
    return sum(len(prompts) * num for prompts, num in parts)


@dataclass(frozen=True, slots=True)
class StepTiming:
    """Completions and seconds of the trial step, which may be a part of a step of the run."""

    completions: int
    tokens: int  # generated
    generate_seconds: float  # grading included
    train_seconds: float = 0.0
    record_seconds: float = 0.0  # metrics and rollouts

    @property
    def mean_length(self) -> float:
        """Mean tokens of a completion."""
        return self.tokens / self.completions


@dataclass(frozen=True, slots=True)
class TrialStep:
    """The results of the trial step: all sampled groups and the measurements."""

    groups: list[RolloutGroup]  # of one problem each; the first step's come first
    now: StepTiming
    bulk: StepTiming  # the samples beyond the first step, which are sampled as in an evaluation
    sync_seconds: float
    probe_seconds: float
    logprob_diff: float  # largest log-probability difference after the first weight sync, in nats
    update_metrics: dict[str, float]  # of the first update
    rollout_bytes: int  # on disk, of the first step's completions


@dataclass(frozen=True, slots=True)
class StepRunner:
    """The generator and the trainer of a run, whose groups are no larger than the doctor may sample of a problem."""

    generator: RolloutGenerator
    trainer: Trainer
    cfg: Config

    def rollout(self, parts: Sequence[Part], step: int, title: str) -> tuple[list[RolloutGroup], StepTiming]:
        """(a group for each prompt of the parts, graded and rewarded as in the run, the timing)."""
        start, groups = time.monotonic(), []
        for prompts, num in parts:
            self.generator.progress.begin(title)
            groups += self.generator.sample(prompts, step, num_samples=num)
        num_tokens = sum(group.num_tokens for group in groups)
        return groups, StepTiming(_num_completions(parts), num_tokens, time.monotonic() - start)

    def parity_probe(self, prompts: Sequence[Prompt], num: int, max_tokens: int) -> tuple[float, float]:
        """(seconds, largest log-probability difference of engine and trainer, in nats) of a parity probe."""
        start, generator = time.monotonic(), self.generator
        sampling = replace(generator.sampling, num_samples=num, max_tokens=max_tokens)
        sides, dtype = (generator.engine, self.trainer.model), self.cfg.engine.dtype
        logprob_diff = max_logprob_diff(*sides, prompts, sampling, dtype, generator.progress)
        return time.monotonic() - start, logprob_diff

    def train_step(
        self, groups: Sequence[RolloutGroup], timing: StepTiming, folder: Path
    ) -> tuple[StepTiming, dict[str, float], int]:
        """Update the policy: (the timing with the update's seconds, its metrics, bytes of the rollouts on disk)."""
        start = time.monotonic()
        token_stats = TokenStats(keeps_tokens=self.cfg.run.token_stats)
        with self.generator.asleep():
            batch = self.trainer.compute_advantages(self.trainer.prepare_batch(groups))
            metrics = train_step(self.trainer, batch, token_stats)
            self.trainer.free_gradients()
        update_end = time.monotonic()
        (folder / "rollouts").mkdir(exist_ok=True)
        rollout_metrics(groups)
        store.write_step(folder, 0, groups, stored_advantages(batch, []), token_stats.tokens)
        timing = replace(timing, train_seconds=update_end - start, record_seconds=time.monotonic() - update_end)
        return timing, metrics, store.shard_path(folder, 0).stat().st_size


def next_prompts(prompts: Sequence[Prompt], cfg: Config, count: int) -> list[Prompt]:
    """Prompts of the first `count` different problems that the run will sample, in order."""
    indices: dict[int, None] = {}
    step, size = 0, cfg.data.prompts_per_step
    order = problem_order(cfg.data.train, [prompt.problem.source for prompt in prompts])
    while len(indices) < min(count, len(prompts)):
        indices |= dict.fromkeys(order(step, size, cfg.seed))
        step += 1
    return [prompts[i] for i in islice(indices, count)]


def run_trial_step(runner: StepRunner, coming: Sequence[Prompt], samples: int, seconds_each: float) -> TrialStep:
    """Run the step and measure it.

    `coming`: all prompts to sample, those of the first step first. `samples`: most completions of each. `seconds_each`:
    seconds of a completion when few are sampled at once.
    """
    cfg, group, progress = runner.cfg, runner.cfg.algo.group_size, runner.generator.progress
    rows = max(2 * group, min(_MAX_COMPLETIONS, int(_FIRST_STEP_SECONDS / max(seconds_each, 1e-6))))
    prompts = coming[: min(cfg.data.prompts_per_step, max(1, rows // group))]
    log(f"sampling {len(prompts) * group} completions of the first step")
    first, now = runner.rollout([(prompts, group)], 0, "first step")
    if parts := _more_samples(coming, len(prompts), group, samples, now):
        log(f"sampling {_num_completions(parts)} more")
    others, bulk = runner.rollout(parts, _MORE_STEP, "more samples") if parts else ([], now)
    with tempfile.TemporaryDirectory() as folder:
        progress.begin("warm-up update")
        runner.train_step(first[:2], now, Path(folder))  # slower: memory is allocated, threads start
        log(f"training on {now.completions} completions of {now.mean_length:.0f} tokens")
        progress.begin("first update")
        now, metrics, size = runner.train_step(first, now, Path(folder))
    start = time.monotonic()
    runner.generator.update_weights(runner.trainer.model, version=1)
    sync = time.monotonic() - start
    merged = _merge_by_problem([*first, *others])
    probe_seconds, logprob_diff = runner.parity_probe(prompts[:NUM_PROMPTS], NUM_SAMPLES, NUM_TOKENS)
    return TrialStep(merged, now, bulk, sync, probe_seconds, logprob_diff, metrics, size)


def _more_samples(
    coming: Sequence[Prompt], num_sampled: int, group_size: int, samples: int, now: StepTiming
) -> list[Part]:
    """What to sample for up to `samples` completions of each prompt, as far as there is time. The first `num_sampled`
    prompts have a group from the first step already.
    """
    affordable = int(_MORE_SECONDS * now.completions / now.generate_seconds)
    num = min(samples, affordable // len(coming))
    plan = [(coming[:num_sampled], num - group_size), (coming[num_sampled:], num)]
    return [
        (prompts[start : start + most], size)
        for prompts, size in plan
        if size > 0
        for most in [max(1, _MAX_COMPLETIONS // size)]
        for start in range(0, len(prompts), most)
    ]


def _merge_by_problem(groups: Sequence[RolloutGroup]) -> list[RolloutGroup]:
    """Merge groups so that all completions of a problem are in one."""
    merged: dict[str, RolloutGroup] = {}
    for one in groups:
        group = merged.get(one.prompt.problem.id)
        if group is not None:
            one = replace(group, completions=group.completions + one.completions, scores=group.scores + one.scores)
        merged[one.prompt.problem.id] = one
    return list(merged.values())
