"""`reasoner base build`: generate the corpus and train the tokenizer and the weights of the embedded base."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from reasoner.console import log
from reasoner.models.checksums import write_checksums
from reasoner.models.loading import load_policy, load_tokenizer
from reasoner.models.saving import save_model
from reasoner.pretrain.corpus import document
from reasoner.pretrain.tokenizer import train_tokenizer
from reasoner.pretrain.train import Pretraining, Recipe, load, save, state_file
from reasoner.runs.io import named_errors
from reasoner.runs.run_dir import check_writable
from reasoner.runtime import set_threads

SIZES = ("width", "layers", "heads", "feed_forward")  # what a recipe says of the model
NUM_TOKENIZER_DOCUMENTS = 20_000
_LOG_INTERVAL = 25  # steps
_RECORD_INTERVAL = 100  # steps
_STATE_INTERVAL = 50  # steps


def build(
    out: Path, *, seed: int = 0, recipe: Recipe | None = None, threads: int = 0, start: Path | None = None
) -> Path:
    """Train tokenizer and model into the new folder `out`, an ordinary transformers model folder.

    start: the folder of a base whose weights, size and tokenizer the build starts from; None: random weights.

    The same seed, recipe, start, number of threads (0: all cores) and library versions give the same weights. Progress
    goes to standard error. The folder appears whole or not at all; a build that was stopped goes on from a file beside
    it, to the same weights. ValueError if `out` exists and is not empty, if `start` is no base that was built here, and
    for a recipe that no model can have.
    """
    recipe = recipe or Recipe()
    earlier = _built(start) if start else None
    if earlier:
        recipe = replace(recipe, **{name: earlier["recipe"][name] for name in SIZES})
    _check_sizes(recipe)
    set_threads(threads)
    state = state_file(out, recipe, seed, earlier)
    if out.exists() and any(out.iterdir()):
        if state.is_file() and (out / "build.json").is_file():  # killed between its last two lines
            state.unlink()
            return out
        raise ValueError(f"{out} exists and is not empty; name a new folder")
    check_writable(out.parent)
    out.parent.mkdir(parents=True, exist_ok=True)
    if start:
        tokenizer, model = load_tokenizer(start), load_policy(start, device=torch.device("cpu"))
    else:
        log(f"tokenizer: training on {NUM_TOKENIZER_DOCUMENTS:,} documents")
        texts = (document(seed, index, recipe.mixture) for index in range(NUM_TOKENIZER_DOCUMENTS))
        tokenizer, model = train_tokenizer(texts), None
    pretraining = Pretraining(tokenizer, recipe, seed, model)
    if state.is_file():
        load(pretraining, state)
        log(f"goes on after step {len(pretraining.losses):,}, from {state}")
    tokens = recipe.steps * recipe.rows * recipe.row_tokens
    log(f"model: {recipe.steps:,} steps, {tokens / 1e6:.1f}M tokens, {torch.get_num_threads()} threads")
    _train(pretraining, state)
    model = pretraining.model.eval()  # type: ignore[no-untyped-call]

    partial = out.with_name(out.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    record = _record(pretraining, seed) | ({"start": earlier} if earlier else {})
    try:
        with named_errors(out):
            save_model(model, partial)
            tokenizer.save_pretrained(partial)
            (partial / "build.json").write_text(json.dumps(record, indent=1) + "\n")
            write_checksums(partial)
    except OSError:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    if out.exists():
        out.rmdir()
    partial.rename(out)
    state.unlink(missing_ok=True)
    log(f"wrote {out}: {record['parameters']:,} parameters, {record['minutes']} minutes")
    return out


def _built(folder: Path) -> dict[str, Any]:
    """The build.json of a base. ValueError if the folder has none."""
    record = folder / "build.json"
    if not record.is_file():
        raise ValueError(f"{folder} is no base that `reasoner base build` wrote: it has no build.json")
    content: dict[str, Any] = json.loads(record.read_text())
    return content


def _check_sizes(recipe: Recipe) -> None:
    """ValueError for sizes below 1, and where the heads do not share the width in even parts (rotary positions)."""
    for name in (*SIZES, "steps"):
        if getattr(recipe, name) < 1:
            raise ValueError(f"{name} is {getattr(recipe, name)}; it must be at least 1")
    if recipe.width % (2 * recipe.heads):
        raise ValueError(f"width is {recipe.width}; it must be a multiple of {2 * recipe.heads}, twice the heads")


def _train(pretraining: Pretraining, state: Path) -> None:
    """Make the steps that are left; log losses and save the state at intervals."""
    recipe, losses = pretraining.recipe, pretraining.losses
    while len(losses) < recipe.steps:
        pretraining.step()
        done = len(losses)
        if done % _STATE_INTERVAL == 0:
            save(pretraining, state)
        if done % _LOG_INTERVAL == 0 or done == recipe.steps:
            seconds_per_step = pretraining.seconds / done
            log(
                f"{done:5d}/{recipe.steps} steps done  loss {fmean(losses[-_LOG_INTERVAL:]):.4f}  "
                f"{recipe.rows * recipe.row_tokens / seconds_per_step:,.0f} tokens/s  "
                f"{seconds_per_step * (recipe.steps - done) / 60:.1f} min left"
            )


def _record(pretraining: Pretraining, seed: int) -> dict[str, Any]:
    """The content of build.json: what decides the weights, and the mean loss of every 100 steps."""
    losses, recipe = pretraining.losses, pretraining.recipe
    starts = range(0, len(losses), _RECORD_INTERVAL)
    return {
        "seed": seed,
        "recipe": asdict(recipe),
        "parameters": sum(p.numel() for p in pretraining.model.parameters()),
        "tokens": recipe.steps * recipe.rows * recipe.row_tokens,
        "minutes": round(pretraining.seconds / 60, 1),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "loss": [round(fmean(losses[start : start + _RECORD_INTERVAL]), 4) for start in starts],
    }
