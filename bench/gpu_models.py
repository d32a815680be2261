"""The parts of bench/gpu.py that use a model without a run: parity, learning and sampling."""

from __future__ import annotations

import gc
import json
import statistics
import traceback
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import torch
from gpu import missing
from gpu_rows import Sizes, SkipPart, clock, device, row
from memory import batch_of
from transformers import Qwen2Config, Qwen2ForCausalLM

from reasoner.config.resolve import resolve, settings
from reasoner.config.schema import Config
from reasoner.models.loading import load_policy, load_tokenizer
from reasoner.models.resolve import resolve_model
from reasoner.rl.algorithms import resolve_algorithm
from reasoner.rl.microbatches import compute_precision
from reasoner.runtime import setup_torch
from reasoner.trainer.train import train_step

# Hidden and intermediate size, query and key heads, layers of Qwen2.5; the vocabulary of both is VOCABULARY.
SHAPES = {"0.5B": (896, 4864, 14, 2, 24), "1.5B": (1536, 8960, 12, 2, 28)}
VOCABULARY = 151_936
LIMITS = {"float32": 0.05, "bfloat16": 3.0}  # nats; a larger difference of engine and trainer is a fault
# Settings of a variant of learning, the most important first; one with a setting that this version does not have, or
# without its package, is left out.
VARIANTS: dict[str, dict[str, object]] = {
    "as it is": {},
    "recomputation": {"optim.recompute": True},
    "LoRA": {"lora.rank": 16},
    "LoRA, recomputation": {"lora.rank": 16, "optim.recompute": True},
    "LoRA over bfloat16, recomputation": {"lora.rank": 16, "lora.base_dtype": "bfloat16", "optim.recompute": True},
    "kernels need not be deterministic": {"optim.deterministic": False},
    "reference in float32": {"algo.beta": 0.001},
    "reference in bfloat16": {"algo.beta": 0.001, "algo.reference_dtype": "bfloat16"},
    "AdamW in 8 bits": {"optim.state_dtype": "8bit"},
}
LARGE = ("as it is", "recomputation")  # variants that are measured with larger micro-batches too
PACKAGES = {"lora.rank": "peft", "optim.state_dtype": "torchao"}  # what a setting needs


def base() -> Path:
    return resolve_model("base", runs=Path("runs"))


