"""Presets: settings for a kind of model and machine, by dotted key."""

from __future__ import annotations

from collections.abc import Mapping

_ANY_ALGORITHM = ("algo.name", "algo.group_size", "algo.beta")  # a preset's values of these apply to any algorithm

PRESETS: dict[str, Mapping[str, object]] = {
    # The embedded base on two CPU cores: under ten minutes, even on slow ones.
    "base": {
        "steps": 36,
        "optim.lr": 5e-4,
        "optim.decay_share": 0.4,
        "optim.micro_batch_tokens": 2048,
        "critic.lr": 1e-3,
        "algo.loss_aggregation": "token",
        "sampling.max_tokens": 288,
        "validation.interval": 12,
        "validation.problems": 30,
    },
    # A pretrained model of up to 400 million parameters on a CPU, with generated problems (no download) that it can
    # learn from. The learning rate suits some tens of steps.
    "cpu": {
        "steps": 40,
        "data.prompts_per_step": 8,
        "sampling.max_tokens": 256,
        "optim.lr": 1e-5,
        "optim.micro_batch_tokens": 1024,
        "validation.interval": 10,
        "validation.problems": 20,
        "validation.samples": 4,
        "eval.heldout_problems": 40,
        "eval.samples": 4,
        "run.save_interval": 10,
    },
    # A larger model on a CPU: fewer completions and a smaller learning rate.
    "cpu-large": {
        "steps": 20,
        "data.prompts_per_step": 4,
        "sampling.max_tokens": 256,
        "optim.lr": 3e-6,
        "optim.micro_batch_tokens": 512,
        "validation.interval": 10,
        "validation.problems": 10,
        "validation.samples": 4,
        "eval.heldout_problems": 20,
        "eval.samples": 4,
        "run.save_interval": 10,
    },
    # 0.5B parameters on one GPU of 24 GB or more.
    "0.5b": {
        "model": "Qwen/Qwen2.5-0.5B",
        "steps": 200,
        "data.train": "gsm8k",
        "data.prompts_per_step": 64,
        "sampling.max_tokens": 1024,
        "optim.dtype": "bfloat16",
        "optim.micro_batch_tokens": 2048,
        "engine.dtype": "bfloat16",
        "validation.data": "gsm8k",
        "eval.heldout": "gsm8k:test",
        "eval.heldout_problems": 400,
        "eval.samples": 4,
        "verify.workers": 4,
    },
    # 1.5B parameters on one GPU of 80 GB.
    "1.5b": {
        "model": "Qwen/Qwen2.5-Math-1.5B",
        "steps": 300,
        "data.train": "math",
        "data.prompts_per_step": 128,
        "sampling.max_tokens": 3000,
        "algo.name": "dr_grpo",
        "algo.beta": 0.0,
        "optim.dtype": "bfloat16",
        "optim.micro_batch_tokens": 4096,
        "engine.dtype": "bfloat16",
        "validation.data": "math",
        "eval.heldout": "math500",
        "eval.heldout_problems": 500,
        "eval.samples": 4,
        "verify.workers": 4,
    },
}


PRESET_DESCRIPTIONS = {
    "base": "the embedded base, and models of up to 30M parameters",
    "cpu": "a local model of up to 400M parameters on a CPU",
    "cpu-large": "a larger model on a CPU",
    "0.5b": "Qwen2.5-0.5B, or a model of up to 800M parameters, on a GPU of 24 GB",
    "1.5b": "Qwen2.5-Math-1.5B, or a larger model, on a GPU of 80 GB",
}

# The largest number of parameters that a preset is chosen for.
_ON_CPU = {30_000_000: "base", 400_000_000: "cpu"}
_ON_GPU = {30_000_000: "base", 800_000_000: "0.5b"}


def preset_for(model: str, parameters: int | None, *, has_gpu: bool) -> tuple[str, str]:
    """Choose a preset for a model: (its name, the reason). A model that a preset names gets that one, any other one a
    preset by its size and the machine. `parameters` is None where their number is not known.
    """
    if model == "base":
        return "base", "the embedded base has its own preset"
    machine = "there is a GPU" if has_gpu else "there is no GPU"
    own = next((name for name, values in PRESETS.items() if values.get("model") == model), None)
    if own is not None:
        return (own if has_gpu else "cpu-large"), f"{model} on a GPU has its own preset, and {machine}"
    if parameters is None:
        name = "0.5b" if has_gpu else "cpu"
        return name, f"the size of {model} is not known before it is downloaded, and {machine}"
    sizes, largest = (_ON_GPU, "1.5b") if has_gpu else (_ON_CPU, "cpu-large")
    name = next((name for most, name in sizes.items() if parameters <= most), largest)
    return name, f"{model} has {parameters / 1e6:,.1f}M parameters, and {machine}"


def preset_values(preset: str, algorithm: str | None) -> dict[str, object]:
    """The preset's settings for an algorithm (None: the preset's own). Another algorithm keeps its own parts: those of
    the preset are left out.
    """
    values = dict(PRESETS[preset])
    if algorithm is None or algorithm == values.get("algo.name", "grpo"):
        return values
    return {key: value for key, value in values.items() if not key.startswith("algo.") or key in _ANY_ALGORITHM}
