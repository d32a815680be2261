"""The parent's handle of one grading worker: a child process whose clock is that of the processor.

Each item has two limits: `seconds` of processor time, and MAX_STRETCH times as much wall time. The time to send the
item counts, so a worker that does not read its input times out as well.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import Any

from data.child_process import ChildProcess, Event
from data.environments.spec import worker_environment
from data.environments.worker import MAX_STRETCH


class WorkerProcess(ChildProcess):
    """One worker process. `command` starts it, in `folder` (the working folder if None), with these variables."""

    def __init__(
        self,
        command: Sequence[str],
        seconds: float,
        folder: Path | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(command, folder=folder, variables=worker_environment() | dict(variables or {}))
        self._seconds = seconds
        self._is_loading = False  # libraries or an environment, by the wall clock alone
        self._cpu = 0.0  # processor seconds that the child had used when the current item began

    def send_batch(self, task: str, numbers: Sequence[int], items: Sequence[Sequence[Any]]) -> None:
        """Send a batch; its results come in its order. A dead worker is reported by the next call of `events`."""
        self._cpu = _cpu_seconds(self.pid) or 0.0
        self.send(task, items, MAX_STRETCH * self._seconds, numbers)

    def events(self) -> list[Event] | None:
        """The "reading" and "result" messages that have arrived; None if the worker is dead."""
        events = super().events()
        for _, message in events or ():
            if "reading" not in message:  # then the same item is still being judged: its clocks go on
                self._is_loading = bool(message.get("loading"))
                self._cpu = _cpu_seconds(self.pid) or 0.0
                self.deadline = monotonic() + (message.get("loading") or MAX_STRETCH * self._seconds)
        return events and [event for event in events if "loading" not in event[1]]

    def seconds_left(self) -> float:
        """Seconds until the current item, or the start, times out. Time without a processor does not count."""
        remaining = super().seconds_left()
        if self._is_loading or not self.is_ready:
            return remaining
        at_least = remaining - (MAX_STRETCH - 1) * self._seconds
        if at_least > 0 or (cpu_seconds := _cpu_seconds(self.pid)) is None:
            return at_least
        return min(remaining, self._seconds - (cpu_seconds - self._cpu))


def grader_command(seconds: float, memory_mib: int, *, preload: bool = False) -> list[str]:
    """The command of a grading worker (worker.py), to be started in CHECKOUT, which comes first on its module path."""
    return [sys.executable, "-m", "verifiers.worker", str(seconds), str(memory_mib), *["preload"] * preload]


def _cpu_seconds(pid: int) -> float | None:
    """Processor seconds that a process has used; None outside Linux, or if the process has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")  # utime and stime: see proc(5)