def make_shape(shape: str, sizes: Sizes, work: Path) -> Path:
    """A folder with a model of random weights and the embedded base's tokenizer; made once."""
    folder = work / f"qwen-{shape}"
    if (folder / "tokenizer.json").exists():
        return folder
    hidden, inner, heads, key_heads, layers = SHAPES[shape]
    head_size = hidden // heads
    heads = max(key_heads, heads // sizes.shrink // key_heads * key_heads)
    config = Qwen2Config(
        vocab_size=VOCABULARY // sizes.shrink**2,
        hidden_size=heads * head_size,
        intermediate_size=inner // sizes.shrink,
        num_attention_heads=heads,
        num_key_value_heads=key_heads,
        num_hidden_layers=max(2, layers // sizes.shrink),
        max_position_embeddings=4096,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=0,
        pad_token_id=1,
        dtype=torch.bfloat16,
    )
    torch.manual_seed(0)
    with torch.device(device()):
        model = Qwen2ForCausalLM(config).to(torch.bfloat16)
    model.save_pretrained(folder)
    load_tokenizer(base()).save_pretrained(folder)
    return folder


# ------------------------------------------------------------------------------------------------ parity


def parity(sizes: Sizes, work: Path, *, engine: str, dtypes: Sequence[str] = ("float32", "bfloat16")) -> None:
    """Largest difference of the log-probabilities of engine and trainer on the embedded base, by precision."""
    from reasoner.inference.factory import make_engine
    from reasoner.trainer.parity import max_logprob_diff
    from reasoner.types import SamplingParams

    setup_torch(threads=0, seed=0)
    policy = load_policy(base(), device=device())
    prompts = render_prompts(4)
    sampling = SamplingParams(num_samples=4, max_tokens=64)
    wide: list[str] = []
    for dtype in dtypes:
        cfg = replace(Config().engine, name=engine, dtype=dtype)
        sampler = make_engine(cfg, base(), max_model_len=512, seed=0)
        sampler.update_weights(policy.state_dict().items(), version=0)
        for trainer_dtype in ("float32", "bfloat16") if dtype == "bfloat16" else ("float32",):
            with compute_precision(device(), trainer_dtype):
                difference = max_logprob_diff(sampler, policy, prompts, sampling)
            name = f"{engine} in {dtype}, trainer in {trainer_dtype}: largest difference"
            row(name, difference, "nats")
            wide += [name] if not difference <= LIMITS[dtype] else []
        sampler.close()
        free_memory()
    if wide:
        raise ValueError(f"more than rounding: {'; '.join(wide)}")


def render_prompts(number: int) -> list[Any]:
    """The first generated problems as prompts, for any model with the embedded base's tokenizer."""
    from data import load
    from reasoner.rollouts.prompts import load_template, render

    template, tokenizer = load_template("r1-zero"), load_tokenizer(base())
    return [render(problem, template, tokenizer) for problem in load("generated", limit=number)]


def free_memory() -> None:
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


# ------------------------------------------------------------------------------------------------ learning


def learning(sizes: Sizes, work: Path, *, shape: str) -> None:
    """Trained tokens a second, their share of the matrix ceiling, and the peak memory beside the doctor's formula. A
    variant that raises is a row with its error, and the next one runs.
    """
    setup_torch(threads=0, seed=0)
    folder = make_shape(shape, sizes, work)
    first, *larger = sizes.micro_batch_tokens
    failed = []
    for variant, tokens in (*product(VARIANTS, [first]), *product(LARGE, larger)):
        values = VARIANTS[variant]
        if absent := [key for key in values if key not in settings()]:
            row(variant, f"not in this version: {', '.join(absent)}")
        elif absent := missing(tuple(PACKAGES[key] for key in values if key in PACKAGES)):
            row(variant, f"not installed: {', '.join(absent)}")
        else:
            name = f"{variant}, micro-batches of {tokens:,}"
            free_memory()
            try:
                _measure_learning(name, values | {"optim.micro_batch_tokens": tokens}, folder, sizes, work)
            except torch.cuda.OutOfMemoryError as error:
                row(f"{name}: out of memory", str(error).split("\n")[0][:200])
            except Exception as error:
                traceback.print_exc()
                row(f"{name}: raised", f"{type(error).__name__}: {str(error).strip().split(chr(10))[0][:200]}")
                failed.append(name)
    if failed:
        raise RuntimeError(f"raised: {'; '.join(failed)}")


def _measure_learning(name: str, values: dict[str, object], folder: Path, sizes: Sizes, work: Path) -> None:
    from reasoner.doctor.memory import MemoryEstimate, memory_of, peak_memory
    from reasoner.trainer.components import build_trainer

    num_prompts, group, prompt, response = sizes.learning
    values = {
        "algo.beta": 0.0,
        **values,
        "data.prompts_per_step": num_prompts,
        "algo.group_size": group,
        "sampling.max_tokens": response,
        "optim.dtype": "bfloat16",
        "optim.warmup_steps": 0,
        "engine.name": "transformers",
    }
    cfg = resolve([("bench/gpu.py", values)]).config
    algorithm = resolve_algorithm(cfg.algo)
    paths = {"start_from": folder, "base": folder}
    trainer = build_trainer(cfg, load_tokenizer(folder), **paths, device=device())
    batch = batch_of(*sizes.learning, vocabulary=500).to(device())
    batch = trainer.compute_advantages(trainer.compute_logprobs(batch))
    seconds = []
    for _ in range(sizes.repeats + 1):  # the first one allocates the optimiser's state
        start = clock()
        train_step(trainer, batch)
        seconds.append(clock() - start)
    rate = batch.completion_ids.numel() / statistics.median(seconds[1:])
    trainer.free_gradients()
    parameters = sum(p.numel() for p in trainer.policy.parameters())
    row(f"{name}: parameters", parameters / 1e6, "million")
    row(f"{name}: speed", rate, "tokens/s")
    operations = 4 if cfg.lora.rank else 6  # a parameter and token: frozen weights have no gradient
    if (ceiling := _ceiling(work)) is not None:
        row(f"{name}: share of the matrix ceiling", 100 * operations * parameters * rate / ceiling, "%")
    estimate = MemoryEstimate(trainer.policy, algorithm, cfg, prompt, device().type, memory_of(device())[1])
    part = estimate.parts()
    held = sum(part[own] for own in ("weights", "gradients", "optimiser", "reference", "critic"))
    row(f"{name}: peak memory", peak_memory(device()) / 2**30, "GiB")
    row(f"{name}: peak memory by the doctor's formula", (held + estimate.passes_peak()) / 2**30, "GiB")
    if torch.cuda.is_available():
        row(f"{name}: peak memory that torch reserved", torch.cuda.max_memory_reserved() / 2**30, "GiB")
        row(f"{name}: memory between updates", torch.cuda.memory_allocated() / 2**30, "GiB")


def _ceiling(work: Path) -> float | None:
    """The rate of matrix products in bfloat16; None if that part did not run."""
    path = work / "ceilings.json"
    return float(json.loads(path.read_text())["bfloat16"]) if path.exists() else None


# ------------------------------------------------------------------------------------------------ sampling


def sampling(sizes: Sizes, work: Path, *, engine: str) -> None:
    """Sampled tokens a second by the number of responses at once, and the seconds of sleep, wake-up and weights."""
    from reasoner.inference.factory import make_engine
    from reasoner.types import SamplingParams

    if engine == "vllm" and device().type == "cpu" and sizes.shrink == 1:
        raise SkipPart("no GPU: vLLM at full size needs one")
    setup_torch(threads=0, seed=0)
    folder = make_shape("0.5B", sizes, work)
    cfg = replace(Config().engine, name=engine, dtype="bfloat16")
    start = clock()
    sampler = make_engine(cfg, folder, max_model_len=1024, seed=0)
    row("start of the engine", clock() - start, "s")
    prompts = render_prompts(max(sizes.batches) // 8)
    params = SamplingParams(num_samples=8, max_tokens=sizes.sampled)
    for batch in sizes.batches:
        own = prompts[: batch // 8]
        seeds = [[8 * i + j for j in range(8)] for i in range(len(own))]
        sampler.generate(own, replace(params, max_tokens=4), seeds)  # kernels are chosen at the first use
        start = clock()
        groups = sampler.generate(own, params, seeds)
        tokens = sum(len(completion.token_ids) for group in groups for completion in group)
        seconds = clock() - start
        row(f"{batch} responses of {sizes.sampled} tokens at once", tokens / seconds, "tokens/s")
        row(f"{batch} responses at once: a token of each", 1000 * seconds / sizes.sampled, "ms")
    if torch.cuda.is_available():
        row("peak memory of sampling", torch.cuda.max_memory_allocated() / 2**30, "GiB")
    policy = load_policy(folder, device=device())
    for turn in range(2):  # the second one is what a step pays
        for what, act in (
            ("sleep", lambda: sampler.sleep(keeps_weights=False)),
            ("wake-up", sampler.wake_up),
            ("weight sync", lambda: sampler.update_weights(policy.state_dict().items(), version=1)),
        ):
            start = clock()
            act()
            row(f"{what}, {'second' if turn else 'first'} time", clock() - start, "s")
            if what == "sleep" and torch.cuda.is_available():
                row("GPU memory in use, asleep", _used(), "GiB")
    sampler.generate(prompts[:1], replace(params, max_tokens=4), [list(range(8))])
    sampler.close()


def _used() -> float:
    free, total = torch.cuda.mem_get_info()
    return (total - free) / 2**30
