"""Peak memory and seconds of one whole update, beside the doctor's prediction: `python bench/update_memory.py MODEL`.
Linux. Prints a table in Markdown.

MODEL is a folder, or one of SIZES: a model of random weights. An update: log-probabilities
of the reference (with --beta above 0), loss, backward pass, clip, AdamW step; float32. Each variant in a fresh process,
which first makes an update of a few tokens (AdamW's state is there then, as in a run) and then the measured one.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

from runs import answer_of
from tables import table

RANK, WARM_UP, PROMPT = 16, 16, 64  # of LoRA; tokens of a response of the first update, and of the prompt
_SHAPE = (
    "hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads", "num_hidden_layers", "vocab_size",
)  # fmt: skip
SIZES = {
    "5M": ("qwen2", (256, 768, 4, 2, 6, 2048)),
    "135M": ("llama", (576, 1536, 9, 3, 30, 49152)),
}
HEADS = [
    "update", "responses at once", "peak above the process without weights, MiB", "of the process, MiB", "seconds",
    "predicted, MiB", "predicted / measured",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Variant:
    """Settings of an update."""

    is_recomputed: bool
    rank: int  # of LoRA; 0 without
    at_once: int  # responses that go through the model at once

    @property
    def label(self) -> str:
        return (f"LoRA r={self.rank}" if self.rank else "full") + ", recomputed" * self.is_recomputed


def variants(args: argparse.Namespace) -> list[Variant]:
    """Full and with LoRA, activations stored and recomputed."""
    own = [Variant(False, rank, 1) for rank in (0, RANK)]
    own += [Variant(True, rank, at_once) for rank, at_once in product((0, RANK), sorted({args.rows, 1}))]
    return [variant for variant in own if args.only in variant.label and variant.at_once in args.at_once]


# --------------------------------------------------------------------------------------------- in a process


def work(variant: Variant, folder: Path, args: argparse.Namespace) -> dict[str, float]:
    """Make an update of a few tokens, and measure one: seconds, bytes of the process at most (peak), and of that above
    what it had before the weights were loaded (above).
    """
    from workloads import forget_peak, peak, resident

    from reasoner.config.resolve import resolve
    from reasoner.doctor.memory import MemoryEstimate, passes_peak
    from reasoner.models.loading import load_meta_model, load_tokenizer
    from reasoner.runtime import setup_torch
    from reasoner.trainer.components import build_trainer
    from reasoner.trainer.train import train_step

    settings = {
        "algo.beta": args.beta,
        "algo.scale": "none",
        "algo.loss_aggregation": "sequence",
        "algo.group_size": args.rows,
        "data.prompts_per_step": 1,
        "sampling.max_tokens": args.tokens,
        "optim.micro_batch_tokens": variant.at_once * args.tokens,
        "optim.warmup_steps": 0,
        "optim.recompute": variant.is_recomputed,
        "lora.rank": variant.rank,
        "threads": args.threads,
    }
    cfg = resolve([("bench", settings)]).config
    device = setup_torch(threads=cfg.threads, seed=cfg.seed)
    tokenizer = load_tokenizer(folder)
    import_module("peft" if variant.rank else "torch")
    model = load_meta_model(folder)  # code is not part of an update's memory, and takes 30 to 40 MiB
    before = resident()
    trainer = build_trainer(cfg, tokenizer, start_from=folder, base=folder, device=device)
    for tokens in (WARM_UP, args.tokens):
        batch = _batch(args.rows, tokens, len(tokenizer))
        forget_peak()
        began = time.perf_counter()
        metrics = train_step(trainer, trainer.compute_advantages(trainer.compute_logprobs(batch)))
        seconds = time.perf_counter() - began
    estimate = MemoryEstimate(model, cfg, PROMPT, "cpu", 0)
    part = estimate.parts()
    stays = sum(part[name] for name in ("weights", "gradients", "optimiser", "reference", "overhead"))
    return {
        "seconds": seconds,
        "peak": peak(),
        "above": peak() - before,
        "grad_norm": metrics["grad_norm"],
        "predicted": stays + passes_peak(part) + part["gaps"],
    }


def _batch(rows: int, tokens: int, vocabulary: int) -> Any:
    """Responses of equal length to one prompt."""
    import torch
    from workloads import batch_of

    torch.manual_seed(0)
    return batch_of(1, rows, PROMPT, tokens, vocabulary)


def save_model(size: str, folder: Path) -> None:
    """Save a model of random weights of one of SIZES, with the embedded base's tokenizer."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    from reasoner.models.loading import load_tokenizer
    from reasoner.models.resolve import resolve_model

    torch.manual_seed(0)
    kind, numbers = SIZES[size]
    config = AutoConfig.for_model(
        kind, **dict(zip(_SHAPE, numbers, strict=True)), tie_word_embeddings=True, max_position_embeddings=16_384,
        bos_token_id=None, eos_token_id=0,
    )  # fmt: skip
    AutoModelForCausalLM.from_config(config, dtype=torch.float32).save_pretrained(folder)
    load_tokenizer(resolve_model("base", runs=Path("runs"))).save_pretrained(folder)


