"""A step or two of the run, made as training makes them and thrown away: what the model writes, and what a step takes.

The first step is the run's own: its questions, its seeds, as many of them as may be sampled. More samples of more of
the run's next questions follow. The second step writes again, from the same seeds, those of all these responses that
are right: what steps will be like once the model has learnt to write such ones.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice
from pathlib import Path

from transformers import PreTrainedTokenizerBase

from data import Problem, pick
from reasoner.config.schema import Config
from reasoner.progress import Progress, SampleCount
from reasoner.rollouts.control_rewards import Arm, controlled
from reasoner.rollouts.generate import penalise_truncated, rollout
from reasoner.rollouts.seeds import sample_seed
from reasoner.runs import rollouts as store
from reasoner.trainer.parity import probe
from reasoner.trainer.policy_trainer import Learner
from reasoner.trainer.train import PROBED, PROBED_TOKENS, credited, learn, num_tokens, summarise
from reasoner.types import Engine, Group, Prompt, Sampling
from verifiers import VerifierPool

_MOST = 512  # completions of a step on trial: of a larger one a part is made, and its seconds are scaled
_PATIENCE = 300  # seconds that sampling the first step may take, as the parity probe lets one expect
_MORE = 45  # seconds for samples beyond the first step
_BEYOND = -1  # the step of those samples, for their seeds: none of the run's own
_LONGER = 1.1  # times as long as now: from there on a second step tells something new

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Pace:
    """What a step took. Its completions may be a part of a step's."""

    completions: int
    tokens: int  # sampled
    sample_seconds: float  # grading included
    learn_seconds: float = 0.0
    record_seconds: float = 0.0  # figures and rollouts

    @property
    def length(self) -> float:
        return self.tokens / self.completions


@dataclass(frozen=True, slots=True)
class Trial:
    """Everything that was sampled, and what was seen on the way."""

    groups: list[Group]  # of one question each; the first step's come first
    now: Pace
    later: Pace | None  # with responses like those that are right now; None where they are not longer
    bulk: Pace  # the samples beyond the first step: like those of an evaluation
    sync_seconds: float
    probe_seconds: float
    gap: float  # what the probe after the first weight sync found, in nats
    learned: dict[str, float]  # what the first update says of itself
    rollout_bytes: int  # on disk, of the first step's completions


@dataclass(frozen=True, slots=True)
class Bench:
    """What a step is made with."""

    engine: Engine
    pool: VerifierPool
    learner: Learner
    tokenizer: PreTrainedTokenizerBase
    sampling: Sampling
    exchanged: Mapping[str, Problem]  # of the control arm of that name
    cfg: Config  # the run's; its groups are no larger than the doctor may sample of a question
    progress: Progress

    def rollout(self, prompts: Sequence[Prompt], num: int, step: int) -> tuple[list[Group], Pace]:
        """Groups of `num`, with the rewards of the run's arm."""
        began, seed, sampling = time.monotonic(), self.cfg.seed, replace(self.sampling, num=num)
        parts = (self.engine, self.pool, prompts, sampling, self.cfg.reward)
        drawn = rollout(*parts, run_seed=seed, step=step, progress=self.progress)
        drawn = penalise_truncated(drawn, self.cfg.algo.missing_end)
        groups = controlled(drawn, self.cfg.control, Arm(self.pool, self.exchanged, seed, step))
        return groups, Pace(len(prompts) * num, num_tokens(groups), time.monotonic() - began)

    def probe(self, prompts: Sequence[Prompt], num: int, max_tokens: int) -> tuple[float, float]:
        """(seconds, largest difference of the log-probabilities of engine and learner, in nats)."""
        began = time.monotonic()
        sampling = replace(self.sampling, num=num, max_tokens=max_tokens)
        gap = probe(self.engine, self.learner.policy, prompts, sampling, self.progress)
        return time.monotonic() - began, gap

    def learn(self, groups: Sequence[Group], pace: Pace, folder: Path) -> tuple[Pace, dict[str, float], int]:
        """(the pace with the seconds of learning, what the update says, bytes of the rollouts in the folder)."""
        began = time.monotonic()
        self.engine.pause()
        batch, tally, learned = learn(self.learner, groups, self.tokenizer)
        self.engine.resume()
        learnt = time.monotonic()
        (folder / "rollouts").mkdir(exist_ok=True)
        summarise(groups)
        store.append(folder, 0, groups, credited(batch, []), tally.tokens)
        pace = replace(pace, learn_seconds=learnt - began, record_seconds=time.monotonic() - learnt)
        return pace, learned, store.shard(folder, 0).stat().st_size


def upcoming(prompts: Sequence[Prompt], cfg: Config, count: int) -> list[Prompt]:
    """The first so many questions that the run will ask, each once."""
    found: dict[int, None] = {}
    step, size = 0, cfg.data.prompts_per_step
    while len(found) < min(count, len(prompts)):
        found |= dict.fromkeys(pick(len(prompts), step, size, cfg.seed))
        step += 1
    return [prompts[i] for i in islice(found, count)]


