"""Generate completions: graded groups for training, responses (cached, not yet graded) for evaluation.

The seed of a completion is a function of (run seed, step or stream, problem, sample): batching, other prompts and the
number of samples do not change it. Where a step asks a problem again, the samples go on where the group before ended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import chain, count
from typing import Protocol

from reasoner.progress import OnDecodeStep, Progress, SampleCount
from reasoner.rollouts.seeds import digest, sample_seeds
from reasoner.types import Completion, Engine, Prompt, Response, ResponseSource, RolloutGroup, SamplingParams
from verifiers import RewardWeights, Score, VerifierPool

Key = tuple[str, int, int]  # (hash of the prompt's token ids or text, index of the sample, its seed)


class ResponseStore(Protocol):
    """Responses that were sampled before, such as reasoner.evals.response_cache.ResponseCache."""

    def get(self, key: Key) -> Response | None:
        """The stored response, or None."""
        ...

    def add(self, responses: Mapping[Key, Response]) -> None:
        """Store responses."""
        ...


@dataclass(frozen=True, slots=True)
class SampleCall:
    """What one call of an engine samples: prompts, with the seeds of the responses to each."""

    prompts: Sequence[Prompt]
    seeds: Sequence[Sequence[int]]


class EngineGroup(Protocol):
    """Several engines that sample at the same time, each a whole call: its responses are those of a single engine,
    whose last digits depend on what is sampled together.
    """

    def respond_to_calls(
        self, calls: Sequence[SampleCall], sampling: SamplingParams, on_decode_step: OnDecodeStep | None = None
    ) -> list[list[tuple[Response, ...]]]:
        """The responses to the prompts of each call."""
        ...


_AT_ONCE = 512  # completions per call of the engine: bounds the memory and what a crash loses, and shows progress


def generate_groups(
    engine: Engine,
    pool: VerifierPool,
    prompts: Sequence[Prompt],
    sampling: SamplingParams,
    weights: RewardWeights,
    *,
    run_seed: int,
    step: int | str,
    progress: Progress | None = None,
    repeats: Sequence[int] | None = None,
) -> list[RolloutGroup]:
    """Sample and grade a group of `sampling.num_samples` completions for each prompt, in order.

    A completion's seed is a function of (run_seed, step, problem, sample), so more samples of the same step extend the
    earlier ones. `repeats`: num_repeats() of the step's prompts, where these are a part of them. Prefill and completion
    are graded together; finished groups are graded while others are sampled.
    """
    group_size, progress = sampling.num_samples, progress or Progress()
    seeds = [
        sample_seeds(run_seed, step, prompt.problem.id, group_size, first=number * group_size)
        for prompt, number in zip(prompts, num_repeats(prompts) if repeats is None else repeats, strict=True)
    ]
    grading: dict[int, Future[list[Score]]] = {}
    total, num_graded = len(prompts) * group_size, count(group_size, group_size)
    samples = SampleCount(progress, total)
    with ThreadPoolExecutor(1) as grader:

        def grade(place: int, completions: tuple[Completion, ...]) -> None:
            prompt = prompts[place]
            rows = [(prompt.prefill + completion.text, prompt.problem) for completion in completions]
            grading[place] = grader.submit(
                pool.score,
                rows,
                weights,
                extract=prompt.extract,
                tokens=[len(completion.token_ids) for completion in completions],
                max_tokens=sampling.max_tokens,
            )
            grading[place].add_done_callback(lambda _: progress.count("graded", next(num_graded), total))

        try:
            sampled = engine.generate(prompts, sampling, seeds, grade, samples.on_decode_step)
            samples.add(total, sampled=total, tokens=sum(len(own.token_ids) for group in sampled for own in group))
            scores = [grading[place].result() for place in range(len(prompts))]
        except BaseException:
            grader.shutdown(cancel_futures=True)
            raise
    return [
        RolloutGroup(prompt, own, tuple(graded)) for prompt, own, graded in zip(prompts, sampled, scores, strict=True)
    ]


def num_repeats(prompts: Sequence[Prompt]) -> list[int]:
    """For each prompt the number of earlier ones with the same problem: where a step has more prompts than there are
    problems, its groups of one problem must not have the same seeds.
    """
    seen: Counter[str] = Counter()
    numbers = []
    for prompt in prompts:
        numbers.append(seen[prompt.problem.id])
        seen[prompt.problem.id] += 1
    return numbers


def penalise_missing_eos(groups: Sequence[RolloutGroup], penalty: float) -> list[RolloutGroup]:
    """Subtract `penalty` (algo.missing_eos_penalty) from the reward of each completion that ended without an
    end token or stop text: at sampling.max_tokens, or aborted.

    This comes before anything that uses rewards: baselines, zero-variance groups, process rewards, metrics.
    """
    return [_penalised(group, penalty) for group in groups] if penalty else list(groups)


def _penalised(group: RolloutGroup, penalty: float) -> RolloutGroup:
    """penalise_missing_eos for one group; the score's parts record the penalty as missing_eos_penalty."""
    scores = []
    for completion, score in zip(group.completions, group.scores, strict=True):
        missing = -float(completion.finish != "stop")
        parts = {**score.parts, "missing_eos_penalty": missing}
        scores.append(replace(score, parts=parts, reward=score.reward + penalty * missing))
    return replace(group, scores=tuple(scores))


