"""The pool of worker processes that run the calls of tools."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from data.child_process import project_variables
from reasoner.config.schema import ToolsConfig
from reasoner.tools.worker import ENDED, TIME
from reasoner.types import Answer, OnAnswer
from verifiers.worker_pool import WorkerPool
from verifiers.worker_process import WorkerProcess

MEMORY_MIB = 512  # of address space, of a worker and of the interpreter below it
_COMMAND = [sys.executable, "-m", "reasoner.tools.worker"]
_REASONS = {"timed_out": TIME, "refused": "ValueError: the call is too long", "crashed": ENDED}


class ToolPool(WorkerPool):
    """Workers that start when there is a call; a context manager."""

    def __init__(self, cfg: ToolsConfig, *, is_json: bool) -> None:
        command = [*_COMMAND, cfg.names, str(cfg.seconds), str(MEMORY_MIB), "JSON" if is_json else "CODE"]
        # glibc reserves 64 MiB of address space for each arena, up to 8 arenas for each processor core.
        variables = {"PYTHONPATH": project_variables()["PYTHONPATH"], "MALLOC_ARENA_MAX": "2"}
        start = partial(WorkerProcess, command, cfg.seconds, variables=variables)
        super().__init__(start, max(1, min(4, (os.cpu_count() or 1) // 2)), cfg.seconds, preload=False)

    def answers(self, calls: Sequence[str], on_answer: OnAnswer = lambda place, answer: None) -> list[Answer]:
        """The answer of each call, in order. A call that takes too long, or ends its worker, is an error. `on_answer`
        gets each as soon as it is there.
        """
        jobs = [(call,) for call in calls]
        return list(map(_answer, self.run("call", jobs, lambda place, result: on_answer(place, _answer(result)))))


def _answer(result: Mapping[str, Any]) -> Answer:
    if "output" in result:
        return Answer(result["output"], result["is_error"])
    return Answer(_REASONS[str(result["verdict"])], is_error=True)
