"""SIGINT and SIGTERM: the first one saves the run and ends it, a second one ends it at once, without saving."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class RunInterrupt(BaseException):  # not an Exception: no library's handler may swallow it
    """The run was asked to stop by a signal, and can be resumed."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.status = 128 + number


class GracefulShutdown:
    """While it is open, a signal raises Stopped at the next check() or interruptible() block."""

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log
        self._signal = 0
        self._is_interruptible = False
        self._handlers: dict[int, object] = {}

    def __enter__(self) -> GracefulShutdown:
        try:
            self._handlers = {number: signal.signal(number, self._handle) for number in _SIGNALS}
        except ValueError:  # not the main thread: signals are somebody else's
            self._handlers = {}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._restore()

    def _restore(self) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        self._handlers = {}

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._signal = number
        self._restore()
        if self._is_interruptible:
            raise RunInterrupt(number)
        self._log("stopping after this step; a second signal ends the run at once, without saving")

    def check(self) -> None:
        """Raise Stopped if a signal has come."""
        if self._signal:
            raise RunInterrupt(self._signal)

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """A block that changes nothing that must be kept: a signal ends it at once."""
        self.check()
        self._is_interruptible = True
        try:
            yield
        finally:
            self._is_interruptible = False
