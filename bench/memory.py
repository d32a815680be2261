"""Memory of a gradient, by the doctor's formula and measured: `python bench/memory.py`. Each shape, precision and way
in a process of its own, whose resident memory is followed by the kernel. Linux. Prints a table in Markdown.

Measured: the most that the pass of one micro-batch and of its prompts, forth and back, adds to weights and gradients.
With --lora: the 30M model with an adapter of rank 16, its frozen weights in float32 and bfloat16, and its weights.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import torch
from runs import answer_of
from tables import table
from transformers import AutoModelForCausalLM, LlamaConfig, PreTrainedConfig, Qwen2Config, Qwen3Config
from workloads import forget_peak, peak, resident

from reasoner.config.algorithm import AlgoConfig
from reasoner.config.learning import LoraConfig, OptimConfig
from reasoner.config.schema import Config, DataConfig, SamplingConfig
from reasoner.doctor.memory import MemoryEstimate
from reasoner.models.frozen_weights import hold_in_bfloat16
from reasoner.models.loading import load_tokenizer
from reasoner.models.lora import add_adapter, trained_parameters
from reasoner.models.resolve import resolve_model
from reasoner.rl.algorithms import resolve_algorithm
from reasoner.rl.batch import Batch
from reasoner.rl.token_stats import TokenStats
from reasoner.trainer.trainer import Trainer

# Widths of real models, fewer layers; the last number is the vocabulary. SIZES are whole models.
SHAPES: dict[str, tuple[type[PreTrainedConfig], tuple[int, int, int, int, int, int]]] = {
    "embedded base": (Qwen2Config, (256, 768, 4, 2, 6, 512)),
    "embedded base, 2 layers": (Qwen2Config, (256, 768, 4, 2, 2, 512)),
    "SmolLM2-135M, 6 layers": (LlamaConfig, (576, 1536, 9, 3, 6, 49152)),
    "Qwen2.5-0.5B, 2 layers": (Qwen2Config, (896, 4864, 14, 2, 2, 20000)),
    "Qwen2.5-0.5B, 4 layers": (Qwen2Config, (896, 4864, 14, 2, 4, 20000)),
    "Qwen2.5-1.5B, 3 layers": (Qwen2Config, (1536, 8960, 12, 2, 3, 20000)),
    "Qwen3-0.6B, 4 layers": (Qwen3Config, (1024, 3072, 16, 8, 4, 20000)),
}
SIZES: dict[str, tuple[type[PreTrainedConfig], tuple[int, int, int, int, int, int]]] = {
    "5M": (Qwen2Config, (256, 768, 4, 2, 6, 2048)),
    "30M": (LlamaConfig, (384, 1024, 6, 2, 14, 16384)),
    "135M": (LlamaConfig, (576, 1536, 9, 3, 30, 49152)),
}
WAYS = ("stored", "recomputed")
NAMES = (
    "hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads", "num_hidden_layers", "vocab_size",
)  # fmt: skip
PROMPTS, GROUP, PROMPT, RESPONSE = 2, 8, 60, 80  # the last two in tokens


def measure(shape: str, dtype: str, way: str = "stored", base_dtype: str = "") -> tuple[int, int, int, int]:
    """Bytes (predicted, measured) of the passes and of the weights; with `base_dtype` of a model with an adapter."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    config = _config(shape, max_position_embeddings=1024)
    import_module("peft" if base_dtype else "torch")  # before resident memory is read
    empty = resident()
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    lora = LoraConfig(rank=16, base_dtype=base_dtype) if base_dtype else LoraConfig()
    if base_dtype == "bfloat16":
        hold_in_bfloat16(model)
    tokens = PROMPTS * GROUP * RESPONSE
    cfg = Config(
        data=DataConfig(prompts_per_step=PROMPTS),
        sampling=SamplingConfig(max_tokens=RESPONSE),
        algo=AlgoConfig(group_size=GROUP, beta=0.0),
        optim=OptimConfig(dtype=dtype, micro_batch_tokens=tokens, recompute=way == "recomputed"),
        lora=lora,
    )
    algorithm = resolve_algorithm(cfg.algo)
    estimate = MemoryEstimate(model, algorithm, cfg, PROMPT, "cpu", 0)
    predicted, weights = estimate.passes_peak(), estimate.parts()["weights"]
    if lora.rank:
        add_adapter(model, lora, seed=0)
    held = resident() - empty
    trainer = Trainer(model, None, algorithm, cfg)
    batch = batch_of(PROMPTS, GROUP, PROMPT, RESPONSE, config.vocab_size)
    for _, parameter in trained_parameters(model):
        parameter.grad = torch.zeros_like(parameter)
    _add_gradient(trainer, batch.rows(torch.arange(2)))  # threads, kernels and their buffers
    before = resident()
    forget_peak()
    _add_gradient(trainer, batch)
    measured = peak() - before
    return predicted, measured, weights, held


