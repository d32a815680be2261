"""What a run is refused for before anything heavy is imported: one list of checks for train, doctor and --dry-run.

Nothing here imports torch or transformers, so an error in the settings is reported at once. What takes the model's
tokenizer or weights (the length of the questions, an architecture that is not supported) is not checked here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path

from data.files import READERS, can_read
from data.registry import check as check_problems
from data.registry import hub_sources, load
from data.related_sets import shared_set
from reasoner.config.schema import Config
from reasoner.config.stages import is_used, problem_sets
from reasoner.inference.factory import check_engine, training_engine
from reasoner.inference.server_token import read_token
from reasoner.models.families import has_experts, lora_obstacle
from reasoner.models.folder import check_model, check_reward_model, check_teacher, text_config
from reasoner.models.resolve import resolve_cached_model, resolve_model
from reasoner.rl.algorithms import resolve_algorithm
from reasoner.rollouts.dataset import prompt_token_limit
from reasoner.rollouts.prompts import check_teacher_prompt, load_template
from reasoner.rollouts.reward_functions import check_columns, load_reward_functions
from reasoner.rollouts.reward_models import parse_reward_models
from reasoner.runs.reference import read_reference
from reasoner.runs.run_dir import check_writable
from reasoner.sft.sources import check_source
from reasoner.tools.names import check_tools, with_tools
from reasoner.trainer.trackers import tracker_names


def preflight(
    cfg: Config,
    run_dir: Path,
    *,
    download: bool = True,
    with_source: bool = True,
    check_set: Callable[..., None] = check_problems,
) -> Path | None:
    """The folder of the model; None for one of the hub that is not in the user's cache. ValueError for the first of the
    settings that cannot be used, with what can; OSError where the run's folder cannot be written.

    Problem sets and a model of the hub are downloaded, or with `download` False left unchecked; so are examples and
    preferences without `with_source`, where an earlier stage of a recipe makes them.
    """
    check_tools(cfg.tools, cfg.prompt.style)
    resolve_algorithm(cfg.algo)
    template = with_tools(load_template(cfg.prompt.style), cfg.tools, cfg.prompt.style)
    tracker_names(cfg.run.track)
    check_engine(cfg.engine.name, cfg.engine.urls)
    if cfg.engine.urls or cfg.teacher.urls:
        read_token()
    if cfg.lora.rank and find_spec("peft") is None:
        raise ValueError('lora.rank needs peft, which is not installed: pip install "reasoner-rlvr[lora]"')
    functions = load_reward_functions(cfg.reward.functions)
    sets = problem_sets(cfg)
    for spec in sets.values():
        check_set(spec, memory_mib=cfg.verify.memory_mib, download=download)  # before the model, which is larger
    check_evaluated_problems(sets)
    if download or not hub_sources(cfg.data.train):
        check_columns(functions, lambda: load(cfg.data.train, memory_mib=cfg.verify.memory_mib))
    check_teacher_prompt(cfg.teacher.prompt)
    if cfg.run.reference:
        read_reference(Path(cfg.run.reference))
    if cfg.stage == "sft" and with_source:
        check_source(cfg.sft.data, Path(cfg.run.dir))
    if cfg.stage == "reward-model" and with_source and not can_read(Path(cfg.rm.data)):
        raise ValueError(f"rm.data is {cfg.rm.data!r}; it must be a file that exists, {' or '.join(READERS)}")
    check_writable(run_dir)
    runs = Path(cfg.run.dir)
    find = resolve_model if download else resolve_cached_model
    folder = find(cfg.model, runs=runs)
    if folder is not None:
        for name in [*parse_reward_models(cfg.reward.model), *filter(None, [cfg.critic.init])]:
            if (scorer := find(name, runs=runs)) is not None:
                check_reward_model(scorer, folder)
        context = check_model(folder, needs_chat=template.chat)
        check_lora_model(cfg, folder)
        check_routers(cfg, folder)
        if cfg.teacher.loaded and (teacher := find(cfg.teacher.model, runs=runs)) is not None:
            longest = (cfg.data.max_prompt_tokens or context or 0) + cfg.sampling.max_tokens
            check_teacher(teacher, folder, min(longest, context) if context else longest)
        if is_used("engine.name", cfg.stage):
            training_engine(cfg.engine, folder)
        if context is not None:
            prompt_token_limit(
                context=context, max_tokens=cfg.sampling.max_tokens, max_prompt_tokens=cfg.data.max_prompt_tokens
            )
    return folder


def check_lora_model(cfg: Config, folder: Path) -> None:
    """Raise ValueError where the layers of lora.target in the folder's model take no adapter."""
    config = text_config(folder)
    if cfg.lora.rank and (reason := lora_obstacle(config, cfg.lora.target)):
        raise ValueError(
            f"LoRA (lora.target {cfg.lora.target!r}) is not supported with {config['model_type']}: {reason}"
        )


def check_routers(cfg: Config, folder: Path) -> None:
    """Raise ValueError for a mixture of experts in low precision whose correction is not named: where rounding lets
    engine and trainer choose other experts, a token's ratio is that of other models.
    """
    is_low = {cfg.engine.dtype, cfg.optim.dtype} != {"float32"}
    is_open = is_used("algo.importance_sampling", cfg.stage) and cfg.algo.importance_sampling == "auto"
    if is_low and is_open and has_experts(text_config(folder)):
        raise ValueError(
            f"{folder} is a mixture of experts; those that the engine chooses are not replayed in the trainer "
            "(R3), which in low precision chooses others for some tokens: name --algo.importance_sampling, token_mask "
            "to leave such tokens out, token to insist, or compute in float32 (engine.dtype, optim.dtype)"
        )


def check_evaluated_problems(sets: Mapping[str, str]) -> None:
    """Raise ValueError for problems of validation or of the final table that are training problems by their names."""
    harm = {
        "validation.data": "the best checkpoint would be chosen by problems that were trained on",
        "eval.heldout": "the final table would be of problems that were trained on",
    }
    for key, effect in harm.items():
        if part := shared_set(sets.get("data.train", ""), sets.get(key, "")):
            raise ValueError(
                f"{key} has {part!r}, which data.train {sets['data.train']!r} has too: {effect}. Name another set or "
                f"split, or divide this one: data.train SET?without_sample=N, {key} SET?sample=N"
            )