def sample_until_full(
    sample: Callable[[Sequence[Prompt]], list[RolloutGroup]],
    rounds: Sequence[Sequence[Prompt]],
    *,
    dynamic_sampling: bool,
) -> tuple[list[RolloutGroup], list[RolloutGroup]]:
    """Generate groups round by round. Returns (the groups to train on, the zero-variance groups that were replaced).

    Without `dynamic_sampling` only the first round is generated and returned. With it, later rounds replace
    zero-variance groups until there are as many others as the first round has prompts (DAPO's dynamic sampling: Yu et
    al. 2025, eq. 11), or the rounds are used up. If all groups have zero variance, the first ones are returned. No
    prompt is used twice.
    """
    groups = sample(rounds[0])
    if not dynamic_sampling:
        return groups, []
    num_groups, used = len(groups), {prompt.problem.id for prompt in rounds[0]}
    for prompts in rounds[1:]:
        missing = num_groups - sum(not group.has_zero_variance for group in groups)
        more = [prompt for prompt in prompts if prompt.problem.id not in used][:missing]
        if missing <= 0 or not more:
            break
        used |= {prompt.problem.id for prompt in more}
        groups += sample(more)
    varied = [group for group in groups if not group.has_zero_variance]
    zero_variance = [group for group in groups if group.has_zero_variance]
    return (varied, zero_variance) if varied else (zero_variance[:num_groups], zero_variance[num_groups:])


def generate_responses(
    engine: Callable[[], Engine | ResponseSource | EngineGroup],
    prompts: Sequence[Prompt],
    sampling: SamplingParams,
    *,
    seed: int,
    stream: str = "eval",
    cache: ResponseStore | None = None,
    progress: Progress | None = None,
    num_engines: int = 1,
) -> list[tuple[Response, ...]]:
    """Sample `sampling.num_samples` responses to each prompt, in order. `engine` starts only if the cache lacks one.

    A response's seed is a function of (seed, stream, problem, sample). It does not depend on the number of samples, on
    the other problems or on their order, so a larger number of samples extends the earlier ones. `num_engines`: of an
    EngineGroup, which sample as many calls at a time. What a call samples does not depend on it.
    """
    by_prompt: list[tuple[Response, ...]] = []
    samples = SampleCount(progress or Progress(), sampling.num_samples * len(prompts))
    parts = engine_batches(prompts, sampling.num_samples)
    for start in range(0, len(parts), num_engines):
        some = parts[start : start + num_engines]
        keys = [[_keys(prompt, sampling.num_samples, seed, stream) for prompt in part] for part in some]
        sampled = _sample_missing(engine, some, sampling, keys, cache, samples.on_decode_step)
        for rows, new in zip(keys, sampled, strict=True):
            if cache is not None and new:
                cache.add(new)
            by_prompt += [tuple(new.get(k) or _cached(cache, k) for k in row) for row in rows]
            num_tokens = sum(response.tokens or 0 for response in new.values())
            samples.add(sampling.num_samples * len(rows), sampled=len(new), tokens=num_tokens)
    return by_prompt


