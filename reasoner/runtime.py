"""The process and its machine: torch's threads, seed and device, the garbage collector, its GPU."""

from __future__ import annotations

import atexit
import ctypes
import gc
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
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


def stop_signals() -> tuple[signal.Signals, ...]:
    """The signals that ask this process to stop: SIGINT, SIGTERM, and SIGHUP of a terminal that is closed, unless it is
    ignored (nohup).
    """
    is_ignored = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    return (signal.SIGINT, signal.SIGTERM, *([] if is_ignored else [signal.SIGHUP]))


def end_with_parent() -> None:
    """Let Linux send SIGTERM to this process when the one that started it dies."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


def set_environment() -> None:
    """Set what torch reads when it is imported or allocates for the first time, unless the user has set it.

    THP_MEM_ALLOC_ENABLE: on Linux, tensors of 2 MiB or more begin at a page, and use huge pages. More of them then find
    room in memory that others have freed: at 135M parameters an update with LoRA and recomputation takes 1.2 GiB
    instead of 2.2, in the same time and with the same results (bench/update_memory.py).
    """
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")  # no notes on memory binding
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")


def release_free_memory() -> None:
    """Return freed memory between blocks in use to the system, where the C library can (glibc's malloc_trim).

    It takes one to three milliseconds, and pages that are used again are cleared again: for long passes only.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


def set_threads(number: int) -> None:
    """Set the number of torch's threads; 0 leaves it as it is. Torch is imported only for another number."""
    if number:
        import torch

        torch.set_num_threads(number)


def setup_torch(*, threads: int, seed: int) -> torch.device:
    """Set torch's threads (0: leave them), seed, precision and deterministic algorithms; return the device to train on.

    Sums in a fixed order give the same gradient to the last bit. On a GPU some kernels have no such form, and warn; the
    backward pass is stricter (deterministic_kernels).
    """
    set_environment()
    import torch

    set_threads(threads)
    torch.manual_seed(seed)
    set_matmul_precision()
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True, warn_only=torch.cuda.is_available())
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def cuda_context(device: torch.device) -> Callable[[], None] | None:
    """A function that gives another thread this thread's GPU and CUDA stream; None for a device that is no GPU.

    Both belong to a thread, and a new one begins with the first GPU and the default stream. vLLM launches kernels on
    the current GPU, and copies sampled tokens when the stream that it ran on first has done its work.
    """
    if device.type != "cuda":
        return None
    import torch

    stream = torch.cuda.current_stream(device)

    def enter() -> None:
        torch.cuda.set_device(stream.device)
        torch.cuda.set_stream(stream)

    return enter


def set_matmul_precision() -> None:
    """Compute matrix products of float32 on a GPU in float32, not in TF32, sum those of bfloat16 in float32, and leave
    attention to torch's own kernels.

    TF32 has 10 bits of mantissa: engine and trainer would differ by more than rounding. Off is torch's default, which
    NVIDIA's container images change by an environment variable. Sums in bfloat16 are torch's default.

    torch prefers cuDNN's attention on an H100 or H200, but not where deterministic kernels are required: the passes
    before an update would have other kernels than the update, and a ratio other than 1. It also makes a plan for each
    new shape of its inputs, and a sampled token gives them one.
    """
    import torch

    torch.set_float32_matmul_precision("highest")
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.enable_cudnn_sdp(False)


@contextmanager
def deterministic_kernels(is_required: bool) -> Iterator[None]:
    """A block in which torch raises RuntimeError for an operation without a deterministic kernel, instead of a warning.

    On a GPU the backward pass of attention is deterministic only then: with a warning torch takes the faster kernel.
    No effect if not `is_required`. The switch is that of the whole process.
    """
    import torch

    is_warning = torch.is_deterministic_algorithms_warn_only_enabled()
    if not (is_required and is_warning):
        yield
        return
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(True, warn_only=True)


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


_LIBRARIES = 0.04  # share of a GPU's memory: cuBLAS, NCCL and compiled kernels, 1 GB of 24


def free_gpu_share() -> float:
    """Share of the GPU's memory that an engine can have beside what other programs hold; 1 without a GPU."""
    import torch

    if not torch.cuda.is_available():
        return 1.0
    gc.collect()  # what a run of this process has left
    torch.cuda.empty_cache()
    free, total = torch.cuda.mem_get_info()
    return free / total - _LIBRARIES
