"""Python's cycle collector, kept out of the way of imports."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def asleep() -> Iterator[None]:
    """No cycles are looked for inside, nor afterwards among what was there at the end: modules are never freed, and
    those of torch and vLLM are many.
    """
    was_awake = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_awake:
            gc.enable()
