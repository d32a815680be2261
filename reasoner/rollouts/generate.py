"""Prompts in, graded groups out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import count

from reasoner.progress import Progress, SampleCount
from reasoner.rollouts.seeds import sample_seed
from reasoner.types import Completion, Engine, Group, Prompt, Sampling
from verifiers import RewardWeights, Score, VerifierPool


def rollout(
    engine: Engine,
    pool: VerifierPool,
    prompts: Sequence[Prompt],
    sampling: Sampling,
    weights: RewardWeights,
    *,
    run_seed: int,
    step: int | str,
    progress: Progress | None = None,
) -> list[Group]:
    """A group of `sampling.num` graded completions for each prompt, in order.

    A completion's seed is a function of (run_seed, step, problem, sample): more samples of the same step extend the
    earlier ones. What is graded is the prefill with the completion; a finished group is graded while others are drawn.
    """
    seeds = [[sample_seed(run_seed, step, prompt.problem.id, j) for j in range(sampling.num)] for prompt in prompts]
    grading: dict[int, Future[list[Score]]] = {}
    progress, total, num_graded = progress or Progress(), len(prompts) * sampling.num, count(sampling.num, sampling.num)
    samples = SampleCount(progress, total)
    with ThreadPoolExecutor(1) as beside:

        def grade(place: int, completions: tuple[Completion, ...]) -> None:
            prompt = prompts[place]
            rows = [(prompt.prefill + completion.text, prompt.problem) for completion in completions]
            sizes = {
                "tokens": [len(completion.token_ids) for completion in completions],
                "max_tokens": sampling.max_tokens,
            }
            grading[place] = beside.submit(pool.score, rows, weights, policy=prompt.extract, **sizes)
            grading[place].add_done_callback(lambda _: progress.count("graded", next(num_graded), total))

        try:
            drawn = engine.sample(prompts, sampling, seeds, grade, samples.tick)
            samples.add(total, sampled=total, tokens=sum(len(own.token_ids) for group in drawn for own in group))
            scores = [grading[place].result() for place in range(len(prompts))]
        except BaseException:
            beside.shutdown(cancel_futures=True)
            raise
    return [Group(prompt, own, tuple(graded)) for prompt, own, graded in zip(prompts, drawn, scores, strict=True)]


def penalise_truncated(groups: Sequence[Group], penalty: float) -> list[Group]:
    """The groups with `penalty` (algo.missing_end) taken off the reward of each completion that did not end by itself.

    It belongs to the reward before anything looks at it: baselines, zero-variance groups, process rewards, metrics.
    """
    return [_penalised(group, penalty) for group in groups] if penalty else list(groups)


def _penalised(group: Group, penalty: float) -> Group:
    scores = []
    for completion, score in zip(group.completions, group.scores, strict=True):
        missing = -float(completion.finish != "stop")
        parts = {**score.parts, "missing_end": missing}
        scores.append(replace(score, parts=parts, reward=score.reward + penalty * missing))
    return replace(group, scores=tuple(scores))


def gathered(
    ask: Callable[[Sequence[Prompt]], list[Group]], turns: Sequence[Sequence[Prompt]], *, refills: bool
) -> tuple[list[Group], list[Group]]:
    """(the groups to learn from, the flat ones that were replaced). Without refills those of the first turn, flat or
    not. With them as many mixed groups as the first turn has questions, the later turns asking for what is missing
    (DAPO's dynamic sampling: Yu et al. 2025, eq. 11); fewer where the turns are used up, and flat ones where there is
    nothing else. No question is asked twice.
    """
    groups = ask(turns[0])
    if not refills:
        return groups, []
    wanted, asked = len(groups), {prompt.problem.id for prompt in turns[0]}
    for turn in turns[1:]:
        missing = wanted - sum(not group.is_flat for group in groups)
        more = [prompt for prompt in turn if prompt.problem.id not in asked][:missing]
        if missing <= 0 or not more:
            break
        asked |= {prompt.problem.id for prompt in more}
        groups += ask(more)
    mixed = [group for group in groups if not group.is_flat]
    flat = [group for group in groups if group.is_flat]
    return (mixed, flat) if mixed else (flat[:wanted], flat[wanted:])