def attempt(
    bench: Bench, coming: Sequence[Prompt], samples: int, row_seconds: float, say: Say, *, per_step: int
) -> Trial:
    """`coming`: the questions, the first step's first, and no others; `samples`: of each, at most; `row_seconds`: of a
    completion, when few are made at once; `per_step`: completions of a step of the run.
    """
    cfg, group, progress = bench.cfg, bench.cfg.algo.group, bench.progress
    rows = max(2 * group, min(_MOST, int(_PATIENCE / max(row_seconds, 1e-6))))
    asked = coming[: min(cfg.data.prompts_per_step, max(1, rows // group))]
    say(f"sampling {len(asked) * group} completions of {per_step} of the first step")
    progress.begin("the first step")
    first, now = bench.rollout(asked, group, 0)
    others, bulk = _more(bench, coming, len(asked), samples, now, say)
    drawn = [*((0, group) for group in first), *((_BEYOND, group) for group in others)]
    again = _again(bench, drawn, first, now, say)
    with tempfile.TemporaryDirectory() as folder:
        progress.begin("an update to warm up")
        bench.learn(first[:2], now, Path(folder))  # memory is taken, threads start: the first time is not as the others
        say(f"learning from {now.completions} completions of {now.length:.0f} tokens")
        progress.begin("the first update")
        now, learned, size = bench.learn(first, now, Path(folder))
        later = again and again[1]
        if again is not None:
            say(f"learning from {now.completions} completions of {again[1].length:.0f} tokens")
            progress.begin("the second update")
            later = bench.learn(*again, Path(folder))[0]
    began = time.monotonic()
    bench.engine.load_weights(bench.learner.weights(), version=1)
    sync = time.monotonic() - began
    merged = _by_question([*first, *others])
    return Trial(merged, now, later, bulk, sync, *bench.probe(asked[:PROBED], 2, PROBED_TOKENS), learned, size)


def _more(
    bench: Bench, coming: Sequence[Prompt], num_asked: int, samples: int, now: Pace, say: Say
) -> tuple[list[Group], Pace]:
    """As many more samples as make `samples` of each question, or as there is time for."""
    affordable = int(_MORE * now.completions / now.sample_seconds)
    num = min(samples, affordable // len(coming))
    plan = [(coming[:num_asked], num - bench.cfg.algo.group), (coming[num_asked:], num)]
    parts = [(part, size) for prompts, size in plan if size > 0 for part in _parts(prompts, size)]
    found: list[Group] = []
    paces = []
    for part, size in parts:
        say(f"sampling {len(part) * size} more of {sum(len(p) * s for p, s in parts)}")
        bench.progress.begin("more samples")
        groups, pace = bench.rollout(part, size, _BEYOND)
        found += groups
        paces.append(pace)
    if not paces:
        return [], now
    return found, Pace(
        sum(pace.completions for pace in paces),
        sum(pace.tokens for pace in paces),
        sum(pace.sample_seconds for pace in paces),
    )


def _parts(prompts: Sequence[Prompt], num: int) -> Iterator[Sequence[Prompt]]:
    size = max(1, _MOST // num)
    return (prompts[start : start + size] for start in range(0, len(prompts), size))


def _again(
    bench: Bench, drawn: Sequence[tuple[int, Group]], first: Sequence[Group], now: Pace, say: Say
) -> tuple[list[Group], Pace] | None:
    """A step of right responses, drawn once more: as many groups as the first step has, with that step's scores, so
    that as many rows move the policy. None where right ones are hardly longer, or there are none.
    """
    group = bench.cfg.algo.group
    right: dict[str, list[int]] = {}
    asked = {one.prompt.problem.id: one.prompt for _, one in drawn}
    lengths = []
    for step, one in drawn:
        for j, (completion, score) in enumerate(zip(one.completions, one.scores, strict=True)):
            if score.correct:
                name = one.prompt.problem.id
                right.setdefault(name, []).append(sample_seed(bench.cfg.seed, step, name, j))
                lengths.append(len(completion.token_ids))
    if not lengths or sum(lengths) / len(lengths) < _LONGER * now.length:
        return None
    say(f"sampling {now.completions} completions like those {len(lengths)} that are right")
    chosen = list(islice(cycle(right), len(first)))
    seeds = [list(islice(cycle(right[name]), group)) for name in chosen]
    prompts = [asked[name] for name in chosen]
    began = time.monotonic()
    bench.progress.begin("the second step")
    count = SampleCount(bench.progress, len(prompts) * group)
    completions = bench.engine.sample(prompts, replace(bench.sampling, num=group), seeds, tick=count.tick)
    texts = [(p.prefill + c.text, p.problem) for p, own in zip(prompts, completions, strict=True) for c in own]
    bench.pool.score(texts, policy=prompts[0].extract)
    seconds = time.monotonic() - began
    groups = [Group(p, own, one.scores) for p, own, one in zip(prompts, completions, first, strict=True)]
    return groups, Pace(now.completions, num_tokens(groups), seconds)


def _by_question(groups: Sequence[Group]) -> list[Group]:
    """All completions of a question in one group."""
    merged: dict[str, Group] = {}
    for one in groups:
        known = merged.get(one.prompt.problem.id)
        if known is not None:
            one = replace(known, completions=known.completions + one.completions, scores=known.scores + one.scores)
        merged[one.prompt.problem.id] = one
    return list(merged.values())
