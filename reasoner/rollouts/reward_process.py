"""Reward functions of setting reward.functions, in a process of their own: a completion can neither hang nor end a run.

The process is `python -m reasoner.rollouts.reward_process SPEC MEMORY_MIB`. A task is the name of a function, an item
its columns as JSON and the number of completions, a result {"values": [...]} or {"error": text}. The parent keeps the
clock. Values of columns that JSON does not know, such as dates, arrive as text.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from data.child_process import ChildProcess, project_variables
from data.environments.worker import MAX_STRETCH, Channel
from reasoner.console import log
from reasoner.rollouts.reward_functions import RewardFunction, load_reward_functions


class RewardProcess:
    """The functions of a spec, called in a process that starts at the first call; a context manager.

    A call for n completions may take n times `seconds`, and at least MAX_STRETCH times as long as one. A call that
    takes longer, or ends the process, is made again for each completion alone; one that fails alone gets None.
    """

    def __init__(self, spec: str, *, seconds: float, memory_mib: int) -> None:
        self._command = [sys.executable, "-m", "reasoner.rollouts.reward_process", spec, str(memory_mib)]
        self._seconds, self._memory_mib = seconds, memory_mib
        self._child: ChildProcess | None = None

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
        """The values of one call; None where it took too long or ended the process. RuntimeError for a failed start."""
        columns = {key: list(column) for key, column in columns.items()}
        if self._child is None:
            # glibc reserves 64 MiB of address space for each arena, up to 8 arenas for each processor core.
            own = {"OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"}
            self._child = ChildProcess(self._command, variables=project_variables() | own)
        item = (json.dumps(columns, default=_json_value), size)
        self._child.send(name, [item], self._seconds * max(size, MAX_STRETCH))
        if (event := self._child.next_event()) is None:
            is_started, message = self._child.is_ready, self._child.startup_error()
            self._kill()
            if not is_started:
                raise RuntimeError(f"the process of reward.functions does not start: {message}")
            return None
        if "error" in event["result"]:
            raise ValueError(event["result"]["error"])
        values: list[float | None] = event["result"]["values"]
        return values

    def _kill(self) -> None:
        if self._child is not None:
            self._child.kill()
        self._child = None


def serve(spec: str, memory_mib: int) -> None:
    """Call functions until the parent closes standard input. What they print goes nowhere."""
    channel = Channel()
    functions = {function.name: function for function in load_reward_functions(spec)}
    _limit_memory(memory_mib)
    channel.ready()
    for name, (columns, size) in channel.items():
        try:
            channel.send(result={"values": functions[name].values(json.loads(columns), size)})
        except ValueError as error:
            if _is_out_of_memory(error.__cause__):
                os._exit(1)  # as for a completion that takes too long
            channel.send(result={"error": str(error)})


def _is_out_of_memory(error: BaseException | None) -> bool:
    """Whether an error of a function is that of the memory limit; a thread needs memory for its stack."""
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and "start new thread" in str(error))


def _json_value(value: Any) -> Any:
    """A value that JSON does not know: as a list or number where it is one of numpy, else as text."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def _limit_memory(memory_mib: int) -> None:
    """Limit the address space to what is in use now and `memory_mib` beside it."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + memory_mib * 2**20
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
