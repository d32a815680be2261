"""The parent's handle on one grading worker: its process, its pipes, its clocks.

An item has two clocks: its seconds of processor time, and MAX_STRETCH times as many by the wall clock. Sending the item
counts: a worker that does not read is late too.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any

from verifiers.worker import LOADING_SECONDS, MAX_STRETCH

CHECKOUT = Path(__file__).resolve().parents[1]


class WorkerProcess:
    """One child. `owed` are the numbers of the items sent and not answered; the first of them is in hand."""

    def __init__(self, seconds: float, memory_mib: int, *, preload: bool = False) -> None:
        self.owed: deque[int] = deque()
        self.is_ready = False
        self._seconds = seconds
        self._is_loading = False
        self._cpu = 0.0  # that the child had used at its last event
        self._since = monotonic()  # the last event, or the giving of the batch
        self._deadline = self._since + LOADING_SECONDS
        self._pieces: list[bytes] = []  # of a line that has not arrived in full
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115  what it writes before it is ready
        # A new program, never a fork of this process: it may have threads. Found wherever we were started from.
        self._child = subprocess.Popen(
            [sys.executable, "-m", "verifiers.worker", str(seconds), str(memory_mib), *["preload"] * preload],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            cwd=CHECKOUT,
            env=_environment(),
            process_group=0,  # an interrupt from the keyboard is ours alone
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
        return bool(self.owed) or not self.is_ready

    def give(self, task: str, numbers: Sequence[int], items: Sequence[Sequence[str]]) -> None:
        """Send a batch; its results come in its order. A worker found dead shows at the next `events`."""
        self.owed.extend(numbers)
        self._start_clock()
        line = json.dumps({"task": task, "items": items}) + "\n"
        with suppress(BrokenPipeError):
            self._write(memoryview(line.encode("ascii")))

    def events(self) -> list[tuple[int, dict[str, Any]]] | None:
        """(number of the item, event) of every "reading" and "result" by now; None where the worker is dead."""
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
                events.append((self.owed[0], event))
                continue  # the same item is still in hand: its clocks go on
            self.is_ready = True
            self._is_loading = event.get("loading", False)
            if "result" in event:
                events.append((self.owed.popleft(), event))
            self._cpu = event["cpu"]
            self._start_clock()
        return events

    def seconds_left(self) -> float:
        """Until the item in hand, or the start, is late. Time in which a busy machine let it wait is added again."""
        left = self._deadline - monotonic()
        if left > 0 or self._is_loading or not self.is_ready:
            return left
        used, wall_left = _cpu_seconds(self.pid), self._since + MAX_STRETCH * self._seconds - monotonic()
        if used is None or wall_left <= 0:
            return left
        return min(wall_left, self._seconds - (used - self._cpu))

    def complaint(self) -> str:
        """The last line it wrote before it was ready."""
        self._complaints.seek(0)
        lines = self._complaints.read().decode(errors="replace").split("\n")
        return next((line for line in reversed(lines) if line.strip()), "no message")

    def kill(self) -> None:
        """End it now, whatever it does."""
        self._child.kill()
        self._release()

    def stop(self) -> None:
        """Let it end by itself, as it does when its input closes; kill it when it does not."""
        try:
            self._input.close()
            self._child.wait(timeout=1.0)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            self._child.kill()
        self._release()

    def _release(self) -> None:
        self._child.wait()
        with suppress(BrokenPipeError):  # a batch that never got through
            self._input.close()
        self._output.close()
        self._complaints.close()

    def _write(self, data: memoryview) -> None:
        """Write while the child reads, until the wall clock of the item in hand runs out."""
        ready = select.poll()
        ready.register(self._input.fileno(), select.POLLOUT)
        while len(data):
            try:
                data = data[os.write(self._input.fileno(), data) :]
            except BlockingIOError:
                left = self._since + MAX_STRETCH * self._seconds - monotonic()
                if left <= 0:
                    return
                ready.poll(1000 * left)

    def _start_clock(self) -> None:
        self._since = monotonic()
        self._deadline = self._since + (LOADING_SECONDS if self._is_loading else self._seconds)


def _environment() -> dict[str, str]:
    """Ours, with one thread, the same hash seed in every worker, and this checkout found first."""
    own = {name: value for name, value in os.environ.items() if name not in ("PYTHONSAFEPATH", "PYTHONSTARTUP")}
    return own | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}


def _cpu_seconds(pid: int) -> float | None:
    """Processor time that a process has used, or None where the system does not tell (outside Linux) or it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")  # utime and stime: see proc(5)
