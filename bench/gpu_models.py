"""The parts of bench/gpu.py that use a model of a preset's shape without a run: the certificate of its engine, sampling
beside vLLM alone, sleep and weights, and updates.
"""

from __future__ import annotations

import gc
import json
import statistics
import time
import traceback
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, cast

import torch
from gpu import missing
from gpu_rows import Sizes, clock, device, row
from transformers import AutoConfig, AutoModelForCausalLM
from workloads import batch_of, resident

from data import load
from reasoner.config.recipes import RECIPES
from reasoner.config.resolve import resolve
from reasoner.config.schema import Config
from reasoner.doctor.memory import MemoryEstimate, memory_of, passes_peak, peak_memory
from reasoner.inference.factory import make_engine
from reasoner.models.loading import load_policy, load_tokenizer
from reasoner.models.resolve import resolve_model
from reasoner.rollouts.prompts import load_template, render
from reasoner.runtime import setup_torch
from reasoner.trainer.components import build_trainer, open_generator
from reasoner.trainer.parity import max_logprob_diff
from reasoner.trainer.sync_certificate import certify_sync
from reasoner.trainer.train import train_step
from reasoner.types import Prompt, SamplingParams
from tests.fixtures.families import save_family

GROUP = 8  # completions of a prompt
PROMPT = 128  # tokens of the prompts of an update
SPREAD, LOGITS = 0.8, 3.0  # standard deviations of what a layer's first matrices compute, and of the logits
# Settings of an update; one without its package is left out.
VARIANTS: dict[str, dict[str, object]] = {
    "all weights": {},
    "recomputation": {"optim.recompute": True},
    "kernels need not be deterministic": {"optim.deterministic": False},
    "reference": {"algo.beta": 0.001},
    "LoRA": {"lora.rank": 16},
    "LoRA over bfloat16, recomputation": {"lora.rank": 16, "lora.base_dtype": "bfloat16", "optim.recompute": True},
    "compiled layers": {"optim.compile": True},
}
STOP = "</answer>:"  # a stop text that is not a token
# With a seed of vLLM's own its CPU build stops on prompts that it computes in two parts.
SEED: dict[str, object] = {"seed": 0} if torch.cuda.is_available() else {"extra_args": {"seed": 0}}
# What LLM.generate is asked for: the last is what a run asks for, by vLLM's own means.
ASKED: dict[str, dict[str, object]] = {
    "": {"detokenize": False},
    ", a seed": {"detokenize": False, **SEED},
    ", log-probabilities": {"detokenize": False, "logprobs": 0, "flat_logprobs": True},
    ", a stop text": {"stop": [STOP]},
    ", all of these": {**SEED, "logprobs": 0, "flat_logprobs": True, "stop": [STOP]},
}
PACKAGES = {"lora.rank": "peft"}  # what a setting needs


