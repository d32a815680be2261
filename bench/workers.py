"""A process that a benchmark asks for one measurement after another: a number goes in, a line of JSON comes back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

_ANSWER = "answer: "


class Worker:
    """A Python script with `arguments`, of the code in `tree`, with so many threads. A context manager."""

    def __init__(self, script: str, arguments: Sequence[str], *, tree: Path, threads: int) -> None:
        env = os.environ | {"OMP_NUM_THREADS": str(threads), "PYTHONPATH": str(tree)}
        self._process = subprocess.Popen(
            [sys.executable, script, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=env,
            cwd=tree,
        )

    def ask(self, number: int) -> dict[str, Any]:
        """The worker's answer to a number. RuntimeError where the process ends."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{number}\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith(_ANSWER):
                answer: dict[str, Any] = json.loads(line.removeprefix(_ANSWER))
                return answer
        raise RuntimeError(f"the process ended with {self._process.wait()}: see above")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def print_answer(answer: dict[str, Any]) -> None:
    """Answer from inside the worker."""
    print(_ANSWER + json.dumps(answer), flush=True)
