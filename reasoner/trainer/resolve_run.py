"""Resolve the settings and the folder of a run, new or resumed: shared by the command line and the Python API.

Nothing here imports torch, and nothing is written.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from data.related_sets import own_sets, sources_of
from reasoner.config.check import check_effect, check_run
from reasoner.config.presets import LORA_LEARNING_RATE, Preset, find_preset, machine_of, preset_for
from reasoner.config.recipes import RECIPES
from reasoner.config.resolve import RunSettings, check_types, resolve, to_dict, with_values
from reasoner.config.schema import Config, settings, value_of
from reasoner.config.stages import STAGES, check_used, preset_values, problem_sets, stage_defaults
from reasoner.inference.factory import resolve_engine_name
from reasoner.inference.model_spec import learnt_precision, training_settings
from reasoner.models.folder import num_parameters
from reasoner.models.hub_download import parameters_on_hub
from reasoner.models.resolve import full_folder, resolve_model
from reasoner.rl.algorithms import ALGORITHMS, resolve_algorithm, sampler_correction, with_parts
from reasoner.rollouts.reward_models import parse_reward_models
from reasoner.runs.run_dir import check_free, find_run, read_settings, recovery_hint, stage_of
from reasoner.runtime import gpu_memory

Values = Mapping[str, object]  # settings by dotted key

# Settings, and sections of settings, that may change when a run is resumed.
MAY_CHANGE = ("steps", "max_train_tokens", "processes", "optim.sharding")
PLACE = ("run.dir", "run.name")
MAY_CHANGE_SECTIONS = ("run.", "validation.", "eval.", "verify.", "engine.")


def resolve_new_run(
    values: Values,
    *,
    origin: str,
    preset: str | None = None,
    defaults: tuple[str, Values] = ("", {}),
    files: Sequence[tuple[str, Values]] = (),
    gpu_bytes: int | None = None,
    stage: str = "rl",
) -> tuple[RunSettings, Path]:
    """Resolve the settings of a new run and its folder: the preset, then `defaults` and `files` as (name, settings),
    then `values`.

    `origin` is recorded as the source of `values`. Without `preset` the one that fits the model and the machine is
    chosen; `gpu_bytes`: memory of the machine's GPU, None for this machine. ValueError for a setting that cannot be
    used, not in this stage or to no effect, and for a folder in use.
    """
    named = {key: value for content in (*(content for _, content in files), values) for key, value in content.items()}
    check_used(named, stage)
    model, runs = str(named.get("model", "base")), Path(str(named.get("run.dir", "runs")))
    choice, why = choose_preset(preset, model, runs, gpu_bytes)
    others = [str(named[key]) for key in ("teacher.model", "critic.init") if named.get(key)]
    models = [model, *others, *parse_reward_models(str(named.get("reward.model", "")))]
    layers = [*preset_layers(choice, stage, named), _learnt_precision([] if "optim.dtype" in named else models, runs)]
    resolved = resolve([*layers, defaults, *files, (origin, values)])
    cfg = resolved.config
    if cfg.stage != stage:
        raise ValueError(f"{STAGES[stage].source} is empty; name the data: --data, {STAGES[stage].takes}")
    _check_run(cfg, named, is_elsewhere=gpu_bytes is not None)
    if stage == "rl":
        resolved = _with_own_sets(resolved, named)
    note = _preset_note(choice, why, resolved, is_named=preset is not None)
    notes = (note, _sets_note(resolved), _prompt_note(cfg, _local_folder(cfg.model, runs)))
    resolved = replace(resolved, note="\n".join(filter(None, notes)))
    if "/" in cfg.run.name or cfg.run.name.startswith("."):
        raise ValueError(f"run.name is {cfg.run.name!r}; it must be a plain name (the folder is run.dir)")
    method = cfg.algo.name if stage == "rl" else stage
    default_name = f"{Path(cfg.model).name}-{method}-{time.strftime('%m%d-%H%M%S')}"
    run_dir = Path(cfg.run.dir) / (cfg.run.name or default_name)
    check_free(run_dir)
    return resolved, run_dir


def resolve_resumed_run(
    name: str, values: Values, *, origin: str, runs: Path, reward_functions: Values | None = None, stage: str = "rl"
) -> tuple[RunSettings, Path]:
    """Resolve the stored settings of a run with the changes in `values`, and its folder.

    Only those of MAY_CHANGE and MAY_CHANGE_SECTIONS may change. `reward_functions` are weights by name.
    ValueError for another change, for a run of another stage, and where the run was started with other reward
    functions.
    """
    run_dir = find_run(name, runs)
    try:
        before = read_settings(run_dir)
    except ValueError as error:
        raise ValueError(f"{error}; {recovery_hint(run_dir)}") from error
    if (own_stage := stage_of(before)) != stage:
        raise ValueError(
            f"{run_dir} is a run of another command: reasoner {STAGES[own_stage].command} --resume {run_dir}"
        )
    check_used(values, stage)
    stored = before["config"]
    if unknown := stored.keys() - settings().keys():
        raise ValueError(
            f"{run_dir}/config.json has settings that this version does not know: {', '.join(sorted(unknown))}"
        )
    check_types(stored, run_dir / "config.json")
    free = [key for key in values if key in MAY_CHANGE or key.startswith(MAY_CHANGE_SECTIONS)]
    if fixed := [key for key in values if key in PLACE or key not in free]:
        raise ValueError(f"{', '.join(fixed)} {CANNOT_CHANGE}")
    metrics = run_dir / "metrics.jsonl"
    done = metrics.read_bytes().count(b"\n") if metrics.is_file() else 0
    steps: Any = values.get("steps", done)
    if steps < done:
        raise ValueError(f"steps is {steps}, and {run_dir} has done {done}; it must be at least that")
    _check_reward_functions(run_dir, before.get("reward_functions", {}), reward_functions or {})
    resolved = resolve([("the run", stored), (origin, values)])
    _check_run(resolved.config, values)
    return RunSettings(resolved.config, before.get("origin", {}) | dict.fromkeys(values, origin)), run_dir


def run_values(cfg: Config, *, is_elsewhere: bool = False) -> Config:
    """The settings as a run has them: with the parts of its algorithm, and the engine and correction that `auto`
    stands for.
    `is_elsewhere`: on another machine, which has a GPU and vLLM.
    """
    engine, algo = cfg.engine, with_parts(cfg.algo, resolve_algorithm(cfg.algo))
    name = "vllm" if is_elsewhere and engine.name == "auto" and not engine.urls else resolve_engine_name(engine)
    algo = replace(algo, importance_sampling=sampler_correction(cfg))
    return replace(cfg, algo=algo, engine=replace(engine, name=name))


def _check_run(cfg: Config, named: Values, *, is_elsewhere: bool = False) -> None:
    """ValueError for values of a run that contradict each other, and for named settings without effect in it."""
    run = run_values(cfg, is_elsewhere=is_elsewhere)
    check_run(run)
    check_effect(run, {key: value_of(cfg, key) for key in named})


CANNOT_CHANGE = (
    "cannot change when a run is resumed; "
    f"{', '.join(MAY_CHANGE)}, run.* (but its folder and name), validation.*, eval.*, verify.* and engine.* can"
)


def _check_reward_functions(run_dir: Path, stored: Values, current: Values) -> None:
    """ValueError where a run was started with other Python reward functions, or other weights of them."""
    if stored == current:
        return
    now = f"now they are {_listed(current)}" if current else "and now there are none"
    if not stored:
        raise ValueError(f"{run_dir} was started without reward_functions; {now}")
    raise ValueError(
        f"{run_dir} was started from Python with reward_functions {_listed(stored)}, {now}; resume it from Python: "
        f"reasoner.train(name={run_dir.name!r}, reward_functions=[{', '.join(stored)}], resume=True)"
    )


def _listed(weights: Values) -> str:
    return ", ".join(f"{name} (weight {weight})" for name, weight in weights.items())


def preset_layers(preset: Preset, stage: str, named: Values) -> list[tuple[str, Values]]:
    """(origin, settings) of a preset and of a stage of training, for the algorithm and LoRA that are named. In
    reinforcement learning the rates of an adapter, and of a critic's, are larger than those of all weights.
    """
    algorithm, whole = named.get("algo.name"), preset.values()
    layers = preset.layers(None if algorithm is None else str(algorithm))
    own = [(origin, preset_values(values, stage)) for origin, values in layers]
    had_lora = bool(whole.get("lora.rank"))
    has_lora = bool(named.get("lora.rank", had_lora))
    defaults = stage_defaults(stage, preset.name, has_lora)
    rates: dict[str, Any] = {key: whole.get(key, settings()[key].default) for key in ("optim.lr", "critic.lr")}
    if had_lora and not has_lora:
        defaults["lora.base_dtype"] = "float32"
    if named.get("optim.dtype") == "bfloat16":  # what is learnt in it is another model in float32
        defaults["engine.dtype"] = "bfloat16"
    if stage == "rl" and preset.name != "base" and has_lora != had_lora:
        defaults["optim.lr"] = round(rates["optim.lr"] * LORA_LEARNING_RATE ** (has_lora - had_lora), 12)
    if stage == "rl" and preset.name != "base" and has_lora:
        defaults["critic.lr"] = LORA_LEARNING_RATE * rates["critic.lr"]
    return [*own, (f"reasoner {STAGES[stage].command}", defaults)]


def values_and_origins(resolved: RunSettings, algorithm: str) -> dict[str, tuple[object, str]]:
    """(value, origin) of each setting; a part that is left to the algorithm has the value in its row."""
    parts = {f"algo.{name}": value for name, value in asdict(ALGORITHMS[algorithm]).items()}
    return {
        key: (parts[key], f"algorithm {algorithm}") if value is None and key in parts else (value, resolved.origin[key])
        for key, value in to_dict(resolved.config).items()
    }


def choose_preset(name: str | None, model: str, runs: Path, gpu_bytes: int | None = None) -> tuple[Preset, str]:
    """(the preset, the reason): that of the name, or without a name the one that fits the model and the machine. `runs`
    is the folder where a run of the model's name may be; `gpu_bytes`: memory of the GPU, None for this machine's.
    """
    memory = gpu_memory() if gpu_bytes is None else gpu_bytes
    if name is not None:
        return find_preset(name, machine_of(memory)), "it is named by --preset"
    if model == "base":  # the same on every machine
        return find_preset(model, "cpu"), "the embedded base has its own preset"
    return preset_for(model, _num_parameters(model, runs), gpu_memory=memory)


def _num_parameters(model: str, runs: Path) -> int | None:
    """Parameters of a model folder, of a run's model, or of a model of the hub that no preset names; None where their
    number is not known.
    """
    if folder := _local_folder(model, runs):
        return num_parameters(full_folder(folder))
    has_preset = any(model in recipe.models for recipe in RECIPES.values())
    return parameters_on_hub(model) if model.count("/") == 1 and not has_preset else None


def _local_folder(model: str, runs: Path) -> Path | None:
    """The folder of a model on this machine, or of a run's newest checkpoint; None for a name of the hub."""
    return resolve_model(model, runs=runs) if Path(model).is_dir() or (runs / model).is_dir() else None


