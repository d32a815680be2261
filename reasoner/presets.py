"""Presets: settings that suit a kind of model and machine, by dotted key."""

from __future__ import annotations

from collections.abc import Mapping

_OF_ALL = ("algo.name", "algo.group", "algo.beta")  # what a preset says of any algorithm

PRESETS: dict[str, Mapping[str, object]] = {
    # The embedded base on two CPU cores: under ten minutes, where those are slow too.
    "base": {
        "steps": 36,
        "optim.lr": 5e-4,
        "optim.decay_share": 0.4,
        "optim.micro_batch_tokens": 2048,
        "critic.lr": 1e-3,
        "algo.weights": "token",
        "sampling.max_tokens": 288,
        "eval.every": 12,
        "eval.selection_problems": 30,
    },
    # A pretrained model of a few hundred million parameters or less on a CPU: to try the machinery, not to get far.
    "cpu": {
        "steps": 10,
        "data.train": "gsm8k",
        "data.prompts_per_step": 8,
        "algo.group": 4,
        "sampling.max_tokens": 256,
        "optim.micro_batch_tokens": 1024,
        "eval.every": 0,
        "eval.heldout_problems": 0,
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
        "eval.selection": "gsm8k",
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
        "eval.selection": "math",
        "eval.heldout": "math500",
        "eval.heldout_problems": 500,
        "eval.samples": 4,
        "verify.workers": 4,
    },
}


def preset_for(model: str, *, has_gpu: bool) -> str:
    """The preset that a model gets when none is named: its own where there is one."""
    if model == "base":
        return "base"
    own = next((name for name, values in PRESETS.items() if values.get("model") == model), None)
    return own or ("0.5b" if has_gpu else "cpu")


def preset_values(preset: str, algorithm: str | None) -> dict[str, object]:
    """The preset's settings. The parts of an algorithm among them are meant for the preset's own: where another one is
    asked for, its row decides.
    """
    values = dict(PRESETS[preset])
    if algorithm is None or algorithm == values.get("algo.name", "grpo"):
        return values
    return {key: value for key, value in values.items() if not key.startswith("algo.") or key in _OF_ALL}