def make_model(preset: str, sizes: Sizes, work: Path) -> Path:
    """A folder with a model of random weights of the preset's shape, with the embedded base's tokenizer; made once. Of
    "base" the embedded base itself.
    """
    base, folder = resolve_model("base", runs=Path("runs")), work / preset
    if preset == "base" or (folder / "tokenizer.json").exists():
        return base if preset == "base" else folder
    shape, shrink = cast(dict[str, Any], dict(RECIPES[preset].shape)), sizes.shrink
    heads = max(shape["num_key_value_heads"], shape["num_attention_heads"] // shrink)
    shape |= {
        "hidden_size": heads * (shape["hidden_size"] // shape["num_attention_heads"]),
        "num_attention_heads": heads,
        "intermediate_size": shape["intermediate_size"] // shrink,
        "num_hidden_layers": max(2, shape["num_hidden_layers"] // shrink),
        "vocab_size": shape["vocab_size"] // shrink**2,
    }
    root = shape["hidden_size"] ** 0.5
    shape |= {"initializer_range": SPREAD / root}
    config = AutoConfig.for_model(**shape, bos_token_id=None, eos_token_id=0, pad_token_id=1)
    torch.manual_seed(0)
    with torch.device(device()):
        model: Any = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    # Logits as wide as a trained model's: in transformers' hardly differ, and no change of weights moves them by a nat.
    torch.nn.init.normal_(model.get_output_embeddings().weight, std=LOGITS / root)
    model.save_pretrained(folder)
    load_tokenizer(base).save_pretrained(folder)
    return folder


def settings_of(preset: str, **changes: object) -> Config:
    """bfloat16 and the adapter of a preset; float32 for the embedded base."""
    values = {key: value for key, value in (RECIPES[preset].gpu or {}).items() if key.startswith("lora.")}
    dtype = "float32" if preset == "base" else "bfloat16"
    values |= {"optim.dtype": dtype, "engine.dtype": dtype, "algo.group_size": GROUP, "algo.beta": 0.0}
    return resolve([("bench/gpu.py", values | changes)]).config


def _engine(values: dict[str, object]) -> dict[str, object]:
    """The settings of the engine by their keys."""
    return {f"engine.{name}": value for name, value in values.items()}


def prompts_of(number: int, folder: Path) -> list[Prompt]:
    """The first generated problems as prompts for the folder's model."""
    template, tokenizer = load_template("r1-zero"), load_tokenizer(folder)
    return [render(problem, template, tokenizer) for problem in load("generated", limit=number)]


def certificate(sizes: Sizes, work: Path, *, preset: str, family: str = "", **of_engine: object) -> None:
    """How far engine and trainer differ, with the weights that were loaded, after an update of every weight, and after
    the update back. RuntimeError above the certificate's limit. `family`: of a tiny model of this kind, in float32.
    """
    setup_torch(threads=0, seed=0)
    folder = save_family(family, work / family) if family else make_model(preset, sizes, work)
    cfg = settings_of(preset, **_engine(of_engine))
    start = clock()
    trainer = build_trainer(cfg, load_tokenizer(folder), start_from=folder, base=folder, device=device())
    prompts = prompts_of(4, folder)
    probe = prompts, SamplingParams(num_samples=4, max_tokens=64), cfg.engine.dtype
    with open_generator(cfg, prompts, load_template("r1-zero"), trainer, model_folder=folder) as generator:
        row("start of trainer and engine", clock() - start, "s")
        row("engine", generator.engine.name)
        row("largest difference before", max_logprob_diff(generator.engine, trainer.model, *probe), "nats")
        start = clock()
        own = certify_sync(trainer, generator)
        row("certificate", clock() - start, "s")
        row("mean difference after an update of every weight", own.changed, "nats")
        row("mean difference after the update back", own.restored, "nats")
        row("kinds of weights of which nothing is shown", f"{len(own.unseen)} of {own.groups}")
        row("largest difference after", max_logprob_diff(generator.engine, trainer.model, *probe), "nats")
    if preset == "base":  # as in a notebook that trains and evaluates; it takes vLLM's start once more
        start = clock()
        make_engine(cfg.engine, folder, max_model_len=256, seed=0).close()
        row("start and end of another engine in the process", clock() - start, "s")


def sampling(sizes: Sizes, work: Path, *, preset: str, **of_engine: object) -> None:
    """Sampled tokens a second beside those of vLLM's LLM.generate alone, and, for most rows, of LLM.generate asked for
    what a run asks for, one thing after another and all together.
    """
    from vllm import SamplingParams as Bare

    setup_torch(threads=0, seed=0)
    folder, length = make_model(preset, sizes, work), sizes.sampled
    cfg = settings_of(preset, **_engine({"name": "vllm"} | of_engine))
    start = clock()
    engine: Any = make_engine(cfg.engine, folder, max_model_len=4096 // sizes.shrink, seed=0)
    with closing(engine):
        row("start of the engine", clock() - start, "s")
        for rows in sizes.rows:
            prompts = prompts_of(rows // GROUP, folder)
            texts = [{"prompt_token_ids": list(prompt.token_ids)} for prompt in prompts]
            params = SamplingParams(num_samples=GROUP, max_tokens=length)
            seeds = [[GROUP * place + number for number in range(GROUP)] for place in range(len(prompts))]
            acts = {
                f"LLM.generate{name}": partial(
                    _generate_alone, engine._llm, texts, Bare(n=GROUP, max_tokens=length, ignore_eos=True, **asked)
                )
                for name, asked in ASKED.items()
                if not name or rows == max(sizes.rows)
            }
            acts["ours"] = partial(engine.generate, prompts, params, seeds)
            acts["ours with a stop text"] = partial(engine.generate, prompts, replace(params, stop=(STOP,)), seeds)
            alone = 0.0
            for name, act in acts.items():
                processor = CountedProcessor(engine._llm.llm_engine.output_processor)
                engine._llm.llm_engine.output_processor = processor
                rate = _rate(act)
                engine._llm.llm_engine.output_processor = processor.own
                alone = alone or rate
                row(f"{rows} completions at once, {name}", rate, "tokens/s")
                row(f"{rows} completions at once, {name} / alone", rate / alone)
                row(f"{rows} completions at once, {name}: record of a token", processor.per_token(), "microseconds")


class CountedProcessor:
    """vLLM's output processor, which records what is sampled; with the seconds of this thread that it takes."""

    def __init__(self, own: Any) -> None:
        self.own, self.seconds, self.tokens = own, 0.0, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.own, name)

    def process_outputs(self, outputs: list[Any], **others: Any) -> Any:
        start = time.thread_time()
        try:
            return self.own.process_outputs(outputs, **others)
        finally:
            self.seconds += time.thread_time() - start
            self.tokens += len(outputs)

    def per_token(self) -> float:
        return 1e6 * self.seconds / self.tokens


def _generate_alone(llm: Any, texts: list[dict[str, list[int]]], params: object) -> list[Any]:
    return [request.outputs for request in llm.generate(texts, params, use_tqdm=False)]


def _rate(generate: Callable[[], list[Any]]) -> float:
    """Tokens a second of the second call: kernels are chosen in the first one."""
    generate()
    start = clock()
    groups = generate()
    return sum(len(one.token_ids) for group in groups for one in group) / (clock() - start)


def sleep(sizes: Sizes, work: Path, *, preset: str, **of_engine: object) -> None:
    """Median seconds of sleep, wake-up and weights, and the memory in use after the first and the last sleep."""
    setup_torch(threads=0, seed=0)
    folder, cfg = make_model(preset, sizes, work), settings_of(preset, **_engine(of_engine))
    policy = load_policy(folder, device=device())
    seconds: dict[str, list[float]] = {"sleep": [], "wake-up": [], "weights": []}
    asleep: list[dict[str, float]] = []
    limit = 2048 // sizes.shrink
    with closing(make_engine(cfg.engine, folder, max_model_len=limit, seed=0, is_updated=True)) as engine:
        acts: dict[str, Callable[[], object]] = {
            "sleep": lambda: engine.sleep(keeps_weights=False),
            "wake-up": engine.wake_up,
            "weights": lambda: engine.update_weights(policy.state_dict().items(), version=1),
        }
        for _ in range(sizes.turns):
            for name, act in acts.items():
                start = clock()
                act()
                seconds[name].append(clock() - start)
                if name == "sleep":
                    asleep.append({"GPU": _gpu_bytes_in_use(), "host": resident()})
        params = SamplingParams(num_samples=4, max_tokens=16)
        difference = max_logprob_diff(engine, policy, prompts_of(2, folder), params, cfg.engine.dtype)
        row(f"largest difference after {sizes.turns} turns", difference, "nats")
    for name, own in seconds.items():
        row(f"{name}, median of {sizes.turns}", statistics.median(own), "s")
    for name in asleep[0]:
        for when, held in (("first", asleep[0]), ("last", asleep[-1])):
            row(f"{name} memory in use after the {when} sleep", held[name] / 2**30, "GiB")


def _gpu_bytes_in_use() -> int:
    free, total = torch.cuda.mem_get_info() if torch.cuda.is_available() else (0, 0)
    return total - free


def updates(sizes: Sizes, work: Path, *, preset: str) -> None:
    """Trained tokens a second, their share of the matrix ceiling, and the peak memory beside the doctor's formula, by
    variant and length. A variant that raises is a row with its error, and the next one runs.
    """
    setup_torch(threads=0, seed=0)
    folder, failed = make_model(preset, sizes, work), []
    for length, (variant, values) in product(sizes.updates, VARIANTS.items()):
        name = f"{variant}, {length:,} tokens"
        if absent := missing(tuple(PACKAGES[key] for key in values if key in PACKAGES)):
            row(name, f"not installed: {', '.join(absent)}")
            continue
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        try:
            _measure_update(name, values, folder, length, work)
        except torch.cuda.OutOfMemoryError as error:
            row(f"{name}: out of memory", str(error).split("\n")[0][:200])
        except Exception as error:
            traceback.print_exc()
            row(f"{name}: raised", f"{type(error).__name__}: {str(error).strip().split(chr(10))[0][:200]}")
            failed.append(name)
    if failed:
        raise RuntimeError(f"raised: {'; '.join(failed)}")


def _measure_update(name: str, values: dict[str, object], folder: Path, length: int, work: Path) -> None:
    """Of one completion a micro-batch, in bfloat16; the first of three updates allocates the optimiser's state."""
    sizes: dict[str, object] = {"data.prompts_per_step": 1, "sampling.max_tokens": length}
    sizes |= {"optim.micro_batch_tokens": length, "optim.warmup_steps": 0}
    cfg = settings_of("qwen2.5-1.5b", **{**sizes, **values})
    trainer = build_trainer(cfg, load_tokenizer(folder), start_from=folder, base=folder, device=device())
    batch = batch_of(1, GROUP, PROMPT, length, vocabulary=500).to(device())
    batch = trainer.compute_advantages(trainer.compute_logprobs(batch))
    seconds = []
    for _ in range(3):
        start = clock()
        train_step(trainer, batch)
        seconds.append(clock() - start)
    rate = GROUP * length / statistics.median(seconds[1:])
    trainer.free_gradients()
    parameters = sum(p.numel() for p in trainer.model.parameters())
    row(f"{name}: speed", rate, "tokens/s")
    if (ceilings := work / "ceilings.json").exists():
        operations = 4 if cfg.lora.rank else 6  # a parameter and token: frozen weights have no gradient
        share = operations * parameters * rate / json.loads(ceilings.read_text())["bfloat16"]
        row(f"{name}: share of the matrix ceiling", 100 * share, "%")
    estimate = MemoryEstimate(trainer.model, cfg, PROMPT, device().type, memory_of(device())[1])
    part = estimate.parts()
    held = sum(part[own] for own in ("weights", "gradients", "optimiser", "reference", "critic"))
    row(f"{name}: peak memory", peak_memory(device()) / 2**30, "GiB")
    row(f"{name}: peak memory by the doctor's formula", (held + passes_peak(part)) / 2**30, "GiB")
