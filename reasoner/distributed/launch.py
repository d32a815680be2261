"""Start the processes of a run on this machine by torch.distributed.run (torchrun)."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

_SHUTDOWN_SECONDS = 300  # to finish a step and save after a signal; then torchrun kills


def launch_command(processes: int, arguments: Sequence[str]) -> list[str]:
    """The command that runs `reasoner` with the arguments as so many processes on this machine."""
    options = ["--standalone", f"--nproc-per-node={processes}", f"--shutdown_timeout={_SHUTDOWN_SECONDS}"]
    return [sys.executable, "-m", "torch.distributed.run", *options, "-m", "reasoner", *arguments]


def launch(processes: int, arguments: Sequence[str]) -> NoReturn:
    """Replace this process by torchrun. The processes share the cores, unless OMP_NUM_THREADS is set."""
    threads = max(1, (os.cpu_count() or 1) // processes)
    environment = {"OMP_NUM_THREADS": str(threads), **os.environ}
    command = launch_command(processes, arguments)
    sys.stdout.flush()
    os.execve(command[0], command, environment)
