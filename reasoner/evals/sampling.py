"""Sample n responses to every prompt, and take those from the cache that it has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from reasoner.progress import OnDecodeStep, Progress, SampleCount
from reasoner.rollouts.cache import Key, ResponseCache, prompt_hash
from reasoner.rollouts.seeds import sample_seed
from reasoner.types import Prompt, Response, SamplingParams

if TYPE_CHECKING:
    from reasoner.types import Engine

_AT_ONCE = 512  # completions per call of the engine: bounds the memory and what a crash loses, and shows progress


def generate_responses(
    engine: Callable[[], Engine],
    prompts: Sequence[Prompt],
    sampling: SamplingParams,
    *,
    seed: int,
    stream: str = "eval",
    cache: ResponseCache | None = None,
    progress: Progress | None = None,
) -> list[tuple[Response, ...]]:
    """Sample `sampling.num_samples` responses to each prompt, in order. `engine` starts only if the cache lacks one.

    A response's seed is a function of (seed, stream, problem, sample). It does not depend on the number of samples, on
    the other problems or on their order, so a larger number of samples extends the earlier ones.
    """
    by_prompt: list[tuple[Response, ...]] = []
    samples = SampleCount(progress or Progress(), sampling.num_samples * len(prompts))
    for part in _parts(prompts, sampling.num_samples):
        keys = [_keys(prompt, sampling.num_samples, seed, stream) for prompt in part]
        new = _sample_missing(engine, part, sampling, keys, cache, samples.on_decode_step)
        if cache is not None and new:
            cache.add(new)
        by_prompt += [tuple(new.get(k) or _cached(cache, k) for k in row) for row in keys]
        num_tokens = sum(response.tokens or 0 for response in new.values())
        samples.add(sampling.num_samples * len(part), sampled=len(new), tokens=num_tokens)
    return by_prompt


def num_missing(prompts: Sequence[Prompt], sampling: SamplingParams, *, seed: int, cache: ResponseCache) -> int:
    """The number of responses that are not in the cache yet."""
    return sum(cache.get(k) is None for prompt in prompts for k in _keys(prompt, sampling.num_samples, seed, "eval"))


def _keys(prompt: Prompt, num: int, seed: int, stream: str) -> list[Key]:
    ids = prompt_hash(prompt)
    return [(ids, j, sample_seed(seed, stream, prompt.problem.id, j)) for j in range(num)]


def _parts(prompts: Sequence[Prompt], num: int) -> Iterator[Sequence[Prompt]]:
    size = max(1, _AT_ONCE // num)
    return (prompts[start : start + size] for start in range(0, len(prompts), size))


def _sample_missing(
    engine: Callable[[], Engine],
    prompts: Sequence[Prompt],
    sampling: SamplingParams,
    keys: Sequence[Sequence[Key]],
    cache: ResponseCache | None,
    on_decode_step: OnDecodeStep,
) -> dict[Key, Response]:
    """Sample the responses that the cache lacks."""
    missing = [[k for k in row if cache is None or cache.get(k) is None] for row in keys]
    incomplete = [(prompt, row) for prompt, row in zip(prompts, missing, strict=True) if row]
    if not incomplete:
        return {}
    seeds = [[k[2] for k in row] for _, row in incomplete]
    sampled = engine().generate([prompt for prompt, _ in incomplete], sampling, seeds, on_decode_step=on_decode_step)
    return {
        k: Response(prompt.prefill + completion.text, len(completion.token_ids), completion.finish, k[2])
        for (prompt, row), completions in zip(incomplete, sampled, strict=True)
        for k, completion in zip(row, completions, strict=True)
    }


def _cached(cache: ResponseCache | None, key: Key) -> Response:
    response = cache.get(key) if cache is not None else None
    assert response is not None
    return response
