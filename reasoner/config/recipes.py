"""The table of presets: for each, the model that it is computed for and a recipe.

A recipe is the settings that decide the result: data, steps, lengths, learning rate, algorithm. What decides whether
the run fits into a machine's memory is computed from the model's shape by reasoner.doctor.preset_fit (`make docs`), and
stored in preset_machines.toml.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from data.related_sets import VALIDATION

Values = Mapping[str, object]  # settings by dotted key


@dataclass(frozen=True, slots=True)
class Recipe:
    """A row of the table."""

    about: str  # a phrase for listings
    models: tuple[str, ...]  # names on the hub; the first one is trained where no model is named
    largest: int  # most parameters of a local model that gets this preset
    shape: Values  # of the model, as in its config.json; model_type is that of transformers
    gpu: Values | None = None  # settings on a GPU of any size, without those that preset_machines.toml has
    cpu: Values | None = None  # settings on a CPU; None: too large for one
    other_algorithms: Values = field(default_factory=dict)  # what differs where --algo.name names another one

    @property
    def has_variants(self) -> bool:
        """Whether the settings depend on the machine."""
        return self.gpu != self.cpu


# The embedded base on two CPU cores: six to ten minutes. Four smaller updates a step end higher than one at 5e-4, which
# the tables of algorithms and settings were measured with (docs/RESULTS.md, "What moves the result").
_BASE = {
    "steps": 60,
    "optim.lr": 2e-4,
    "algo.minibatches": 4,
    "optim.decay_share": 0.4,
    "optim.micro_batch_tokens": 2048,
    "critic.lr": 1e-3,
    "algo.loss_aggregation": "token",
    "algo.filter_zero_advantages": True,  # two thirds of the groups at the end: a third of the time of a step
    "sampling.max_tokens": 288,
    "validation.interval": 12,
    "validation.problems": 30,
}
# One calculation in plain words, after three worked examples: SmolLM2-135M-Instruct solves 9 % of these problems before
# training, and 1 % of the generated ones (docs/RESULTS.md). A response is one line.
_ONE_STEP = {
    "steps": 60,
    "data.train": "one-step",
    "data.prompts_per_step": 16,
    "prompt.style": "few-shot",
    "sampling.max_tokens": 48,
    "optim.lr": 1e-5,
    "validation.data": "one-step:validation",
    "validation.samples": 4,
    "eval.heldout": "one-step:heldout",
    "eval.heldout_problems": 400,
    "eval.samples": 4,
}
# A larger model on a CPU, with generated problems (no download). The learning rate suits some tens of steps.
_LARGE_ON_CPU = {
    "steps": 20, "data.prompts_per_step": 4, "sampling.max_tokens": 256, "optim.lr": 3e-6,
    "optim.micro_batch_tokens": 512, "validation.interval": 10, "validation.problems": 10, "validation.samples": 4,
    "eval.heldout_problems": 20, "eval.samples": 4, "run.save_interval": 10,
}  # fmt: skip
_NO_REFERENCE = {"algo.beta": 0.0}  # neither its memory nor its passes
_GSM8K = _NO_REFERENCE | {
    "steps": 200,
    "data.train": f"gsm8k?without_sample={VALIDATION}",
    "data.prompts_per_step": 64,
    "sampling.max_tokens": 1024,
    "validation.data": f"gsm8k?sample={VALIDATION}",
    "eval.heldout": "gsm8k:test",
    "eval.heldout_problems": 400,
    "eval.samples": 4,
    "verify.workers": 4,
}
_MATH = _NO_REFERENCE | {
    "steps": 300,
    "data.train": f"math?without_sample={VALIDATION}",
    "data.prompts_per_step": 128,
    "sampling.max_tokens": 2048,
    "validation.data": f"math?sample={VALIDATION}",
    "eval.heldout": "math500",
    "eval.heldout_problems": 500,
    "eval.samples": 4,
    "verify.workers": 4,
}

_QWEN2 = {"model_type": "qwen2", "num_key_value_heads": 2, "vocab_size": 151_936, "tie_word_embeddings": True}
_QWEN2_HALF = _QWEN2 | {
    "hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24, "num_attention_heads": 14,
    "max_position_embeddings": 32_768,
}  # fmt: skip
_QWEN2_1_5 = _QWEN2 | {
    "hidden_size": 1536, "intermediate_size": 8960, "num_hidden_layers": 28, "num_attention_heads": 12,
    "max_position_embeddings": 131_072,
}  # fmt: skip
_QWEN2_7 = {
    "model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18_944, "num_hidden_layers": 28,
    "num_attention_heads": 28, "num_key_value_heads": 4, "vocab_size": 152_064, "tie_word_embeddings": False,
    "max_position_embeddings": 131_072,
}  # fmt: skip
_SMOLLM = {
    "model_type": "llama", "hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30,
    "num_attention_heads": 9, "num_key_value_heads": 3, "vocab_size": 49_152, "tie_word_embeddings": True,
    "max_position_embeddings": 8192,
}  # fmt: skip
_EMBEDDED = {
    "model_type": "llama", "hidden_size": 160, "intermediate_size": 480, "num_hidden_layers": 4,
    "num_attention_heads": 5, "num_key_value_heads": 5, "head_dim": 32, "vocab_size": 512, "attention_bias": True,
    "tie_word_embeddings": True, "max_position_embeddings": 512,
}  # fmt: skip

# From the smallest model to the largest: a local model gets the first row that is large enough.
RECIPES: dict[str, Recipe] = {
    "base": Recipe(
        "the embedded base, and models of up to 30M parameters",
        models=("base",), largest=30_000_000, shape=_EMBEDDED, gpu=_BASE, cpu=_BASE,
        other_algorithms={"optim.lr": 5e-4},
    ),
    "smollm-135m": Recipe(
        "SmolLM2-135M on problems of one calculation",
        models=("HuggingFaceTB/SmolLM2-135M-Instruct", "HuggingFaceTB/SmolLM2-135M"),
        largest=134_515_008, shape=_SMOLLM, gpu=_NO_REFERENCE | _ONE_STEP,
        cpu=_ONE_STEP | {"optim.micro_batch_tokens": 1024, "run.save_interval": 5},
    ),
    "qwen2.5-0.5b": Recipe(
        "Qwen2.5-0.5B on GSM8K; on a CPU on generated problems",
        models=("Qwen/Qwen2.5-0.5B", "Qwen/Qwen2.5-0.5B-Instruct"),
        largest=494_032_768, shape=_QWEN2_HALF, gpu=_GSM8K, cpu=_LARGE_ON_CPU,
    ),
    "qwen2.5-1.5b": Recipe(
        "Qwen2.5-1.5B on MATH",
        models=("Qwen/Qwen2.5-1.5B", "Qwen/Qwen2.5-1.5B-Instruct"),
        largest=1_543_714_304, shape=_QWEN2_1_5, gpu=_MATH,
    ),
    "qwen2.5-1.5b-gsm8k": Recipe(
        "Qwen2.5-1.5B on GSM8K, only where it is named",
        models=("Qwen/Qwen2.5-1.5B", "Qwen/Qwen2.5-1.5B-Instruct"),
        largest=1_543_714_304, shape=_QWEN2_1_5, gpu=_GSM8K,
    ),
    "qwen2.5-math-1.5b": Recipe(
        "Qwen2.5-Math-1.5B on MATH with Dr. GRPO",
        models=("Qwen/Qwen2.5-Math-1.5B", "Qwen/Qwen2.5-Math-1.5B-Instruct"),
        largest=1_543_714_304, shape=_QWEN2_1_5 | {"max_position_embeddings": 4096},
        gpu=_MATH | {"sampling.max_tokens": 3000, "algo.name": "dr_grpo"},
    ),
    "qwen2.5-7b": Recipe(
        "Qwen2.5-7B on MATH with LoRA",
        models=("Qwen/Qwen2.5-7B", "Qwen/Qwen2.5-7B-Instruct", "Qwen/Qwen2.5-Math-7B"),
        largest=7_615_616_512, shape=_QWEN2_7,
        gpu=_MATH | {"lora.rank": 32, "lora.base_dtype": "bfloat16", "optim.lr": 1e-5},
    ),
}  # fmt: skip
