"""`reasoner base build`: make corpus, tokenizer and weights of the embedded base."""

from __future__ import annotations

import json
import shutil
import sys
import time
from dataclasses import asdict
from pathlib import Path

import torch

from reasoner.pretrain.corpus import document
from reasoner.pretrain.tokenizer import train_tokenizer
from reasoner.pretrain.train import Recipe, pretrain

TOKENIZER_DOCUMENTS = 20_000
_REPORT_EVERY = 25  # steps
_RECORD_EVERY = 100  # steps


def build(out: Path, *, seed: int = 0, recipe: Recipe | None = None, threads: int = 0) -> Path:
    """Train tokenizer and model into the new folder `out`, an ordinary transformers model folder.

    The same seed, recipe, number of threads (0: all cores) and library versions give the same weights. Progress goes to
    standard error. The folder appears whole or not at all. ValueError where `out` exists and is not empty.
    """
    recipe = recipe or Recipe()
    if out.exists() and any(out.iterdir()):
        raise ValueError(f"{out} exists and is not empty; name a new folder")
    if threads:
        torch.set_num_threads(threads)
    started = time.monotonic()
    _log(f"tokenizer: training on {TOKENIZER_DOCUMENTS:,} documents")
    tokenizer = train_tokenizer(document(seed, index) for index in range(TOKENIZER_DOCUMENTS))

    tokens = recipe.steps * recipe.rows * recipe.row_tokens
    _log(f"model: {recipe.steps:,} steps, {tokens / 1e6:.1f}M tokens, {torch.get_num_threads()} threads")
    losses: list[float] = []

    def report(step: int, loss: float) -> None:
        losses.append(loss)
        done = step + 1
        if done % _REPORT_EVERY == 0 or done == recipe.steps:
            seconds = time.monotonic() - started
            left = seconds / done * (recipe.steps - done)
            recent = losses[-_REPORT_EVERY:]
            _log(
                f"{done:5d}/{recipe.steps} steps done  loss {sum(recent) / len(recent):.4f}  "
                f"{done * recipe.rows * recipe.row_tokens / seconds:,.0f} tokens/s  {left / 60:.1f} min left"
            )

    model = pretrain(tokenizer, recipe, seed, report)

    beside = out.with_name(out.name + ".partial")
    shutil.rmtree(beside, ignore_errors=True)
    model.save_pretrained(beside)
    tokenizer.save_pretrained(beside)
    record = {
        "seed": seed,
        "recipe": asdict(recipe),
        "parameters": sum(p.numel() for p in model.parameters()),
        "tokens": tokens,
        "minutes": round((time.monotonic() - started) / 60, 1),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "loss": [
            round(sum(losses[i : i + _RECORD_EVERY]) / len(losses[i : i + _RECORD_EVERY]), 4)
            for i in range(0, len(losses), _RECORD_EVERY)
        ],
    }
    (beside / "build.json").write_text(json.dumps(record, indent=1) + "\n")
    if out.exists():
        out.rmdir()
    beside.rename(out)
    _log(f"wrote {out}: {record['parameters']:,} parameters, {record['minutes']} minutes")
    return out


def _log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
