"""The parent's handle of one grading worker: process, pipes and clocks.

Each item has two limits: `seconds` of processor time, and MAX_STRETCH times as much wall time. The time to send the
item counts, so a worker that does not read its input times out as well.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any

from data.environments.spec import worker_environment
from data.environments.worker import LOADING_SECONDS, MAX_STRETCH

CHECKOUT = Path(__file__).resolve().parents[1]


class WorkerProcess:
    """One worker process. `pending` holds the numbers of items sent and not answered; the first is being judged.

    `command` starts it, in `folder` (the working folder if None).
    """

    def __init__(self, command: Sequence[str], seconds: float, folder: Path | None = None) -> None:
        self.pending: deque[int] = deque()
        self.is_ready = False
        self._seconds = seconds
        self._loading_seconds = 0.0  # the limit of what is being loaded; 0 between
        self._cpu = 0.0  # processor seconds that the child had used at its last event
        self._since = monotonic()  # of the last event, or of sending the batch
        self._deadline = self._since + LOADING_SECONDS
        self._pieces: list[bytes] = []  # of an incomplete line
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  what the child writes before it is ready
        # A new program, not a fork: this process may have threads.
        self._child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            cwd=folder,
            env=worker_environment(),
            process_group=0,  # an interrupt from the keyboard reaches the parent only
        )
        assert self._child.stdin is not None and self._child.stdout is not None
        self._input, self._output = self._child.stdin, self._child.stdout
        os.set_blocking(self._input.fileno(), False)

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def output(self) -> int:
        """The file descriptor to wait on."""
        return self._output.fileno()

    @property
    def is_busy(self) -> bool:
        return bool(self.pending) or not self.is_ready

    def send_batch(
        self, task: str, numbers: Sequence[int], items: Sequence[Sequence[str]], late: Sequence[Sequence[str]] = ()
    ) -> None:
        """Send a batch, with the items that are known to time out; its results come in its order.

        A dead worker is reported by the next call of `events`.
        """
        self.pending.extend(numbers)
        self._start_clock()
        line = json.dumps({"task": task, "items": items, "late": late}) + "\n"
        with suppress(BrokenPipeError):
            self._write(memoryview(line.encode("ascii")))

    def events(self) -> list[tuple[int, dict[str, Any]]] | None:
        """The "reading" and "result" events that have arrived, as (item number, event); None if the worker is dead."""
        data = os.read(self.output, 1 << 20)
        if not data:
            return None
        self._pieces.append(data)
        if b"\n" not in data:
            return []
        *lines, rest = b"".join(self._pieces).split(b"\n")
        self._pieces = [rest]
        events = []
        for event in map(json.loads, lines):
            if "reading" in event:
                events.append((self.pending[0], event))
                continue  # the same item is still being judged: its clocks go on
            self.is_ready = True
            self._loading_seconds = event.get("loading", 0.0)
            if "result" in event:
                events.append((self.pending.popleft(), event))
            self._cpu = event["cpu"]
            self._start_clock()
        return events

    def seconds_left(self) -> float:
        """Seconds until the current item, or the start, times out. Time without a processor does not count."""
        remaining = self._deadline - monotonic()
        if remaining > 0 or self._loading_seconds or not self.is_ready:
            return remaining
        cpu_seconds, wall_left = _cpu_seconds(self.pid), self._since + MAX_STRETCH * self._seconds - monotonic()
        if cpu_seconds is None or wall_left <= 0:
            return remaining
        return min(wall_left, self._seconds - (cpu_seconds - self._cpu))

    def startup_error(self) -> str:
        """The last line that the child wrote before it was ready."""
        self._stderr.seek(0)
        lines = self._stderr.read().decode(errors="replace").split("\n")
        return next((line for line in reversed(lines) if line.strip()), "no message")

    def kill(self) -> None:
        """Kill the child immediately, with the programs that it has started."""
        self._release()

    def stop(self) -> None:
        """Close the child's input, which ends it; kill it if it has not ended after one second."""
        with suppress(BrokenPipeError, subprocess.TimeoutExpired):
            self._input.close()
            self._child.wait(timeout=1.0)
        self._release()

    def _release(self) -> None:
        kill_group(self._child)
        with suppress(BrokenPipeError):  # a batch that was not read
            self._input.close()
        self._output.close()
        self._stderr.close()

    def _write(self, data: memoryview) -> None:
        """Write while the child reads, until the wall time of the current item is over."""
        ready = select.poll()
        ready.register(self._input.fileno(), select.POLLOUT)
        while len(data):
            try:
                data = data[os.write(self._input.fileno(), data) :]
            except BlockingIOError:
                remaining = self._since + MAX_STRETCH * self._seconds - monotonic()
                if remaining <= 0:
                    return
                ready.poll(1000 * remaining)

    def _start_clock(self) -> None:
        self._since = monotonic()
        self._deadline = self._since + (self._loading_seconds or self._seconds)


def kill_group(child: subprocess.Popen[bytes]) -> None:
    """Kill a child that leads a process group, with the programs that it has started, and wait for the child alone."""
    with suppress(ProcessLookupError, PermissionError):  # all have ended; macOS refuses a group of ended processes
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


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
