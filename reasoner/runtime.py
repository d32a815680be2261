"""Pausing Python's garbage collector during imports."""

from __future__ import annotations

import atexit
import gc
from collections.abc import Iterator
from contextlib import contextmanager


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