def _add_gradient(trainer: Trainer, batch: Batch) -> None:
    for prompts, rows in trainer.passes.gradient_microbatches(batch):
        trainer.policy_loss.of_microbatch(TokenStats(), prompts, rows).backward()


def batch_of(prompts: int, group: int, prompt: int, response: int, vocabulary: int) -> Batch:
    """Random tokens; every second response rewarded. Prompts of several lengths: attention has a mask, as in a run."""
    rows = prompts * group
    return Batch(
        prompt_ids=torch.randint(2, vocabulary, (prompts, prompt)),
        prompt_lengths=prompt - torch.arange(prompts) % 4,
        prompt_of=torch.arange(prompts).repeat_interleave(group),
        completion_ids=torch.randint(2, vocabulary, (rows, response)),
        lengths=torch.full((rows,), response),
        missing_eos=torch.zeros(rows, dtype=torch.bool),
        row_index=torch.arange(rows),
        rewards=(torch.arange(rows) % 2).float(),
        correct=torch.arange(rows) % 2 == 1,
        sampler_logprobs=torch.full((rows, response), -5.0),
        advantages=torch.randn(rows, 1).expand(rows, response).contiguous(),
        weights=torch.ones(rows, response),
    )


def _config(shape: str, **others: Any) -> PreTrainedConfig:
    kind, sizes = (SHAPES | SIZES)[shape]
    return kind(**dict(zip(NAMES, sizes, strict=True)), tie_word_embeddings=True, **others)


def save_model(size: str, folder: Path) -> None:
    """Save a model of random weights of one of SIZES, with the embedded base's tokenizer."""
    torch.manual_seed(0)
    config = _config(size, max_position_embeddings=16_384, bos_token_id=None, eos_token_id=0)
    AutoModelForCausalLM.from_config(config, dtype=torch.float32).save_pretrained(folder)
    load_tokenizer(resolve_model("base", runs=Path("runs"))).save_pretrained(folder)


def main() -> None:
    arguments = sys.argv[1:]
    if len(arguments) > 1:
        print(json.dumps(measure(*arguments)))
        return
    if arguments == ["--lora"]:
        rows = []
        for base_dtype, way in product(("float32", "bfloat16"), WAYS):
            sizes = _in_new_process("30M", "bfloat16", way, base_dtype)
            passes, measured, weights, held = (f"{size / 2**20:,.0f}" for size in sizes)
            rows.append([base_dtype, way, weights, held, passes, measured])
        heads = ["weights, MiB: predicted", "measured", "pass, MiB: predicted", "measured"]
        print(table(["frozen weights", "activations", *heads], rows, texts=2), end="")
        return
    rows = []
    for shape, way, dtype in product(SHAPES | SIZES, WAYS, ("float32", "bfloat16")):
        predicted, measured, *_ = _in_new_process(shape, dtype, way)
        sizes = [f"{predicted / 2**20:,.0f}", f"{measured / 2**20:,.0f}", f"{predicted / measured:.2f}"]
        rows.append([shape, dtype, way, *sizes])
    heads = ["model", "precision", "activations", "predicted, MiB", "measured, MiB", "ratio"]
    print(table(heads, rows, texts=3), end="")


def _in_new_process(*arguments: str) -> list[int]:
    """Run measure() in a process in which whatever is freed goes back to the system: what is resident is in use."""
    at_once = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
    sizes: list[int] = answer_of(__file__, *arguments, environment=at_once)
    return sizes


if __name__ == "__main__":
    main()
