"""Python's cycle collector, kept out of the way of imports."""

from __future__ import annotations

import atexit
import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def asleep() -> Iterator[None]:
    """No cycles are looked for inside, nor afterwards among what was there at the end: modules are never freed, and
    those of torch and vLLM are many.

    At the end of the process they are collected after all: what is still frozen then, nanobind (under Triton) reports
    as leaked on standard error.
    """
    was_awake = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        atexit.unregister(gc.unfreeze)
        atexit.register(gc.unfreeze)
        if was_awake:
            gc.enable()