def _learnt_precision(models: Sequence[str], runs: Path) -> tuple[str, Values]:
    """(origin, settings) for models one of which a run in bfloat16 has learnt: its float32 weights are another one."""
    for model in models:
        if (folder := _local_folder(model, runs)) and learnt_precision(folder) == "bfloat16":
            return f"run {model}", {"optim.dtype": "bfloat16", "engine.dtype": "bfloat16"}
    return "", {}


def _with_own_sets(resolved: RunSettings, named: Collection[str]) -> RunSettings:
    """Where the training problems are named and are those of a benchmark: validate on a sample of them, and end on the
    benchmark's test problems. A set that is named as well is left as it is.
    """
    cfg = resolved.config
    own = own_sets(cfg.data.train) if "data.train" in named else None
    if own is None:
        return resolved
    values: dict[str, object] = {} if "eval.heldout" in named else {"eval.heldout": own.heldout}
    if cfg.validation.interval and "validation.data" not in named:
        values |= {"data.train": own.train, "validation.data": own.validation}
    return with_values(resolved, values, origin=f"benchmark {own.benchmark}")


def _sets_note(resolved: RunSettings) -> str:
    """A line with the problem sets of the run where they come from different places; empty where they do not."""
    sets = problem_sets(resolved.config)
    own = own_sets(training := sets.get("data.train", ""))
    known = sources_of(training) | (sources_of(own.heldout) if own else set())
    if not training or all(sources_of(spec) <= known for spec in sets.values()):
        return ""
    names = {"data.train": "training", "validation.data": "validation", "eval.heldout": "final table"}
    parts = (f"{names[key]} {spec} ({resolved.origin[key]})" for key, spec in sets.items())
    return f"problems of different sets: {', '.join(parts)}; --validation.data and --eval.heldout choose them"


