"""Sample the responses of an evaluation, in calls of many prompts; those in the cache are not sampled again.

The seed of a response is a function of (seed, stream, problem, sample): batching, other prompts and the number of
samples do not change it.

Of several ranks the first runs the evaluation, and each rank samples whole calls of its engine. The prompts of a call
are those of a single process. So the responses are the same to the byte, and an interrupted evaluation is finished by
any number of ranks. Prompts that are divided otherwise would not do: what is sampled together decides the last digits
of the log-probabilities, and so one draw in some ten thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from reasoner.distributed.world import ALONE, RankError, World
from reasoner.evals.response_cache import Key, ResponseCache
from reasoner.progress import OnDecodeStep, Progress, SampleCount
from reasoner.rollouts.seeds import digest, sample_seeds
from reasoner.types import Completion, Engine, Prompt, Response, SamplingParams

if TYPE_CHECKING:
    from reasoner.inference.model_spec import EngineFactory

T = TypeVar("T")
Call = Sequence[tuple[Prompt, Sequence[Key]]]  # what an engine samples at once: prompts, with keys of new responses
_AT_ONCE = 512  # completions per call of the engine: bounds the memory and what a crash loses, and shows progress
_FIRST = "the first rank's prompts"


# ------------------------------------------------------------------------------------------------ engines


class Sampler:
    """Samples calls by the engine of this process, or of each rank: this is the first, the others are in serve_first.

    Engines are started at the first calls, all at once: vLLM's start is a collective operation.
    """

    def __init__(self, start: Callable[[], Engine], world: World = ALONE) -> None:
        """A collective operation. `start` returns the engine, and starts it when it is called for the first time; for
        several ranks it is an EngineFactory, is copied to them, and must not have been called.
        """
        self._start, self.world = start, world
        world.from_first(lambda: start, _FIRST)

    def __call__(
        self, calls: Sequence[Call], sampling: SamplingParams, on_decode_step: OnDecodeStep
    ) -> list[dict[Key, Response]]:
        """The responses of each call. A collective operation."""
        with self.world.name_errors(partial(_place, calls)):
            self.world.from_first(lambda: (calls, sampling), _FIRST)
        return _sample_together(calls, sampling, self._start, self.world, on_decode_step)


def serve_first(world: World) -> None:
    """Sample what the first rank asks for, until its evaluation has ended. For every other rank."""
    start: EngineFactory | None = world.from_first(lambda: None, _FIRST)
    if start is None:
        return
    with closing(start):
        while (task := world.from_first(lambda: None, _FIRST)) is not None:
            _sample_together(*task, start, world)


@contextmanager
def end_others(world: World) -> Iterator[None]:
    """The evaluation by the first rank, at whose end the other ranks leave serve_first; where it fails they end by
    SystemExit. After a RankError they have ended, or will by themselves.
    """
    try:
        yield
    except RankError:
        raise
    except Exception as error:
        with suppress(RuntimeError):  # the others are gone
            world.from_first(partial(_fail, error), _FIRST)
        raise
    world.from_first(lambda: None, _FIRST)


def _fail(error: Exception) -> None:
    raise error


def _sample_together(
    calls: Sequence[Call],
    sampling: SamplingParams,
    start: Callable[[], Engine],
    world: World,
    on_decode_step: OnDecodeStep | None = None,
) -> list[dict[Key, Response]]:
    """Sample this rank's calls, and return the responses to those of all ranks: call i is that of rank i modulo their
    number.
    """
    with world.name_errors(partial(_place, calls)):
        engine = start()  # also where this rank has no call

        def sample_own(own: Sequence[Call]) -> list[dict[Key, Response]]:
            return [_sample(engine, call, sampling, on_decode_step) for call in own]

        return world.stripe(calls, sample_own, "the responses of the other ranks")


def _place(calls: Sequence[Call]) -> str:
    """The place in the evaluation, for messages."""
    return f"{sum(map(len, calls))} problems from {calls[0][0][0].problem.id} on"


def _sample(
    engine: Engine, call: Call, sampling: SamplingParams, on_decode_step: OnDecodeStep | None
) -> dict[Key, Response]:
    seeds = [[seed for _, _, seed in keys] for _, keys in call]
    groups = engine.generate([prompt for prompt, _ in call], sampling, seeds, on_decode_step=on_decode_step)
    return {
        key: _response(prompt, completion, seed=key[2])
        for (prompt, keys), completions in zip(call, groups, strict=True)
        for key, completion in zip(keys, completions, strict=True)
    }


def _response(prompt: Prompt, completion: Completion, seed: int) -> Response:
    observations = tuple(part.behind(len(prompt.prefill)) for part in completion.observations)
    text = prompt.prefill + completion.text
    return Response(text, completion.num_tokens, completion.finish, seed, observations, completion.state)


# ------------------------------------------------------------------------------------------------ responses


def generate_responses(
    sampler: Sampler,
    prompts: Sequence[Prompt],
    sampling: SamplingParams,
    *,
    seed: int,
    stream: str = "eval",
    cache: ResponseCache | None = None,
    progress: Progress | None = None,
) -> list[tuple[Response, ...]]:
    """Sample `sampling.num_samples` responses to each prompt, in order. `sampler` is called only for what the cache
    lacks, with as many calls at a time as it has engines; what a call samples does not depend on their number. A larger
    number of samples extends the earlier ones.
    """
    known: dict[Key, Response] = {} if cache is None else cache.responses
    samples = SampleCount(progress or Progress(), sampling.num_samples * len(prompts))
    rows = [(prompt, _keys(prompt, sampling.num_samples, seed, stream)) for prompt in prompts]
    batches = engine_batches(rows, sampling.num_samples)
    for start in range(0, len(batches), sampler.world.size):
        some = batches[start : start + sampler.world.size]
        calls = [_missing(batch, known) for batch in some]
        needed = [call for call in calls if call]
        sampled = iter(sampler(needed, sampling, samples.on_decode_step) if needed else [])
        for batch, call in zip(some, calls, strict=True):
            responses = next(sampled) if call else {}
            if cache is not None and responses:
                cache.add(responses)
            known |= responses
            num_tokens = sum(response.tokens or 0 for response in responses.values())
            samples.add(sampling.num_samples * len(batch), sampled=len(responses), tokens=num_tokens)
    return [tuple(known[key] for key in keys) for _, keys in rows]


def num_missing(prompts: Sequence[Prompt], sampling: SamplingParams, *, seed: int, cache: ResponseCache) -> int:
    """The number of responses that are not in the cache yet."""
    rows = [(prompt, _keys(prompt, sampling.num_samples, seed, "eval")) for prompt in prompts]
    return sum(len(keys) for _, keys in _missing(rows, cache.responses))


def _keys(prompt: Prompt, num: int, seed: int, stream: str) -> list[Key]:
    ids = digest(prompt.token_ids, 32)
    return [(ids, j, own) for j, own in enumerate(sample_seeds(seed, stream, prompt.problem.id, num))]


def _missing(rows: Call, known: Container[Key]) -> Call:
    """The prompts that lack responses, with the keys of those."""
    missing = [(prompt, [key for key in keys if key not in known]) for prompt, keys in rows]
    return [(prompt, keys) for prompt, keys in missing if keys]


def engine_batches(prompts: Sequence[T], num_samples: int) -> list[Sequence[T]]:
    """The prompts of each call of the engine, in order. All batches but the last have as many: whole ones, one after
    another, are divided into the same again.
    """
    size = max(1, _AT_ONCE // num_samples)
    return [prompts[start : start + size] for start in range(0, len(prompts), size)]
