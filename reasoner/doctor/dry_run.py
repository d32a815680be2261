"""One or two trial steps, made as training makes them and discarded: the model's responses, and the time of a step.

The first step is the run's own, with its problems and seeds, or a part of it. More samples of the run's next problems
follow. The second step samples again, from the same seeds, those of all these responses that are correct: it shows
what steps take once the model has learnt to write such responses.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice
from pathlib import Path

from transformers import PreTrainedTokenizerBase

from data import Problem, sample_indices
from reasoner.config.schema import Config
from reasoner.progress import Progress, SampleCount
from reasoner.rl.token_stats import TokenStats
from reasoner.rollouts.control_rewards import ControlContext, apply_control
from reasoner.rollouts.generate import generate_groups, penalise_truncated
from reasoner.rollouts.seeds import sample_seed
from reasoner.runs import rollouts as store
from reasoner.trainer.parity import NUM_PROMPTS, NUM_TOKENS, max_logprob_diff
from reasoner.trainer.policy_trainer import PolicyTrainer
from reasoner.trainer.step_metrics import rollout_metrics, stored_advantages
from reasoner.types import Engine, Prompt, RolloutGroup, SamplingParams
from verifiers import VerifierPool

_MAX_COMPLETIONS = 512  # of a trial step: of a larger step a part is made, and its seconds are scaled
_FIRST_STEP_SECONDS = 300  # limit for sampling the first step, as predicted from the parity probe
_MORE_SECONDS = 45  # limit for samples beyond the first step
_MORE_STEP = -1  # step number that the seeds of those samples are made of; no step of the run has it
_LONGER = 1.1  # correct responses must be this many times as long as the average for a second trial step

Log = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class StepTiming:
    """Completions and seconds of a trial step, which may be a part of a step of the run."""

    completions: int
    tokens: int  # sampled
    sample_seconds: float  # grading included
    learn_seconds: float = 0.0
    record_seconds: float = 0.0  # metrics and rollouts

    @property
    def length(self) -> float:
        """Mean tokens of a completion."""
        return self.tokens / self.completions


@dataclass(frozen=True, slots=True)
class DryRun:
    """All sampled groups, and what was measured."""

    groups: list[RolloutGroup]  # of one problem each; the first step's come first
    now: StepTiming
    later: StepTiming | None  # with responses like those that are correct now; None where these are not longer
    bulk: StepTiming  # the samples beyond the first step, which are sampled as in an evaluation
    sync_seconds: float
    probe_seconds: float
    gap: float  # largest log-probability difference after the first weight sync, in nats
    learned: dict[str, float]  # metrics of the first update
    rollout_bytes: int  # on disk, of the first step's completions


@dataclass(frozen=True, slots=True)
class StepRunner:
    """The components of a training step."""

    engine: Engine
    pool: VerifierPool
    learner: PolicyTrainer
    tokenizer: PreTrainedTokenizerBase
    sampling: SamplingParams
    shuffled_answers: Mapping[str, Problem]  # problems with other gold answers, for the control wrong-gold
    cfg: Config  # the run's, with groups no larger than the doctor may sample of a problem
    progress: Progress

    def rollout(self, prompts: Sequence[Prompt], num: int, step: int) -> tuple[list[RolloutGroup], StepTiming]:
        """(a group of `num` completions for each prompt, graded and rewarded as in the run, the pace)."""
        start, seed, sampling = time.monotonic(), self.cfg.seed, replace(self.sampling, num_samples=num)
        parts = (self.engine, self.pool, prompts, sampling, self.cfg.reward)
        sampled = generate_groups(*parts, run_seed=seed, step=step, progress=self.progress)
        sampled = penalise_truncated(sampled, self.cfg.algo.missing_eos_penalty)
        groups = apply_control(sampled, self.cfg.control, ControlContext(self.pool, self.shuffled_answers, seed, step))
        return groups, StepTiming(
            len(prompts) * num, sum(group.num_tokens for group in groups), time.monotonic() - start
        )

    def probe(self, prompts: Sequence[Prompt], num: int, max_tokens: int) -> tuple[float, float]:
        """(seconds, largest log-probability difference of engine and learner, in nats) of a parity probe."""
        start = time.monotonic()
        sampling = replace(self.sampling, num_samples=num, max_tokens=max_tokens)
        gap = max_logprob_diff(self.engine, self.learner.policy, prompts, sampling, self.progress)
        return time.monotonic() - start, gap

    def learn(
        self, groups: Sequence[RolloutGroup], pace: StepTiming, folder: Path
    ) -> tuple[StepTiming, dict[str, float], int]:
        """Update the learner: (the pace with the seconds of the update, its metrics, bytes of the rollouts written)."""
        start = time.monotonic()
        self.engine.sleep()
        token_stats = TokenStats(keeps_tokens=self.cfg.run.token_stats)
        batch = self.learner.prepare_batch(groups)
        metrics = self.learner.train_step(batch, token_stats)
        self.engine.wake_up()
        updated = time.monotonic()
        (folder / "rollouts").mkdir(exist_ok=True)
        rollout_metrics(groups)
        store.write_step(folder, 0, groups, stored_advantages(batch, []), token_stats.tokens)
        pace = replace(pace, learn_seconds=updated - start, record_seconds=time.monotonic() - updated)
        return pace, metrics, store.shard_path(folder, 0).stat().st_size


def next_prompts(prompts: Sequence[Prompt], cfg: Config, count: int) -> list[Prompt]:
    """Prompts of the first `count` different problems that the run will sample, in order."""
    indices: dict[int, None] = {}
    step, size = 0, cfg.data.prompts_per_step
    while len(indices) < min(count, len(prompts)):
        indices |= dict.fromkeys(sample_indices(len(prompts), step, size, cfg.seed))
        step += 1
    return [prompts[i] for i in islice(indices, count)]


def dry_run(
    bench: StepRunner, coming: Sequence[Prompt], samples: int, row_seconds: float, log: Log, *, per_step: int
) -> DryRun:
    """Make the trial steps. `coming`: all prompts to sample, the first step's first; `samples`: most completions of
    each; `row_seconds`: seconds of a completion when few are sampled at once; `per_step`: completions of a run's step.
    """
    cfg, group, progress = bench.cfg, bench.cfg.algo.group_size, bench.progress
    rows = max(2 * group, min(_MAX_COMPLETIONS, int(_FIRST_STEP_SECONDS / max(row_seconds, 1e-6))))
    prompts = coming[: min(cfg.data.prompts_per_step, max(1, rows // group))]
    log(f"sampling {len(prompts) * group} of the {per_step} completions of the first step")
    progress.begin("the first step")
    first, now = bench.rollout(prompts, group, 0)
    others, bulk = _more(bench, coming, len(prompts), samples, now, log)
    groups = [*((0, one) for one in first), *((_MORE_STEP, one) for one in others)]
    again = _again(bench, groups, first, now, log)
    with tempfile.TemporaryDirectory() as folder:
        progress.begin("an update to warm up")
        bench.learn(first[:2], now, Path(folder))  # the first update is slower: memory is allocated, threads start
        log(f"learning from {now.completions} completions of {now.length:.0f} tokens")
        progress.begin("the first update")
        now, metrics, size = bench.learn(first, now, Path(folder))
        later = again and again[1]
        if again is not None:
            log(f"learning from {now.completions} completions of {again[1].length:.0f} tokens")
            progress.begin("the second update")
            later = bench.learn(*again, Path(folder))[0]
    start = time.monotonic()
    bench.engine.update_weights(bench.learner.policy_state(), version=1)
    sync = time.monotonic() - start
    merged = _by_question([*first, *others])
    return DryRun(merged, now, later, bulk, sync, *bench.probe(prompts[:NUM_PROMPTS], 2, NUM_TOKENS), metrics, size)


def _more(
    bench: StepRunner, coming: Sequence[Prompt], num_sampled: int, samples: int, now: StepTiming, log: Log
) -> tuple[list[RolloutGroup], StepTiming]:
    """Sample up to `samples` completions of each prompt, as far as there is time: (groups, pace). The first
    `num_sampled` prompts have a group from the first step already.
    """
    affordable = int(_MORE_SECONDS * now.completions / now.sample_seconds)
    num = min(samples, affordable // len(coming))
    plan = [(coming[:num_sampled], num - bench.cfg.algo.group_size), (coming[num_sampled:], num)]
    parts = [(part, size) for prompts, size in plan if size > 0 for part in _parts(prompts, size)]
    sampled: list[RolloutGroup] = []
    paces = []
    for part, size in parts:
        log(f"sampling {len(part) * size} more of {sum(len(p) * s for p, s in parts)}")
        bench.progress.begin("more samples")
        groups, pace = bench.rollout(part, size, _MORE_STEP)
        sampled += groups
        paces.append(pace)
    if not paces:
        return [], now
    return sampled, StepTiming(
        sum(pace.completions for pace in paces),
        sum(pace.tokens for pace in paces),
        sum(pace.sample_seconds for pace in paces),
    )


def _parts(prompts: Sequence[Prompt], num: int) -> Iterator[Sequence[Prompt]]:
    """Split the prompts so that each part has at most _MAX_COMPLETIONS completions."""
    size = max(1, _MAX_COMPLETIONS // num)
    return (prompts[start : start + size] for start in range(0, len(prompts), size))


def _again(
    bench: StepRunner,
    sampled: Sequence[tuple[int, RolloutGroup]],
    first: Sequence[RolloutGroup],
    now: StepTiming,
    log: Log,
) -> tuple[list[RolloutGroup], StepTiming] | None:
    """Sample a step of correct responses once more, by their seeds: as many groups as the first step has, with that
    step's scores, so that as many rows have an advantage. `sampled`: (step of the seeds, group). None where no response
    is correct, or the correct ones are hardly longer than the average.
    """
    group = bench.cfg.algo.group_size
    right: dict[str, list[int]] = {}
    prompt_of = {one.prompt.problem.id: one.prompt for _, one in sampled}
    lengths = []
    for step, one in sampled:
        for j, (completion, score) in enumerate(zip(one.completions, one.scores, strict=True)):
            if score.correct:
                name = one.prompt.problem.id
                right.setdefault(name, []).append(sample_seed(bench.cfg.seed, step, name, j))
                lengths.append(len(completion.token_ids))
    if not lengths or sum(lengths) / len(lengths) < _LONGER * now.length:
        return None
    log(f"sampling {now.completions} completions like the {len(lengths)} correct ones")
    chosen = list(islice(cycle(right), len(first)))
    seeds = [list(islice(cycle(right[name]), group)) for name in chosen]
    prompts = [prompt_of[name] for name in chosen]
    start = time.monotonic()
    bench.progress.begin("the second step")
    count = SampleCount(bench.progress, len(prompts) * group)
    completions = bench.engine.generate(
        prompts, replace(bench.sampling, num_samples=group), seeds, on_decode_step=count.on_decode_step
    )
    texts = [(p.prefill + c.text, p.problem) for p, own in zip(prompts, completions, strict=True) for c in own]
    bench.pool.score(texts, policy=prompts[0].extract)
    seconds = time.monotonic() - start
    groups = [RolloutGroup(p, own, one.scores) for p, own, one in zip(prompts, completions, first, strict=True)]
    return groups, StepTiming(now.completions, sum(group.num_tokens for group in groups), seconds)


def _by_question(groups: Sequence[RolloutGroup]) -> list[RolloutGroup]:
    """Merge groups so that all completions of a problem are in one."""
    merged: dict[str, RolloutGroup] = {}
    for one in groups:
        known = merged.get(one.prompt.problem.id)
        if known is not None:
            one = replace(known, completions=known.completions + one.completions, scores=known.scores + one.scores)
        merged[one.prompt.problem.id] = one
    return list(merged.values())