def _prompt_note(cfg: Config, model: Path | None) -> str:
    """A warning where the model is a checkpoint of a run with another prompt style; empty otherwise."""
    own = cfg.prompt.style
    style = (training_settings(model) or {}).get("prompt.style", own) if model else own
    if style == own or cfg.stage == "reward-model":
        return ""
    return f"warning: {cfg.model} was trained with prompts of {style}, and this run asks with those of {own} (--prompt)"


def _preset_note(preset: Preset, why: str, resolved: RunSettings, *, is_named: bool) -> str:
    """The lines that say which preset was chosen and why, and which of the values are the machine's. Empty for the
    embedded base and for a preset that was named and has none.
    """
    cfg = resolved.config
    lines = []
    if not is_named and cfg.model != "base":
        lines.append(f"preset {preset.label}: {why}. {_size(cfg)}")
    values = [
        f"{key} {to_dict(cfg)[key]}" for key, source in resolved.origin.items() if source == f"machine {preset.machine}"
    ]
    if cfg.stage == "reward-model" and (rank := preset.values().get("lora.rank")):
        size = _num_parameters(cfg.model, Path(cfg.run.dir)) or preset.recipe.largest
        lines.append(
            f"warning: a reward model trains all weights: lora.rank {rank} of the preset has no effect. They take 16 "
            f"bytes a parameter (weights, gradients, moments): {16 * size / 2**30:,.0f} GiB for {size / 1e9:,.1f}B"
        )
    if values:
        peak = f"; the preset takes at most {preset.fit.peak_gib:g} GiB, by prediction" if cfg.stage == "rl" else ""
        lines.append(f"values of the machine ({preset.machine}): {', '.join(values)}{peak}")
    return "\n".join(lines)


def _size(cfg: Config) -> str:
    """The size of the run, and how to change it."""
    if cfg.stage == "sft":
        return f"{cfg.sft.epochs} epochs of {cfg.sft.data}, {cfg.sft.rows} examples a step, lr {cfg.optim.lr:g}"
    if cfg.stage == "reward-model":
        return f"{cfg.rm.epochs} epochs of {cfg.rm.data}, {cfg.rm.prompts} prompts a step, lr {cfg.optim.lr:g}"
    table = f"a table of {cfg.eval.heldout_problems} held-out problems" if cfg.eval.heldout_problems else "no table"
    return (
        f"{cfg.steps} steps of {cfg.data.prompts_per_step} x {cfg.algo.group_size} completions of at most "
        f"{cfg.sampling.max_tokens} tokens on {cfg.data.train}, prompt {cfg.prompt.style}, lr {cfg.optim.lr:g}, "
        f"{table}; change it with --preset ({', '.join(RECIPES)}) or with --steps, --data, --optim.lr, ...: "
        "--dry-run lists them all"
    )
