"""What a run is refused for before anything heavy is imported: one list of checks for train, doctor and --dry-run.

Nothing here imports torch or transformers, so an error in the settings is reported at once. What takes the model's
tokenizer or weights (the length of the questions, an architecture that is not supported) is not checked here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data.registry import check as check_problems
from reasoner.config.schema import Config
from reasoner.inference.factory import check_engine
from reasoner.models.resolve import locate, locate_cached
from reasoner.rl.algorithms import Algorithm, resolve
from reasoner.rollouts.dataset import most_question_tokens
from reasoner.rollouts.prompts import Template, template
from reasoner.runs.run_dir import check_writable
from reasoner.trainer.trackers import check_trackers

_TOKENIZERS = ("tokenizer*", "vocab*", "tekken*", "*.model")  # files that tokenizers are loaded from


@dataclass(frozen=True, slots=True)
class Parts:
    """What the settings of a run name."""

    algorithm: Algorithm
    template: Template
    trackers: tuple[str, ...]
    model_folder: Path | None  # None for a hub model that has not been downloaded


def preflight(cfg: Config, run_dir: Path, *, download: bool = True) -> Parts:
    """The parts that the settings name. ValueError for the first that cannot be used, with what can; OSError where the
    run's folder cannot be written.

    A hub model is downloaded, or with `download` False left unchecked where the user's cache does not hold it.
    """
    algorithm, chosen = resolve(cfg.algo), template(cfg.prompt.style)
    trackers = tuple(name for name in cfg.run.track.split(",") if name)
    check_trackers(trackers)
    check_engine(cfg.engine.name)
    for spec in problem_sets(cfg):
        check_problems(spec)
    check_writable(run_dir)
    runs = Path(cfg.run.dir)
    folder = locate(cfg.model, runs=runs) if download else locate_cached(cfg.model, runs=runs)
    if folder is not None:
        context = check_model(folder, chosen)
        if context is not None:
            most_question_tokens(cfg, context)
    return Parts(algorithm, chosen, trackers, folder)


def problem_sets(cfg: Config) -> list[str]:
    """The problems that the run asks: to train, while it trains, and at its end."""
    selection = [cfg.eval.selection] if cfg.eval.every else []
    return [cfg.data.train, *selection, *([cfg.eval.heldout] if cfg.eval.heldout_problems else [])]


def check_model(folder: Path, chosen: Template) -> int | None:
    """The model's context (context_length). ValueError for a folder without weights, and as check_tokenizer has it."""
    context = context_length(folder)
    if not any(folder.glob("*.safetensors")):
        raise ValueError(f"no language model can be loaded from {folder}: it has no weights (*.safetensors)")
    check_tokenizer(folder, chosen)
    return context


def check_tokenizer(folder: Path, chosen: Template) -> None:
    """ValueError for a folder without a tokenizer, and for a chat prompt where the tokenizer has no chat template."""
    if not any(any(folder.glob(pattern)) for pattern in _TOKENIZERS):
        raise ValueError(f"no tokenizer can be loaded from {folder}: it has none of {', '.join(_TOKENIZERS)}")
    config = folder / "tokenizer_config.json"
    has_chat = any(folder.glob("*chat_template*")) or (config.is_file() and "chat_template" in _read(config))
    if chosen.chat and not has_chat:
        raise ValueError(
            "this prompt is a chat, and the model's tokenizer has no chat template; use r1-zero, qwen-math or none"
        )


def context_length(folder: Path) -> int | None:
    """Most tokens of prompt and completion together, None where config.json has no max_position_embeddings."""
    config = _read(folder / "config.json")
    text_config = config.get("text_config", config)
    context = text_config.get("max_position_embeddings") if isinstance(text_config, dict) else None
    return context if isinstance(context, int) else None


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"no language model can be loaded from {path.parent}: {path.name}: {error}") from error
    if not isinstance(found, dict):
        raise ValueError(f"no language model can be loaded from {path.parent}: {path.name} holds no JSON object")
    return found
