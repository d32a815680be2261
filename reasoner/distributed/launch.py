"""Start the processes of a run on this machine by torch.distributed.run (torchrun)."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from reasoner.console import log
from reasoner.runtime import stop_signals

if TYPE_CHECKING:
    from torch.distributed.elastic.multiprocessing.errors import ProcessFailure

_SHUTDOWN_SECONDS = 300  # to finish a step and save after a signal; then torchrun kills


def check_gpus(processes: int) -> None:
    """Raise ValueError for more processes on this machine than GPUs that they can use; without any they use the CPU."""
    import torch

    num_gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if 0 < num_gpus < processes:
        raise ValueError(
            f"{processes} processes on this machine, and {num_gpus} GPU{'s' * (num_gpus > 1)}: each process needs a "
            f"GPU of its own. Start at most {num_gpus}, or hide all GPUs (CUDA_VISIBLE_DEVICES=) to run on the CPU"
        )


def launch(processes: int, arguments: Sequence[str]) -> NoReturn:
    """Run `reasoner` with the arguments as so many processes on this machine, and end with the status of the first that
    fails, or of the signal that ended this one. The processes share the cores, unless OMP_NUM_THREADS is set. What has
    made them fail is printed last.

    ValueError for more processes than GPUs, on a machine that has any.
    """
    check_gpus(processes)
    from torch.distributed import run
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // processes)))
    logging.disable(logging.ERROR)  # torchrun's own lines
    options = [
        "--standalone",
        f"--nproc-per-node={processes}",
        f"--shutdown_timeout={_SHUTDOWN_SECONDS}",
        f"--signals-to-handle={','.join(number.name for number in stop_signals())}",
    ]
    try:
        run.run(run.parse_args([*options, "-m", "reasoner", *arguments]))  # type: ignore[no-untyped-call]
    except SignalException as stop:
        raise SystemExit(128 + int(stop.sigval)) from None
    except ChildFailedError as error:
        if cause := _cause(error.failures.values()):
            log(f"reasoner: error: {cause}")
        status = error.get_first_failure()[1].exitcode
        raise SystemExit(status if status > 0 else 128 - status) from None
    raise SystemExit(0)


def _cause(failures: Iterable[ProcessFailure]) -> str:
    """The error that a process has left, else the signal that has ended one; empty where there is neither."""
    left = [one.error_file_data["message"]["message"] for one in failures if Path(one.error_file).is_file()]
    killed = [f"rank {one.local_rank}: {one.message}" for one in failures if one.exitcode < 0]
    return next(iter(left + killed), "").removeprefix("RankError: ")
