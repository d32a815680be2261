"""A child process that answers requests by lines of JSON: its start, its clock, its messages and its end.

A request is a task with numbered items and a new random token. The child (`Channel` of environments/worker.py) repeats
the token and the number of its item in every message. So code that the child evaluates can answer neither in its place
nor for the next item: a message without them, or more messages than were asked for, end the child.
"""

from __future__ import annotations

import json
import os
import secrets
import select
import signal
import subprocess
import tempfile
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any

from data.environments.worker import LOADING_SECONDS

CHECKOUT = Path(__file__).resolve().parents[1]
MOST_BYTES = 2**30  # of a message: the problems of an environment are one

Event = tuple[int, dict[str, Any]]  # the number of an item, and a message about it


class ChildProcess:
    """A child that `command` starts, in `folder` (the working folder if None), with these environment variables; the
    start may take `start_seconds`.

    `pending` holds the numbers of the items sent and not answered; the first is in progress. A message with "result"
    ends an item. OSError where the command cannot be started.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        folder: Path | None = None,
        variables: Mapping[str, str] | None = None,
        start_seconds: float = LOADING_SECONDS,
    ) -> None:
        self.pending: deque[int] = deque()
        self.is_ready = False
        self.deadline = monotonic() + start_seconds
        self._token, self._request_seconds = "", 0.0
        self._is_trusted = True  # it has said nothing but what it was asked for
        self._pieces: list[bytes] = []  # of an incomplete line
        self._events: deque[Event] = deque()  # read, not yet returned by `next_event`
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  what the child writes before it is ready
        # A new program, not a fork: this process may have threads.
        self._child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            cwd=folder,
            env=variables,
            process_group=0,  # an interrupt from the keyboard reaches the parent only
        )
        assert self._child.stdin is not None and self._child.stdout is not None
        self._input, self._output = self._child.stdin, self._child.stdout
        self.pid, self.output = self._child.pid, self._output.fileno()  # the file descriptor to wait on
        os.set_blocking(self._input.fileno(), False)

    @property
    def is_busy(self) -> bool:
        return bool(self.pending) or not self.is_ready

    @property
    def is_running(self) -> bool:
        return self._child.poll() is None

    def seconds_left(self) -> float:
        """Seconds until the start, or what is in progress, takes too long."""
        return self.deadline - monotonic()

    def send(self, task: str, items: Sequence[Sequence[Any]], seconds: float, numbers: Sequence[int] = (0,)) -> None:
        """Send a request, which may take so many seconds, from the start on. `events` tells of a dead child."""
        self._token, self._request_seconds = secrets.token_hex(16), seconds
        self.pending.extend(numbers)
        self.deadline = monotonic() + seconds if self.is_ready else self.deadline
        request = {"token": self._token, "task": task, "numbers": list(numbers), "items": items}
        data = memoryview((json.dumps(request) + "\n").encode("ascii"))
        with suppress(BrokenPipeError):
            while len(data):
                try:
                    data = data[os.write(self._input.fileno(), data) :]
                except BlockingIOError:
                    if not _wait(self._input.fileno(), select.POLLOUT, self.deadline - monotonic()):
                        return

    def events(self) -> list[Event] | None:
        """Wait for output and return its complete messages; None if the child is dead, or not to be trusted."""
        data = os.read(self.output, 1 << 20)
        if not data or not self._is_trusted:
            return None
        self._pieces.append(data)
        if b"\n" not in data:
            if sum(map(len, self._pieces)) <= MOST_BYTES:
                return []
            self._distrust()
            return None
        *lines, rest = b"".join(self._pieces).split(b"\n")
        self._pieces = [rest]
        events: list[Event] = []
        for line in lines:
            message = self._message(line)
            if message is None:  # what came before counts
                self._distrust()
                break
            if message:
                events.append((self.pending.popleft() if "result" in message else self.pending[0], message))
        return events

    def _distrust(self) -> None:
        self._is_trusted = False
        self._kill_group()

    def _message(self, line: bytes) -> dict[str, Any] | None:
        """A message about the first pending item without its marks, empty for the start; None for anything else."""
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            return None
        if message == {"ready": True} and not self.is_ready:
            self.is_ready = True
            self.deadline = monotonic() + self._request_seconds
            return {}
        if not (self.pending and isinstance(message, dict)):
            return None
        marks = message.pop("token", None), message.pop("number", None)
        return message if marks == (self._token, self.pending[0]) and message else None

    def next_event(self) -> dict[str, Any] | None:
        """Wait for the next message; None if the child is dead, or it has not come in time."""
        while not self._events:
            events = self.events() if _wait(self.output, select.POLLIN, self.seconds_left()) else None
            if events is None:
                return None
            self._events.extend(events)
        return self._events.popleft()[1]

    def startup_error(self) -> str:
        """The last line that the child wrote before it was ready."""
        self._stderr.seek(0)
        lines = self._stderr.read().decode(errors="replace").split("\n")
        return next((line for line in reversed(lines) if line.strip()), "no message")

    def interrupt(self) -> None:
        """Ask the child to end what is in progress."""
        self._child.send_signal(signal.SIGINT)

    def kill(self) -> int:
        """Kill the child immediately, with the programs that it has started. Returns the status with which it ended."""
        if self._output.closed:
            return self._child.wait()
        self._kill_group()
        status = self._child.wait()
        with suppress(BrokenPipeError):  # a request that was not read
            self._input.close()
        self._output.close()  # not read to its end: a program that left the group may hold the other side
        self._stderr.close()
        return status

    def _kill_group(self) -> None:
        with suppress(ProcessLookupError, PermissionError):  # all have ended; macOS refuses a group of ended processes
            os.killpg(self.pid, signal.SIGKILL)

    def stop(self) -> int:
        """Close the child's input, which ends it; kill it if it has not ended after one second."""
        with suppress(BrokenPipeError, subprocess.TimeoutExpired):
            self._input.close()
            self._child.wait(timeout=1.0)
        return self.kill()


def _wait(descriptor: int, event: int, seconds: float) -> bool:
    """Wait until a descriptor can be read or written; false if it takes longer."""
    poll = select.poll()
    poll.register(descriptor, event)
    return bool(poll.poll(min(max(0.0, 1000 * seconds), 2**31 - 1)))


def project_variables() -> dict[str, str]:
    """The environment variables with this project on the module path, for a child in the working folder."""
    path = os.pathsep.join(filter(None, [str(CHECKOUT), os.environ.get("PYTHONPATH", "")]))
    return os.environ | {"PYTHONPATH": path}
