"""n responses to every prompt, from the cache where they are there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from reasoner.progress import Progress, SampleCount, Tick
from reasoner.rollouts.cache import Key, ResponseCache, prompt_hash
from reasoner.rollouts.seeds import sample_seed
from reasoner.types import Prompt, Response, Sampling

if TYPE_CHECKING:
    from reasoner.types import Engine

_AT_ONCE = 512  # completions sampled at once: memory stays bounded, progress is seen, and little is lost in a crash


def respond(
    engine: Callable[[], Engine],
    prompts: Sequence[Prompt],
    sampling: Sampling,
    *,
    seed: int,
    stream: str = "eval",
    cache: ResponseCache | None = None,
    progress: Progress | None = None,
) -> list[tuple[Response, ...]]:
    """`sampling.num` responses to each prompt, in order. The engine is asked for only when one of them is missing.

    A response's seed is a function of (seed, stream, problem, sample): neither the number of samples, nor which other
    problems there are, nor their order changes it, so more samples extend the earlier ones.
    """
    found: list[tuple[Response, ...]] = []
    samples = SampleCount(progress or Progress(), sampling.num * len(prompts))
    for part in _parts(prompts, sampling.num):
        keys = [_keys(prompt, sampling.num, seed, stream) for prompt in part]
        drawn = _missing(engine, part, sampling, keys, cache, samples.tick)
        if cache is not None and drawn:
            cache.add(drawn)
        found += [tuple(drawn.get(k) or _kept(cache, k) for k in row) for row in keys]
        num_tokens = sum(response.tokens or 0 for response in drawn.values())
        samples.add(sampling.num * len(part), sampled=len(drawn), tokens=num_tokens)
    return found


def num_missing(prompts: Sequence[Prompt], sampling: Sampling, *, seed: int, cache: ResponseCache) -> int:
    """How many of the responses are not in the cache yet."""
    return sum(cache.get(k) is None for prompt in prompts for k in _keys(prompt, sampling.num, seed, "eval"))


def _keys(prompt: Prompt, num: int, seed: int, stream: str) -> list[Key]:
    ids = prompt_hash(prompt)
    return [(ids, j, sample_seed(seed, stream, prompt.problem.id, j)) for j in range(num)]


def _parts(prompts: Sequence[Prompt], num: int) -> Iterator[Sequence[Prompt]]:
    size = max(1, _AT_ONCE // num)
    return (prompts[start : start + size] for start in range(0, len(prompts), size))


def _missing(
    engine: Callable[[], Engine],
    prompts: Sequence[Prompt],
    sampling: Sampling,
    keys: Sequence[Sequence[Key]],
    cache: ResponseCache | None,
    tick: Tick,
) -> dict[Key, Response]:
    """The responses that the cache lacks, sampled."""
    wanted = [[k for k in row if cache is None or cache.get(k) is None] for row in keys]
    asked = [(prompt, row) for prompt, row in zip(prompts, wanted, strict=True) if row]
    if not asked:
        return {}
    seeds = [[k[2] for k in row] for _, row in asked]
    drawn = engine().sample([prompt for prompt, _ in asked], sampling, seeds, tick=tick)
    return {
        k: Response(prompt.prefill + completion.text, len(completion.token_ids), completion.finish, k[2])
        for (prompt, row), completions in zip(asked, drawn, strict=True)
        for k, completion in zip(row, completions, strict=True)
    }


def _kept(cache: ResponseCache | None, wanted: Key) -> Response:
    response = cache.get(wanted) if cache is not None else None
    assert response is not None
    return response
