"""The process and its machine: pauses of the garbage collector, and whether there is a GPU."""

from __future__ import annotations

import atexit
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def gc_paused() -> Iterator[None]:
    """Disable the garbage collector in the block, and exclude the objects that exist at its end from later collections.

    Modules are never freed, and scanning the many objects of torch and vLLM costs time. At the end of the process the
    objects are unfrozen: nanobind (under Triton) reports those that are still frozen as leaks on standard error.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        atexit.unregister(gc.unfreeze)
        atexit.register(gc.unfreeze)
        if was_enabled:
            gc.enable()


def has_gpu(devices: Path = Path("/dev")) -> bool:
    """Whether there is a CUDA device, by its device file (`/dev/nvidia0`, ...) and without importing torch."""
    return any(devices.glob("nvidia[0-9]*"))