# ------------------------------------------------------------------------------------------------ rounds


def measure(variant: Variant, folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    """The figures of a fresh process."""
    flags = [text for name in ("rows", "tokens", "beta", "threads") for text in (f"--{name}", getattr(args, name))]
    words = (folder, "--worker", json.dumps(asdict(variant)), *flags)
    figures: dict[str, Any] = answer_of(__file__, *words, threads=args.threads)
    return figures


def run(folder: Path, args: argparse.Namespace) -> dict[Variant, list[dict[str, Any]]]:
    """All rounds of a model; every measurement is printed as it comes."""
    measurements: dict[Variant, list[dict[str, Any]]] = {variant: [] for variant in variants(args)}
    for number in range(args.rounds):
        for variant in measurements if number % 2 == 0 else reversed(measurements):
            figures = measure(variant, folder, args)
            measurements[variant].append(figures)
            line = json.dumps({"model": args.model, "round": number, **asdict(variant), **figures})
            print(line, file=sys.stderr, flush=True)
    return measurements


def cells(variant: Variant, runs: Sequence[dict[str, Any]]) -> list[str]:
    """The row of a variant: the highest peaks of its rounds, and the median of the seconds."""
    above, peak = (max(one[key] for one in runs) / 2**20 for key in ("above", "peak"))
    predicted = runs[0]["predicted"] / 2**20
    figures = [f"{above:,.0f}", f"{peak:,.0f}", f"{statistics.median(one['seconds'] for one in runs):.1f}"]
    figures += [f"{predicted:,.0f}", f"{predicted / above:.2f}"]
    return [variant.label, str(variant.at_once), *figures]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="folder of a model (bench/make_smollm.py makes one), or 5M or 135M")
    parser.add_argument("--rows", type=int, default=8, help="responses to the prompt [8]")
    parser.add_argument("--tokens", type=int, default=1024, help="of a response [1024]")
    parser.add_argument("--beta", type=float, default=0.0, help="coefficient of the KL to the reference [0]")
    parser.add_argument("--rounds", type=int, default=1, help="each makes all variants [1]")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--only", default="", help="variants whose label contains this")
    parser.add_argument("--at-once", type=int, nargs="+", help="responses that go through the model at once [1, all]")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        print(json.dumps(work(Variant(**json.loads(args.worker)), Path(args.model), args)))
        return
    args.at_once = args.at_once or [1, args.rows]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(args.model)
        if not folder.is_dir():
            save_model(args.model, folder := Path(temporary))
        print(table(HEADS, [cells(variant, runs) for variant, runs in run(folder, args).items()]))


if __name__ == "__main__":
    main()
