"""The doctor's finding on memory: whether a run fits, and the settings that make it fit where it does not."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

from transformers.modeling_layers import GradientCheckpointingLayer

from reasoner.config.resolve import to_dict
from reasoner.config.schema import Config
from reasoner.doctor.findings import Finding, Severity
from reasoner.doctor.memory import MemoryEstimate

_MIB = 2**20
_SMALLEST = 256  # smallest micro-batch and completion, in tokens, that are suggested
_LEAST_SHARE = 0.2  # smallest fraction of a GPU's memory that is suggested for the engine
_LORA_RANK = 16  # that is suggested


def memory_finding(estimate: MemoryEstimate, free: int | None) -> Finding:
    """The finding on memory, with settings that fit where these do not. `free`: available bytes; None where unknown."""
    peak = estimate.peak()
    parts = ", ".join(f"{name.replace('_', ' ')} {size / _MIB:,.0f}" for name, size in estimate.parts().items() if size)
    text = f"{peak / _MIB:,.0f} MiB by formula ({parts})"
    if free is None:
        return Finding(Severity.OK, "memory", text)
    where = "GPU" if estimate.device == "cuda" else "machine"
    text += f"; {free / _MIB:,.0f} MiB free on this {where}"
    if not estimate.fits_share():
        share = estimate.cfg.engine.gpu_memory
        text += f"; the fraction {share:g} that vLLM gets does not hold its weights and one response"
        return Finding(Severity.ERROR, "memory", text, f"--engine.gpu_memory {min(1.0, share + 0.2):g}")
    if peak <= free:
        return Finding(Severity.OK, "memory", text)
    fitting = _raise_micro_batches(_smallest(estimate, free), estimate.cfg, free)
    settings = _setting_arguments(estimate.cfg, fitting.cfg)
    if fitting.peak() <= free:
        return Finding(Severity.ERROR, "memory", f"{text}: it does not fit; lower {settings}", settings)
    remainder = (
        f"with {settings} it would still be {fitting.peak() / _MIB:,.0f} MiB" if settings else "no setting helps"
    )
    return Finding(Severity.ERROR, "memory", f"{text}: it does not fit; {remainder}, take a smaller model")


def processes_finding(estimate: MemoryEstimate, free: int | None) -> Finding:
    """The finding on a run of several processes, which is checked as one. On a CPU they share the machine's memory."""
    count = estimate.cfg.processes
    text = f"checked as one process of {count}; `--gpu KIND` predicts {count} GPUs"
    if estimate.device == "cuda":
        return Finding(Severity.OK, "processes", text)
    needed = count * estimate.peak()
    text += f"; on this machine they share the cores and need {needed / _MIB:,.0f} MiB together"
    if free is None or needed <= free:
        return Finding(Severity.OK, "processes", text)
    return Finding(Severity.ERROR, "processes", f"{text}: {free / _MIB:,.0f} MiB are free", "--processes 1")


def _smallest(estimate: MemoryEstimate, free: int) -> MemoryEstimate:
    """Lower one setting after another until the run fits into `free` bytes, or as far as possible."""
    while estimate.peak() > free:
        lower = next((one for one in _lower(estimate) if one.peak() < estimate.peak()), None)
        if lower is None:
            break
        estimate = lower
    return estimate


def _raise_micro_batches(estimate: MemoryEstimate, cfg: Config, free: int) -> MemoryEstimate:
    """Double the micro-batches, up to those of `cfg`, as long as the run fits: later settings may have made room."""
    while (tokens := estimate.cfg.optim.micro_batch_tokens) < cfg.optim.micro_batch_tokens:
        higher = estimate.changed("optim", micro_batch_tokens=min(2 * tokens, cfg.optim.micro_batch_tokens))
        if higher.peak() > free:
            break
        estimate = higher
    return estimate


def _lower(estimate: MemoryEstimate) -> Iterator[MemoryEstimate]:
    """Candidates with one setting lowered a little, in the order of what they change: the gradient's rounding, the
    precision of the engine, the weights that are trained, the objective, the task.
    """
    cfg = estimate.cfg
    tokens = 2 ** ((cfg.optim.micro_batch_tokens - 1).bit_length() - 1)
    if tokens >= _SMALLEST:
        yield estimate.changed("optim", micro_batch_tokens=tokens)
    if cfg.engine.gpu_memory > _LEAST_SHARE:
        smaller = estimate.changed("engine", gpu_memory=max(_LEAST_SHARE, round(cfg.engine.gpu_memory - 0.1, 1)))
        yield from [smaller] if smaller.fits_share() else []
    if any(isinstance(module, GradientCheckpointingLayer) for module in estimate.model.modules()):
        yield estimate.changed("optim", recompute=True)
    if cfg.engine.dtype == "float32":
        yield estimate.changed("engine", dtype="bfloat16")
    if cfg.lora.rank or (not cfg.algo.ref_sync_steps and find_spec("peft") is not None):
        lora = {"rank": cfg.lora.rank or _LORA_RANK, "base_dtype": cfg.optim.dtype}  # frozen, as the passes cast it
        yield estimate.changed("lora", **lora)
    if cfg.algo.beta:
        yield estimate.changed("algo", beta=0.0)
    if cfg.sampling.max_tokens >= 2 * _SMALLEST:
        yield estimate.changed("sampling", max_tokens=cfg.sampling.max_tokens // 2)


def _setting_arguments(cfg: Config, lowered: Config) -> str:
    """The settings that differ, as command-line arguments."""
    before, after = to_dict(cfg), to_dict(lowered)
    values = {key: value for key, value in after.items() if value != before[key]}
    texts = {key: f"{value:g}" if isinstance(value, float) else str(value).lower() for key, value in values.items()}
    return " ".join(f"--{key} {text}" for key, text in texts.items())
