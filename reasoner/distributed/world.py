"""The processes of a run: rank and size, and the values that they exchange.

Every rank runs the same program and has the rollouts of all ranks; only sampling, grading and the passes through the
models are divided. A collective operation must be called by every rank, in the same order. In a world of one process
each of them is the identity, and torch.distributed is not used. Light: torch is imported where a second process exists.
"""

from __future__ import annotations

import math
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from reasoner.console import first_line
from reasoner.runtime import end_with_parent

if TYPE_CHECKING:
    from torch import Tensor

T = TypeVar("T")
S = TypeVar("S")

TIME_LIMIT = timedelta(minutes=10)  # of a collective operation
# Of waiting for a rank's work of any length: whole calls of each other's engines in an evaluation, and what the first
# rank alone does, grading or a checkpoint on a slow disk. A rank that has ended is noticed at once.
LONG_TIME_LIMIT = timedelta(hours=12)
CONNECT_LIMIT = timedelta(minutes=3)  # for all ranks to have started: their imports are all that they do before


class RunInterrupt(BaseException):  # not an Exception: no library's handler may swallow it
    """The run was asked to stop by a signal, and can be resumed."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.number = number
        self.status = 128 + number

    def __reduce__(self) -> tuple[type[RunInterrupt], tuple[int]]:
        return RunInterrupt, (self.number,)


class SharedError(RuntimeError):
    """An error of a rank's share of some work that ends the work on all ranks alike."""


class RankError(RuntimeError):
    """An error of one of several ranks, with its rank and the place in the run."""


class LostRankError(RuntimeError):
    """A collective operation that another rank did not come to: a consequence of that rank's error, if it had one."""


def record_cause(error: Exception) -> None:
    """Leave an error of one of several ranks to the program that has started them, which prints it last. An error that
    follows from another rank's is not left.
    """
    if isinstance(error, RankError) and not _follows_from_another(error):
        from torch.distributed.elastic.multiprocessing.errors.error_handler import ErrorHandler

        ErrorHandler().record_exception(error)


def _follows_from_another(error: BaseException | None) -> bool:
    while error is not None and not isinstance(error, LostRankError):
        error = error.__cause__
    return error is not None


