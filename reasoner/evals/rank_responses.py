"""Responses of several ranks: the first runs the evaluation, and each rank samples whole calls of its engine.

The prompts of a call are those of a single process. So the responses are the same to the byte, and an interrupted
evaluation is finished by any number of ranks. Prompts that are divided otherwise would not do: what is sampled together
decides the last digits of the log-probabilities, and so one draw in some ten thousand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from reasoner.distributed.world import RankError, World
from reasoner.evals.sampling import SampleCall, sample_call
from reasoner.progress import OnDecodeStep
from reasoner.types import Response, SamplingParams

if TYPE_CHECKING:
    from reasoner.inference.model_spec import EngineFactory

_FIRST = "the first rank's prompts"
_OTHERS = "the responses of the other ranks"


@dataclass(frozen=True, slots=True)
class _Task:
    """Calls that the ranks sample together: call i is that of rank i modulo their number."""

    calls: Sequence[SampleCall]
    sampling: SamplingParams

    def place(self) -> str:
        """The place in the evaluation, for messages."""
        num_problems = sum(len(call.prompts) for call in self.calls)
        return f"{num_problems} problems from {self.calls[0].prompts[0].problem.id} on"


class RankSampler:
    """The sampler of the first rank: each call is sampled by one of the ranks; the others are in serve_first.

    Each rank starts an engine of its own at the first calls, all at once: vLLM's start is a collective operation.
    """

    def __init__(self, start: EngineFactory, world: World) -> None:
        """A collective operation. `start` is copied to the other ranks: it must not have been called."""
        self._start, self._world = start, world
        world.from_first(lambda: start, _FIRST)

    def __call__(
        self, calls: Sequence[SampleCall], sampling: SamplingParams, on_decode_step: OnDecodeStep | None = None
    ) -> list[list[tuple[Response, ...]]]:
        """The responses to the prompts of each call. A collective operation."""
        task = _Task(calls, sampling)
        with self._world.name_errors(task.place):
            self._world.from_first(lambda: task, _FIRST)
            return _sample_together(task, self._start, self._world, on_decode_step)


def serve_first(world: World) -> None:
    """Sample what the first rank asks for, until its evaluation has ended. For every other rank."""
    start: EngineFactory | None = world.from_first(lambda: None, _FIRST)
    if start is None:
        return
    with closing(start):
        while (task := world.from_first(lambda: None, _FIRST)) is not None:
            with world.name_errors(task.place):
                _sample_together(task, start, world)


@contextmanager
def fail_others(world: World) -> Iterator[None]:
    """A block of the first rank whose failure ends the other ranks by SystemExit, if they are in serve_first. After a
    RankError they have ended, or will by themselves.
    """
    try:
        yield
    except RankError:
        raise
    except Exception as error:
        with suppress(RuntimeError):  # the others are gone
            world.from_first(partial(_fail, error), _FIRST)
        raise


@contextmanager
def end_others(world: World) -> Iterator[None]:
    """A block of the first rank, at whose end the other ranks leave serve_first."""
    with fail_others(world):
        yield
    world.from_first(lambda: None, _FIRST)


def _sample_together(
    task: _Task, start: EngineFactory, world: World, on_decode_step: OnDecodeStep | None = None
) -> list[list[tuple[Response, ...]]]:
    """Sample this rank's calls, and return the responses to those of all ranks."""
    engine = start()  # also where this rank has no call

    def sample_own(calls: Sequence[SampleCall]) -> list[list[tuple[Response, ...]]]:
        return [sample_call(engine, call, task.sampling, on_decode_step) for call in calls]

    return world.stripe(task.calls, sample_own, _OTHERS)


def _fail(error: Exception) -> None:
    raise error
