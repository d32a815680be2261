"""SIGINT and SIGTERM: the first one asks the run to save and leave, a second one ends it at once."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopped(BaseException):  # not an Exception: no library's handler may swallow it
    """The run was asked to stop, and is where it can be gone on with."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.status = 128 + number


class GracefulShutdown:
    """While it is open, a signal raises Stopped at the next `check` or `leaves` block."""

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log
        self._asked = 0
        self._may_leave = False
        self._before: dict[int, object] = {}

    def __enter__(self) -> GracefulShutdown:
        try:
            self._before = {number: signal.signal(number, self._ask) for number in _SIGNALS}
        except ValueError:  # not the main thread: signals are somebody else's
            self._before = {}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._restore()

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        self._before = {}

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self._asked = number
        self._restore()
        if self._may_leave:
            raise Stopped(number)
        self._log("stopping after this step; a second signal ends the run at once, without saving")

    def check(self) -> None:
        """Leave here if a signal has come."""
        if self._asked:
            raise Stopped(self._asked)

    @contextmanager
    def leaves(self) -> Iterator[None]:
        """A block in which nothing changes that has to be kept: a signal ends it in the middle."""
        self.check()
        self._may_leave = True
        try:
            yield
        finally:
            self._may_leave = False
