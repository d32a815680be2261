"""The process and its machine: torch's threads, seed and device, the garbage collector, its GPU."""

from __future__ import annotations

import atexit
import gc
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


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


def setup_torch(*, threads: int, seed: int) -> torch.device:
    """Set torch's threads (0: leave them), seed and deterministic algorithms; return the device to train on.

    Sums in a fixed order give the same gradient to the last bit. Some GPU kernels have no such form, and warn.
    """
    import torch

    if threads:
        torch.set_num_threads(threads)
    torch.manual_seed(seed)
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True, warn_only=torch.cuda.is_available())
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


_WSL_DRIVER = Path("/usr/lib/wsl/lib/libcuda.so.1")


def has_gpu(devices: Path = Path("/dev"), wsl_driver: Path = _WSL_DRIVER) -> bool:
    """Whether there is a CUDA device, without importing torch: by its device file (`/dev/nvidia0`, ...), or by the
    driver that Windows lends to its Linux subsystem, which has no such file. No where CUDA_VISIBLE_DEVICES hides all.
    """
    if os.environ.get("CUDA_VISIBLE_DEVICES", "0").strip() in ("", "-1", "NoDevFiles"):
        return False
    return any(devices.glob("nvidia[0-9]*")) or wsl_driver.exists()


_MIB = 2**20


def gpu_memory(program: str = "nvidia-smi", devices: Path = Path("/dev")) -> int | None:
    """Bytes of the memory of the GPU that a run would use, without importing torch: 0 without a GPU, None where the
    driver's program does not say. The first device of CUDA_VISIBLE_DEVICES counts; a part of a GPU (MIG) is unknown.
    """
    if not has_gpu(devices):
        return 0
    device = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip()
    query = [program, "--query-gpu=memory.total", "--format=csv,noheader,nounits", f"--id={device}"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, timeout=30, check=True)
        return int(done.stdout.split()[0]) * _MIB
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return None
