"""A process that makes GRPO steps on a workload when it is told to: ours or TRL's. bench/step.py and bench/scale.py use
it, and it calls itself.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from workloads import Workload, forget_peak


class Side:
    """The process, seen from outside. A context manager. `side`: ours, trl, or trl-vllm.

    `size`: what goes through the model at once, in tokens of completions (ours) or in rows (TRL).
    """

    def __init__(self, side: str, workload: Workload, folder: Path, *, size: int, threads: int) -> None:
        command = [sys.executable, __file__, side, json.dumps(asdict(workload)), str(folder), str(size), str(threads)]
        env = os.environ | {"OMP_NUM_THREADS": str(threads), "PYTHONPATH": str(Path(__file__).parents[1])}
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)

    def step(self, number: int) -> dict[str, Any]:
        """What the side tells of the step (step_ours.worker, step_trl.Now). RuntimeError where the process ends."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{number}\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith(_SAID):
                found: dict[str, Any] = json.loads(line.removeprefix(_SAID))
                return found
        raise RuntimeError(f"the process ended with {self._process.wait()}: see above")

    def __enter__(self) -> Side:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


_SAID = "step: "


def _wait() -> int | None:
    line = sys.stdin.readline()
    return int(line) if line else None


def _tell(said: dict[str, object]) -> None:
    print(_SAID + json.dumps(said), flush=True)


def main(side: str, workload: Workload, folder: Path, size: int, threads: int) -> None:
    """The process, from inside."""
    import torch

    torch.set_num_threads(threads)
    if side != "ours":
        from step_trl import work

        work(workload, folder, size, folder / side, _wait, _tell, by_vllm=side == "trl-vllm")
        return
    from step_ours import worker

    step = worker(workload, folder, size)
    while (number := _wait()) is not None:
        forget_peak()
        _tell(step(number))


if __name__ == "__main__":
    main(sys.argv[1], Workload(**json.loads(sys.argv[2])), Path(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
