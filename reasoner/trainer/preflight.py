"""What a run is refused for before anything heavy is imported: one list of checks for train, doctor and --dry-run.

Nothing here imports torch or transformers, so an error in the settings is reported at once. What takes the model's
tokenizer or weights (the length of the questions, an architecture that is not supported) is not checked here.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from data.registry import check as check_problems
from reasoner.config.schema import Config
from reasoner.inference.factory import check_engine
from reasoner.models.folder import check_model
from reasoner.models.resolve import resolve_cached_model, resolve_model
from reasoner.rl.algorithms import Algorithm, resolve_algorithm
from reasoner.rollouts.dataset import prompt_token_limit
from reasoner.rollouts.prompts import Template, load_template
from reasoner.runs.run_dir import check_writable
from reasoner.trainer.trackers import check_trackers


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
    algorithm, chosen = resolve_algorithm(cfg.algo), load_template(cfg.prompt.style)
    trackers = tuple(name for name in cfg.run.track.split(",") if name)
    check_trackers(trackers)
    check_engine(cfg.engine.name)
    check_servers(cfg)
    check_lora(cfg)
    _check_state_dtype(cfg.optim.state_dtype)
    check_sharding(cfg, algorithm)
    for spec in problem_sets(cfg):
        check_problems(spec)
    check_writable(run_dir)
    runs = Path(cfg.run.dir)
    folder = resolve_model(cfg.model, runs=runs) if download else resolve_cached_model(cfg.model, runs=runs)
    if folder is not None:
        context = check_model(folder, needs_chat=chosen.chat)
        if context is not None:
            prompt_token_limit(
                context=context, max_tokens=cfg.sampling.max_tokens, max_prompt_tokens=cfg.data.max_prompt_tokens
            )
    return Parts(algorithm, chosen, trackers, folder)


def check_servers(cfg: Config) -> None:
    """Raise ValueError for servers and several processes, each of which would send its weights to every server."""
    if cfg.engine.urls and cfg.processes > 1:
        raise ValueError(
            f"engine.urls is {cfg.engine.urls!r} and processes {cfg.processes}; a run that samples on servers is one "
            "process so far: leave out one of the two"
        )


def check_lora(cfg: Config) -> None:
    """Raise ValueError for settings that do not go with LoRA, and without peft. No effect without LoRA."""
    if cfg.lora.rank and cfg.algo.ref_sync_steps:
        raise ValueError(
            f"algo.ref_sync_steps is {cfg.algo.ref_sync_steps}; with lora.rank it must be 0: the reference is the "
            "model without its adapter, and cannot follow the policy"
        )
    if cfg.lora.base_dtype == "bfloat16" and not (cfg.lora.rank and cfg.optim.dtype == "bfloat16"):
        raise ValueError(
            f"lora.base_dtype is 'bfloat16', lora.rank {cfg.lora.rank} and optim.dtype {cfg.optim.dtype!r}; it needs "
            "lora.rank above 0 (weights that are trained are float32) and optim.dtype bfloat16"
        )
    if cfg.lora.rank and find_spec("peft") is None:
        raise ValueError(f"lora.rank is {cfg.lora.rank}, and peft is not installed: pip install 'reasoner[lora]'")


def needs_whole_weights(cfg: Config, algorithm: Algorithm) -> str:
    """Why the weights cannot be in shards; empty if they can."""
    if algorithm.trust == "constrained":
        return "algo.trust is 'constrained' (TRPO): its step and line search write all weights as one vector"
    if cfg.optim.state_dtype == "8bit":
        return "optim.state_dtype is '8bit': torchao's moments are not gathered from shards for a checkpoint"
    return ""


def check_sharding(cfg: Config, algorithm: Algorithm) -> None:
    """Raise ValueError for shards of weights that must be whole."""
    if cfg.optim.weights in ("gathered", "sharded") and (reason := needs_whole_weights(cfg, algorithm)):
        raise ValueError(f"optim.weights is {cfg.optim.weights!r}, but {reason}; use replicated")


def _check_state_dtype(state_dtype: str) -> None:
    """ValueError where the library of 8-bit optimiser states is not installed."""
    if state_dtype == "8bit" and find_spec("torchao") is None:
        raise ValueError(
            "optim.state_dtype is '8bit', which needs torchao; it comes with pip install -e \".[torchao]\""
        )


def problem_sets(cfg: Config) -> list[str]:
    """The problems that the run asks: to train, while it trains, and at its end."""
    selection = [cfg.validation.data] if cfg.validation.interval else []
    return [cfg.data.train, *selection, *([cfg.eval.heldout] if cfg.eval.heldout_problems else [])]
