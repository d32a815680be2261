"""Checkpoints are written in a thread, while training goes on."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType

from reasoner.console import log
from reasoner.distributed.world import ALONE, World


class CheckpointWriter:
    """Writes one folder after the other, in order. At the end of its block all are written.

    The state of one step may wait for the writer, and no more: that of the next step is copied when it is written.
    """

    def __init__(self, world: World = ALONE) -> None:
        """`world`: the ranks that write parts of the same folders, with a group of their own; or ALONE."""
        self.world = world
        self._thread = ThreadPoolExecutor(1, "checkpoint")
        self._step = 0
        self._writes: list[Future[object]] = []

    def submit(self, step: int, write: Callable[[], object]) -> None:
        """Write the state after `step` steps in the thread. begin() comes before its state is copied."""
        self._step = step
        self._writes.append(self._thread.submit(write))

    def begin(self, step: int) -> None:
        """Wait until the state of every other step is written."""
        if step != self._step:
            self.wait()

    def wait(self) -> None:
        """Wait until all is written. The first error of a write is raised, once."""
        writes, self._writes = self._writes, []
        for write in writes:
            write.result()

    def check(self) -> None:
        """Raise the error of a write that has failed."""
        if self._writes and self._writes[0].done():
            self._writes.pop(0).result()

    def __enter__(self) -> CheckpointWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._thread.shutdown()
        if error is None:
            self.wait()
        for write in self._writes:
            if (failure := write.exception()) is not None:
                log(f"no checkpoint after {self._step} steps: {failure}")
