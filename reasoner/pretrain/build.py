"""`reasoner base build`: generate the corpus and train the tokenizer and the weights of the embedded base."""

from __future__ import annotations

import json
import shutil
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from reasoner.console import log
from reasoner.pretrain.corpus import document
from reasoner.pretrain.tokenizer import train_tokenizer
from reasoner.pretrain.train import Recipe, pretrain

NUM_TOKENIZER_DOCUMENTS = 20_000
_LOG_INTERVAL = 25  # steps
_RECORD_INTERVAL = 100  # steps


def build(out: Path, *, seed: int = 0, recipe: Recipe | None = None, threads: int = 0) -> Path:
    """Train tokenizer and model into the new folder `out`, an ordinary transformers model folder.

    The same seed, recipe, number of threads (0: all cores) and library versions give the same weights. Progress goes to
    standard error. The folder appears whole or not at all. ValueError if `out` exists and is not empty, and for a
    recipe that no model can have.
    """
    recipe = recipe or Recipe()
    _check_sizes(recipe)
    if out.exists() and any(out.iterdir()):
        raise ValueError(f"{out} exists and is not empty; name a new folder")
    if threads:
        torch.set_num_threads(threads)
    losses = _LossLog(recipe)
    log(f"tokenizer: training on {NUM_TOKENIZER_DOCUMENTS:,} documents")
    tokenizer = train_tokenizer(document(seed, index) for index in range(NUM_TOKENIZER_DOCUMENTS))
    log(f"model: {recipe.steps:,} steps, {losses.tokens / 1e6:.1f}M tokens, {torch.get_num_threads()} threads")
    model = pretrain(tokenizer, recipe, seed, losses.add)

    partial = out.with_name(out.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    model.save_pretrained(partial)
    tokenizer.save_pretrained(partial)
    record = losses.record(seed, num_parameters=sum(p.numel() for p in model.parameters()))
    (partial / "build.json").write_text(json.dumps(record, indent=1) + "\n")
    if out.exists():
        out.rmdir()
    partial.rename(out)
    log(f"wrote {out}: {record['parameters']:,} parameters, {record['minutes']} minutes")
    return out


def _check_sizes(recipe: Recipe) -> None:
    """ValueError for sizes below 1, and where the heads do not share the width in even parts (rotary positions)."""
    for name in ("width", "layers", "heads", "feed_forward", "steps"):
        if getattr(recipe, name) < 1:
            raise ValueError(f"{name} is {getattr(recipe, name)}; it must be at least 1")
    if recipe.width % (2 * recipe.heads):
        raise ValueError(f"width is {recipe.width}; it must be a multiple of {2 * recipe.heads}, twice the heads")


class _LossLog:
    """The losses of a build so far; logs them at intervals."""

    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe
        self._start = time.monotonic()
        self._losses: list[float] = []
        self.tokens = recipe.steps * recipe.rows * recipe.row_tokens

    def add(self, step: int, loss: float) -> None:
        """Add the loss of a step."""
        self._losses.append(loss)
        recipe, steps_done = self._recipe, step + 1
        if steps_done % _LOG_INTERVAL == 0 or steps_done == recipe.steps:
            seconds = time.monotonic() - self._start
            seconds_left = seconds / steps_done * (recipe.steps - steps_done)
            log(
                f"{steps_done:5d}/{recipe.steps} steps done  loss {_mean(self._losses[-_LOG_INTERVAL:]):.4f}  "
                f"{steps_done * recipe.rows * recipe.row_tokens / seconds:,.0f} tokens/s  "
                f"{seconds_left / 60:.1f} min left"
            )

    def record(self, seed: int, *, num_parameters: int) -> dict[str, Any]:
        """The content of build.json: what decides the weights, and the mean loss of every 100 steps."""
        starts = range(0, len(self._losses), _RECORD_INTERVAL)
        return {
            "seed": seed,
            "recipe": asdict(self._recipe),
            "parameters": num_parameters,
            "tokens": self.tokens,
            "minutes": round((time.monotonic() - self._start) / 60, 1),
            "threads": torch.get_num_threads(),
            "torch": torch.__version__,
            "loss": [round(_mean(self._losses[start : start + _RECORD_INTERVAL]), 4) for start in starts],
        }


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