@dataclass(frozen=True, slots=True)
class World:
    """This process among those of the run. `waiting_for` is what a collective operation gives, for messages."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0  # among the processes of this machine
    local_size: int = 1
    time_limit: timedelta = TIME_LIMIT
    group: Any = field(default=None, compare=False)  # of torch.distributed; None: the default one
    long_group: Any = field(default=None, compare=False)  # the same, with LONG_TIME_LIMIT

    @property
    def is_first(self) -> bool:
        """Whether this rank writes the run folder and the console."""
        return self.rank == 0

    def sum_(self, tensor: Tensor, waiting_for: str) -> None:
        """Replace a tensor by its sum over the ranks, which has the same bits on each."""
        if self.size > 1:
            import torch.distributed as dist

            with self._errors(waiting_for):
                dist.all_reduce(tensor, group=self.group)

    def gather(self, value: T, waiting_for: str, *, to_first: bool = False) -> list[T]:
        """The values of all ranks, in their order: numbers, text and values made of them. With `to_first` on the first
        rank; elsewhere none.
        """
        if self.size == 1:
            return [value]
        import torch.distributed as dist

        values: list[Any] = [None] * self.size if self.is_first or not to_first else []
        with self._errors(waiting_for):
            if to_first:
                dist.gather_object(value, values or None, dst=0, group=self.group)
            else:
                dist.all_gather_object(values, value, group=self.group)
        return values

    def total(self, value: float, waiting_for: str) -> float:
        """The sum of a number over the ranks."""
        return value if self.size == 1 else sum(self.gather(value, waiting_for))

    def largest(self, value: float, waiting_for: str) -> float:
        """The largest of the ranks' numbers."""
        return largest_of(self.gather(value, waiting_for))

    def from_first(self, compute: Callable[[], T], waiting_for: str) -> T:
        """The value that the first rank alone computes, for which the others wait up to LONG_TIME_LIMIT. If that fails,
        the error is the first rank's, and the others end by SystemExit, without a message of their own.
        """
        if self.size == 1:
            return compute()
        value, error = None, None
        if self.is_first:
            try:
                value = compute()
            except BaseException as raised:
                error = raised
        patient = replace(self, time_limit=LONG_TIME_LIMIT, group=self.long_group)
        has_failed, value = patient.gather((error is not None, value), waiting_for)[0]
        if error is not None:
            raise error
        if has_failed:
            raise SystemExit(1)
        return value  # type: ignore[return-value]

    def stripe(
        self,
        items: Sequence[S],
        compute: Callable[[Sequence[S]], Sequence[T]],
        waiting_for: str,
        *,
        tells_errors: bool = False,
    ) -> list[T]:
        """The result for each item, in order, on every rank. Each rank computes those of its own items: item i is that
        of rank i modulo size. RunInterrupt if a signal interrupts `compute` on any rank, and a SharedError of any rank.
        Any other error is its own rank's, whose end tells the others; `tells_errors` for a thread, which may end long
        before its process: LostRankError on the others.
        """
        if self.size == 1:
            return list(compute(items))
        own: Sequence[T] | RunInterrupt | SharedError | LostRankError
        failure: Exception | None = None
        try:
            own = compute(items[self.rank :: self.size]) if len(items) > self.rank else []
        except (RunInterrupt, SharedError) as error:
            own = error
        except Exception as error:
            if not tells_errors:
                raise
            own, failure = LostRankError(f"waited for {waiting_for}, and rank {self.rank} has failed"), error
        parts: list[Sequence[T]] = []
        for part in self.gather(own, waiting_for):
            if isinstance(part, RunInterrupt | SharedError | LostRankError):
                raise failure or part
            parts.append(part)
        return [parts[i % self.size][i // self.size] for i in range(len(items))]

    def with_own_group(self, time_limit: timedelta | None = None) -> World:
        """The same processes with groups of their own: operations of a second thread do not meet those of the first.
        `time_limit` of its collective operations, by default that of this world. A collective operation itself.
        """
        if self.size == 1:
            return self
        from reasoner.distributed.connect import open_group

        own = time_limit or self.time_limit
        groups = [open_group(limit=self.time_limit, time_limit=limit) for limit in (own, LONG_TIME_LIMIT)]
        return replace(self, time_limit=own, group=groups[0], long_group=groups[1])

    @contextmanager
    def name_errors(self, place: Callable[[], str]) -> Iterator[None]:
        """A block whose errors say the rank, and the place in the run, unless a block inside has said so."""
        try:
            yield
        except Exception as error:
            if self.size == 1 or isinstance(error, RankError):
                raise
            at = f"rank {self.rank} of {self.size}, {place()}"
            raise RankError(f"{at}: {type(error).__name__}: {error}") from error

    @contextmanager
    def _errors(self, waiting_for: str) -> Iterator[None]:
        """A collective operation. LostRankError that says what was waited for, if another rank has ended or is late."""
        try:
            yield
        except RuntimeError as error:
            minutes = self.time_limit.total_seconds() / 60
            raise LostRankError(
                f"waited for {waiting_for}, and another rank has ended, whose own message says why, or did not come "
                f"within {minutes:g} minutes ({first_line(error)})"
            ) from error


ALONE = World()


def largest_of(values: Sequence[float]) -> float:
    """The largest number; nan where one is, which max() may drop."""
    return max(values, key=lambda value: (math.isnan(value), value))


def num_launched() -> int:
    """The number of processes that torchrun has started, by its environment variables; 0 if it has not."""
    return int(os.environ["WORLD_SIZE"]) if {"RANK", "WORLD_SIZE", "LOCAL_RANK"} <= os.environ.keys() else 0


def is_connected() -> bool:
    """Whether this process has joined a group of ranks and not left it."""
    dist = sys.modules.get("torch.distributed")
    return dist is not None and dist.is_available() and dist.is_initialized()


@contextmanager
def open_world(time_limit: timedelta = TIME_LIMIT, connect_limit: timedelta = CONNECT_LIMIT) -> Iterator[World]:
    """Join the processes that torchrun has started, with this rank's GPU as the default device; else ALONE.

    RuntimeError that names the ranks that do not come within `connect_limit`; ValueError for more processes than GPUs
    on a machine that has any. Before vLLM is imported: it uses the
    group that it finds, and would otherwise make one of a single process.
    """
    if num_launched() < 2:
        yield ALONE
        return
    import torch
    import torch.distributed as dist

    from reasoner.distributed.connect import connect, open_group
    from reasoner.distributed.launch import check_gpus

    rank, size, local_rank = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"))
    local_size = int(os.environ.get("LOCAL_WORLD_SIZE", size))
    check_gpus(local_size)
    end_with_parent()  # no rank trains on without the program that started it
    has_gpu = torch.cuda.is_available()
    if has_gpu:
        torch.cuda.set_device(local_rank)
    backend = "cpu:gloo,cuda:nccl" if has_gpu else "gloo"
    connect(rank, size, backend, limit=connect_limit, time_limit=time_limit)
    long_group = open_group(limit=connect_limit, time_limit=LONG_TIME_LIMIT)
    yield World(rank, size, local_rank, local_size, time_limit, long_group=long_group)
    # Not after an error: over NCCL it waits for the other ranks, which wait for this one. Its end tells them.
    dist.destroy_process_group()
