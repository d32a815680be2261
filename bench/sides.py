"""A process that makes GRPO steps on a workload when it is told to: ours or TRL's. bench/step.py and bench/scale.py use
it, and it calls itself.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

from workers import Worker, print_answer
from workloads import Workload, forget_peak


class Side(Worker):
    """The process, seen from outside. `side`: ours, trl, or trl-vllm. It is asked for steps by their numbers.

    `size`: what goes through the model at once, in tokens of completions (ours) or in rows (TRL).
    """

    def __init__(self, side: str, workload: Workload, folder: Path, *, size: int, threads: int) -> None:
        arguments = [side, json.dumps(asdict(workload)), str(folder), str(size), str(threads)]
        super().__init__(__file__, arguments, tree=Path(__file__).parents[1], threads=threads)


def _wait() -> int | None:
    line = sys.stdin.readline()
    return int(line) if line else None


def main(side: str, workload: Workload, folder: Path, size: int, threads: int) -> None:
    """The process, from inside."""
    import torch

    torch.set_num_threads(threads)
    if side != "ours":
        from step_trl import work

        work(workload, folder, size, folder / side, _wait, print_answer, by_vllm=side == "trl-vllm")
        return
    from step_ours import worker

    step = worker(workload, folder, size)
    while (number := _wait()) is not None:
        forget_peak()
        print_answer(step(number))


if __name__ == "__main__":
    main(sys.argv[1], Workload(**json.loads(sys.argv[2])), Path(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
