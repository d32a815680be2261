"""A process that makes GRPO steps on a workload when bench/step.py asks for them, ours or TRL's; it calls itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from workloads import Workload, forget_peak

_ANSWER = "answer: "


class Side:
    """The process, seen from outside, a context manager: a number goes in, a line of JSON comes back. `side`: ours or
    trl. `size`: what goes through the model at once, in tokens of completions (ours) or in rows (TRL).
    """

    def __init__(self, side: str, workload: Workload, folder: Path, *, size: int, threads: int) -> None:
        root = Path(__file__).parents[1]
        self._process = subprocess.Popen(
            [sys.executable, __file__, side, json.dumps(asdict(workload)), str(folder), str(size), str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": str(threads), "PYTHONPATH": str(root)},
            cwd=root,
        )

    def ask(self, number: int) -> dict[str, Any]:
        """The step of this number. RuntimeError where the process ends."""
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


def _wait() -> int | None:
    line = sys.stdin.readline()
    return int(line) if line else None


def _answer(answer: dict[str, Any]) -> None:
    print(_ANSWER + json.dumps(answer), flush=True)


def main(side: str, workload: Workload, folder: Path, size: int, threads: int) -> None:
    """The process, from inside."""
    import torch

    torch.set_num_threads(threads)
    if side != "ours":
        from step_trl import work

        work(workload, folder, size, folder / side, _wait, _answer)
        return
    from step_ours import worker

    step = worker(workload, folder, size)
    while (number := _wait()) is not None:
        forget_peak()
        _answer(step(number))


if __name__ == "__main__":
    main(sys.argv[1], Workload(**json.loads(sys.argv[2])), Path(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
