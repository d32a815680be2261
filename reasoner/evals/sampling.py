"""Sample the responses of an evaluation, in calls of many prompts; those in the cache are not sampled again.

The seed of a response is a function of (seed, stream, problem, sample): batching, other prompts and the number of
samples do not change it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

from reasoner.evals.response_cache import Key, ResponseCache
from reasoner.progress import OnDecodeStep, Progress, SampleCount
from reasoner.rollouts.seeds import digest, sample_seeds
from reasoner.types import Completion, Engine, Prompt, Response, SamplingParams


@dataclass(frozen=True, slots=True)
class SampleCall:
    """What one call of an engine samples: prompts, with the seeds of the responses to each."""

    prompts: Sequence[Prompt]
    seeds: Sequence[Sequence[int]]


# Samples the responses to the prompts of each call: an engine, a server, or the engines of several ranks, each a whole
# call. What is sampled together, which decides the last digits, is a call.
Sampler = Callable[
    [Sequence[SampleCall], SamplingParams, OnDecodeStep | None], Sequence[Sequence[tuple[Response, ...]]]
]
_AT_ONCE = 512  # completions per call of the engine: bounds the memory and what a crash loses, and shows progress


def engine_sampler(start: Callable[[], Engine]) -> Sampler:
    """The sampler of an engine. `start` returns it, and starts it when it is called for the first time."""

    def sample(
        calls: Sequence[SampleCall], sampling: SamplingParams, on_decode_step: OnDecodeStep | None = None
    ) -> list[list[tuple[Response, ...]]]:
        engine = start()
        return [sample_call(engine, call, sampling, on_decode_step) for call in calls]

    return sample


def sample_call(
    engine: Engine, call: SampleCall, sampling: SamplingParams, on_decode_step: OnDecodeStep | None = None
) -> list[tuple[Response, ...]]:
    """The responses of an engine to the prompts of a call."""
    groups = engine.generate(call.prompts, sampling, call.seeds, on_decode_step=on_decode_step)
    return [
        tuple(_response(prompt, completion, seed) for completion, seed in zip(completions, own, strict=True))
        for prompt, completions, own in zip(call.prompts, groups, call.seeds, strict=True)
    ]


def _response(prompt: Prompt, completion: Completion, seed: int) -> Response:
    observations = tuple(part.behind(len(prompt.prefill)) for part in completion.observations)
    text = prompt.prefill + completion.text
    return Response(text, completion.num_tokens, completion.finish, seed, observations, completion.state)


def generate_responses(
    sampler: Sampler,
    prompts: Sequence[Prompt],
    sampling: SamplingParams,
    *,
    seed: int,
    stream: str = "eval",
    cache: ResponseCache | None = None,
    progress: Progress | None = None,
    num_engines: int = 1,
) -> list[tuple[Response, ...]]:
    """Sample `sampling.num_samples` responses to each prompt, in order. `sampler` is called only for what the cache
    lacks.

    A response's seed is a function of (seed, stream, problem, sample). It does not depend on the number of samples, on
    the other problems or on their order, so a larger number of samples extends the earlier ones. `num_engines`: of the
    sampler, which gets as many calls at a time. What a call samples does not depend on it.
    """
    by_prompt: list[tuple[Response, ...]] = []
    samples = SampleCount(progress or Progress(), sampling.num_samples * len(prompts))
    parts = engine_batches(prompts, sampling.num_samples)
    for start in range(0, len(parts), num_engines):
        some = parts[start : start + num_engines]
        keys = [[_keys(prompt, sampling.num_samples, seed, stream) for prompt in part] for part in some]
        sampled = _sample_missing(sampler, some, sampling, keys, cache, samples.on_decode_step)
        for rows, new in zip(keys, sampled, strict=True):
            if cache is not None and new:
                cache.add(new)
            by_prompt += [tuple(new.get(k) or _cached(cache, k) for k in row) for row in rows]
            num_tokens = sum(response.tokens or 0 for response in new.values())
            samples.add(sampling.num_samples * len(rows), sampled=len(new), tokens=num_tokens)
    return by_prompt


def num_missing(prompts: Sequence[Prompt], sampling: SamplingParams, *, seed: int, cache: ResponseCache) -> int:
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
    sampler: Sampler,
    parts: Sequence[Sequence[Prompt]],
    sampling: SamplingParams,
    keys: Sequence[Sequence[Sequence[Key]]],
    cache: ResponseCache | None,
    on_decode_step: OnDecodeStep,
) -> list[dict[Key, Response]]:
    """Sample the responses that the cache lacks, one call for each part that lacks some: the new responses by part."""
    missing = [[[k for k in row if cache is None or cache.get(k) is None] for row in rows] for rows in keys]
    calls = [_call(prompts, rows) for prompts, rows in zip(parts, missing, strict=True)]
    needed = [call for call in calls if call.prompts]
    responses = iter(sampler(needed, sampling, on_decode_step) if needed else [])
    return [
        dict(zip(chain(*rows), chain(*next(responses)), strict=True)) if call.prompts else {}
        for call, rows in zip(calls, missing, strict=True)
    ]


def _call(prompts: Sequence[Prompt], missing: Sequence[Sequence[Key]]) -> SampleCall:
    """The call that samples the missing responses to each of the prompts."""
    incomplete = [(prompt, [k[2] for k in row]) for prompt, row in zip(prompts, missing, strict=True) if row]
    return SampleCall([prompt for prompt, _ in incomplete], [seeds for _, seeds in incomplete])


def _cached(cache: ResponseCache | None, key: Key) -> Response:
    response = cache.get(key) if cache is not None else None
    assert response is not None
    return response
