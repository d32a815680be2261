"""Responses of several ranks: the first runs the evaluation, and every rank samples its share of the prompts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from reasoner.distributed.world import RankError, World
from reasoner.progress import OnDecodeStep
from reasoner.rollouts.generate import sample_responses
from reasoner.types import Engine, Prompt, Response, SamplingParams

_FIRST = "the first rank's prompts"
_OTHERS = "the responses of the other ranks"


class EngineStart(Protocol):
    """Creates an engine at the first call and returns it at every call: inference.model_spec.EngineFactory."""

    def __call__(self) -> Engine:
        """The engine."""
        ...

    def close(self) -> None:
        """Stop the engine if there is one."""
        ...


@dataclass(frozen=True, slots=True)
class _Task:
    """Prompts that the ranks sample together, with the seeds of the responses to each."""

    prompts: Sequence[Prompt]
    sampling: SamplingParams
    seeds: Sequence[Sequence[int]]

    def place(self) -> str:
        """The place in the evaluation, for messages."""
        return f"{len(self.prompts)} problems from {self.prompts[0].problem.id} on"


class RankResponses:
    """A ResponseSource of the first rank, which divides the prompts among all ranks; the others are in serve_first.

    Each rank starts an engine of its own at the first prompts, all at once: vLLM's start is a collective operation.
    """

    def __init__(self, start: EngineStart, world: World) -> None:
        """A collective operation. `start` is copied to the other ranks: it must not have been called."""
        self._start, self._world = start, world
        world.from_first(lambda: start, _FIRST)

    def respond(
        self,
        prompts: Sequence[Prompt],
        sampling: SamplingParams,
        seeds: Sequence[Sequence[int]],
        on_decode_step: OnDecodeStep | None = None,
    ) -> list[tuple[Response, ...]]:
        """Responses to each prompt, one for each of its seeds. A collective operation."""
        task = _Task(prompts, sampling, seeds)
        with self._world.name_errors(task.place):
            self._world.from_first(lambda: task, _FIRST)
            return _sample_together(task, self._start, self._world, on_decode_step)


def serve_first(world: World) -> None:
    """Sample what the first rank asks for, until its evaluation has ended. For every other rank."""
    start: EngineStart | None = world.from_first(_nothing, _FIRST)
    if start is None:
        return
    with closing(start):
        while (task := world.from_first(_nothing, _FIRST)) is not None:
            with world.name_errors(task.place):
                _sample_together(task, start, world)


@contextmanager
def end_others(world: World) -> Iterator[None]:
    """A block of the first rank, at whose end the other ranks leave serve_first; by SystemExit if it has failed. After
    a RankError they have ended, or will by themselves.
    """
    try:
        yield
    except RankError:
        raise
    except Exception as error:
        with suppress(RuntimeError):  # the others are gone
            world.from_first(partial(_fail, error), _FIRST)
        raise
    world.from_first(_nothing, _FIRST)


def _sample_together(
    task: _Task, start: EngineStart, world: World, on_decode_step: OnDecodeStep | None = None
) -> list[tuple[Response, ...]]:
    """Sample this rank's share, and return the responses of all ranks."""

    def sample_own(places: Sequence[int]) -> list[tuple[Response, ...]]:
        prompts, seeds = [task.prompts[place] for place in places], [task.seeds[place] for place in places]
        return sample_responses(engine, prompts, task.sampling, seeds, on_decode_step)

    engine = start()  # also where this rank has no prompts
    return world.stripe(range(len(task.prompts)), sample_own, _OTHERS)


def _nothing() -> Any:
    return None


def _fail(error: Exception) -> None:
    raise error
