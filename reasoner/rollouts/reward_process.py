"""Reward functions of setting reward.functions, in a process of their own: a completion can neither hang nor end a run.

The process is `python -m reasoner.rollouts.reward_process SPEC MEMORY_MIB`. Input: a JSON line [function name, columns,
number of completions] for each call. Output: a JSON line for the start and for each call, {"values": [...]} or
{"error": text}. The parent keeps the clock. Values of columns that JSON does not know, such as dates, arrive as text.
"""

from __future__ import annotations

import json
import os
import resource
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from data.environments.worker import LOADING_SECONDS, MAX_STRETCH
from reasoner.console import log
from reasoner.rollouts.reward_functions import RewardFunction
from reasoner.rollouts.reward_sources import load_reward_functions
from verifiers.worker_process import kill_group

CHECKOUT = Path(__file__).resolve().parents[2]


class RewardProcess:
    """The functions of a spec, called in a process that starts at the first call; a context manager.

    A call for n completions may take n times `seconds`, and at least MAX_STRETCH times as long as one. A call that
    takes longer, or ends the process, is made again for each completion alone; one that fails alone gets None.
    """

    def __init__(self, spec: str, *, seconds: float, memory_mib: int) -> None:
        self._command = [sys.executable, "-m", "reasoner.rollouts.reward_process", spec, str(memory_mib)]
        self._seconds, self._memory_mib = seconds, memory_mib
        self._child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> RewardProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self._kill()

    def values(self, function: RewardFunction, columns: Mapping[str, Sequence[Any]], size: int) -> list[float | None]:
        """The values of a function for `size` completions. ValueError for a function that fails."""
        values = self._call(function.name, columns, size)
        if values is not None:
            return values
        result: list[float | None] = []
        lost = []
        for place in range(size):
            alone = self._call(function.name, {name: column[place : place + 1] for name, column in columns.items()}, 1)
            result += [None] if alone is None else alone
            lost += [place] if alone is None else []
        if lost:
            seconds = f"verify.seconds x {MAX_STRETCH} = {MAX_STRETCH * self._seconds:g}"
            log(
                f"reward function {function.name} did not finish for {len(lost)} of {size} completions within its "
                f"limits ({seconds}, verify.memory_mib = {self._memory_mib}); they get no value. The first is of "
                f"problem {columns['id'][lost[0]]!r}"
            )
        return result

    def _call(self, name: str, columns: Mapping[str, Sequence[Any]], size: int) -> list[float | None] | None:
        """The values of one call; None where it took too long or ended the process."""
        call = [name, {key: list(column) for key, column in columns.items()}, size]
        line = json.dumps(call, default=_json_value).encode() + b"\n"
        if self._child is None:
            self._start()
        deadline = time.monotonic() + self._seconds * max(size, MAX_STRETCH)
        assert self._child is not None and self._child.stdin is not None
        try:
            self._child.stdin.write(line)  # read at once, before the function is called
            self._child.stdin.flush()
            reply = self._reply(deadline)
        except BrokenPipeError:
            reply = None
        if reply is None:
            self._kill()
            return None
        if "error" in reply:
            raise ValueError(reply["error"])
        values: list[float | None] = reply["values"]
        return values

    def _start(self) -> None:
        """Start the process and wait for its functions. RuntimeError where they cannot be loaded there."""
        path = os.pathsep.join(filter(None, [str(CHECKOUT), os.environ.get("PYTHONPATH", "")]))
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  what the child writes, prints of functions included
        self._child = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            # glibc reserves 64 MiB of address space for each arena, up to 8 arenas for each processor core.
            env=os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"},
            process_group=0,  # an interrupt from the keyboard reaches the parent only
        )
        if self._reply(time.monotonic() + LOADING_SECONDS) is None:
            self._errors.seek(0)
            lines = self._errors.read().decode(errors="replace").strip().splitlines()
            self._kill()
            raise RuntimeError(
                f"the process of reward.functions does not start: {lines[-1] if lines else 'no message'}"
            )

    def _reply(self, deadline: float) -> dict[str, Any] | None:
        """The next line of the child; None where it has not come in time or the child has ended."""
        assert self._child is not None and self._child.stdout is not None
        pieces: list[bytes] = []
        while not (pieces and pieces[-1].endswith(b"\n")):
            ready = select.select([self._child.stdout], [], [], max(0.0, deadline - time.monotonic()))[0]
            data = os.read(self._child.stdout.fileno(), 1 << 20) if ready else b""
            if not data:
                return None
            pieces.append(data)
        reply: dict[str, Any] = json.loads(b"".join(pieces))
        return reply

    def _kill(self) -> None:
        if self._child is None:
            return
        kill_group(self._child)
        assert self._child.stdin is not None and self._child.stdout is not None
        with suppress(BrokenPipeError):  # a call that was not read
            self._child.stdin.close()
        self._child.stdout.close()  # not read to its end: a program that left the group may hold the other side
        self._errors.close()
        self._child = None


def serve(spec: str, memory_mib: int) -> None:
    """Call functions until the parent closes standard input. What they print goes to standard error."""
    channel, calls = os.fdopen(os.dup(1), "w", encoding="ascii"), sys.stdin.buffer
    os.dup2(2, 1)
    functions = {function.name: function for function in load_reward_functions(spec)}
    _limit_memory(memory_mib)
    _send(channel, {})
    for line in calls:
        name, columns, size = json.loads(line)
        try:
            _send(channel, {"values": functions[name].values(columns, size)})
        except ValueError as error:
            if _is_out_of_memory(error.__cause__):
                os._exit(1)  # as for a completion that takes too long
            _send(channel, {"error": str(error)})


def _is_out_of_memory(error: BaseException | None) -> bool:
    """Whether an error of a function is that of the memory limit; a thread needs memory for its stack."""
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and "start new thread" in str(error))


def _json_value(value: Any) -> Any:
    """A value that JSON does not know: as a list or number where it is one of numpy, else as text."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def _send(channel: Any, message: Mapping[str, object]) -> None:
    channel.write(json.dumps(message) + "\n")
    channel.flush()


def _limit_memory(memory_mib: int) -> None:
    """Limit the address space to what is in use now and `memory_mib` beside it."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + memory_mib * 2**20
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
