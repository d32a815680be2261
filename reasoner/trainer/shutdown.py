"""SIGINT, SIGTERM and SIGHUP: the first one saves the run and ends it, a second one ends it at once, without saving.
A SIGHUP is never the second one: where a terminal is closed, the shell sends one and the kernel may send another.

With several ranks a signal to one of them ends all, at the places where they meet, and further signals have no effect:
the program that started them passes on its own, and kills what has not ended within its time limit.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType

from reasoner.distributed.world import ALONE, RunInterrupt, World
from reasoner.runtime import stop_signals


class GracefulShutdown:
    """While it is open, a signal raises RunInterrupt at the next check() or interruptible() block."""

    def __init__(self, log: Callable[[str], None], world: World = ALONE) -> None:
        self._log = log
        self._world = world
        self._signal = 0
        self._is_interruptible = False
        self._handlers: dict[int, object] = {}

    def __enter__(self) -> GracefulShutdown:
        try:
            self._handlers = {number: signal.signal(number, self._handle) for number in stop_signals()}
        except ValueError:  # not the main thread: signals are somebody else's
            self._handlers = {}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._restore(list(self._handlers))

    def _restore(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            signal.signal(number, self._handlers.pop(number))  # type: ignore[arg-type]

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._signal and number == signal.SIGHUP:
            return
        is_first, self._signal = not self._signal, number
        is_alone = self._world.size == 1
        if is_alone:
            self._restore([own for own in self._handlers if own != signal.SIGHUP])
        if is_first and not self._is_interruptible:
            second = "; a second signal ends the run at once, without saving" if is_alone else ""
            self._log(f"stopping after this step{second}")

    def check(self) -> None:
        """Raise RunInterrupt if a signal has come to any rank. A collective operation."""
        if number := int(self._world.largest(self._signal, "whether a signal has come")):
            raise RunInterrupt(number)

    def poll(self) -> None:
        """Raise RunInterrupt if a signal has come to this rank in an interruptible() block: while it samples its share,
        where no other rank waits for the same. World.stripe() tells the others.
        """
        if self._signal and self._is_interruptible:
            raise RunInterrupt(self._signal)

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """A block that changes nothing that must be kept: a signal ends it at the next poll(), or at its end.

        Not in the handler: an exception there can come while a lock is taken, which would then never be released.
        """
        self.check()
        self._is_interruptible = True
        try:
            yield
            if self._world.size == 1:
                self.check()
        finally:
            self._is_interruptible = False