def num_missing(prompts: Sequence[Prompt], sampling: SamplingParams, *, seed: int, cache: ResponseStore) -> int:
    """The number of responses that are not in the cache yet."""
    return sum(cache.get(k) is None for prompt in prompts for k in _keys(prompt, sampling.num_samples, seed, "eval"))


def _keys(prompt: Prompt, num: int, seed: int, stream: str) -> list[Key]:
    ids = digest(prompt.token_ids or prompt.text, 32)  # a server's tokenizer is not known here
    return [(ids, j, own) for j, own in enumerate(sample_seeds(seed, stream, prompt.problem.id, num))]


def engine_batches(prompts: Sequence[Prompt], num_samples: int) -> list[Sequence[Prompt]]:
    """The prompts of each call of the engine, in order. All batches but the last have as many: whole ones, one after
    another, are divided into the same again.
    """
    size = max(1, _AT_ONCE // num_samples)
    return [prompts[start : start + size] for start in range(0, len(prompts), size)]


def _sample_missing(
    engine: Callable[[], Engine | ResponseSource | EngineGroup],
    parts: Sequence[Sequence[Prompt]],
    sampling: SamplingParams,
    keys: Sequence[Sequence[Sequence[Key]]],
    cache: ResponseStore | None,
    on_decode_step: OnDecodeStep,
) -> list[dict[Key, Response]]:
    """Sample the responses that the cache lacks, one call for each part that lacks some: the new responses by part."""
    missing = [[[k for k in row if cache is None or cache.get(k) is None] for row in rows] for rows in keys]
    calls = [_call(prompts, rows) for prompts, rows in zip(parts, missing, strict=True)]
    needed = [call for call in calls if call.prompts]
    responses = iter(_respond(engine(), needed, sampling, on_decode_step) if needed else [])
    return [
        dict(zip(chain(*rows), chain(*next(responses)), strict=True)) if call.prompts else {}
        for call, rows in zip(calls, missing, strict=True)
    ]


def _call(prompts: Sequence[Prompt], missing: Sequence[Sequence[Key]]) -> SampleCall:
    """The call that samples the missing responses to each of the prompts."""
    incomplete = [(prompt, [k[2] for k in row]) for prompt, row in zip(prompts, missing, strict=True) if row]
    return SampleCall([prompt for prompt, _ in incomplete], [seeds for _, seeds in incomplete])


def _respond(
    source: Engine | ResponseSource | EngineGroup,
    calls: Sequence[SampleCall],
    sampling: SamplingParams,
    on_decode_step: OnDecodeStep,
) -> list[list[tuple[Response, ...]]]:
    if hasattr(source, "respond_to_calls"):
        return source.respond_to_calls(calls, sampling, on_decode_step)
    return [sample_responses(source, call, sampling, on_decode_step) for call in calls]


def sample_responses(
    source: Engine | ResponseSource,
    call: SampleCall,
    sampling: SamplingParams,
    on_decode_step: OnDecodeStep | None = None,
) -> list[tuple[Response, ...]]:
    """Ask a source of texts for responses, or an engine for completions, which become responses."""
    if hasattr(source, "respond"):
        return source.respond(call.prompts, sampling, call.seeds, on_decode_step)
    groups = source.generate(call.prompts, sampling, call.seeds, on_decode_step=on_decode_step)
    return [
        tuple(
            Response(prompt.prefill + completion.text, len(completion.token_ids), completion.finish, seed)
            for completion, seed in zip(completions, own, strict=True)
        )
        for prompt, completions, own in zip(call.prompts, groups, call.seeds, strict=True)
    ]


def _cached(cache: ResponseStore | None, key: Key) -> Response:
    response = cache.get(key) if cache is not None else None
    assert response is not None
    return response
