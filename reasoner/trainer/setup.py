"""Open a training run of any stage from its settings, or from its newest checkpoint, and close it whatever happens."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from data import Problem, load
from data.registry import fingerprint
from reasoner.config.resolve import RunSettings, to_dict
from reasoner.config.schema import Config
from reasoner.config.stages import problem_sets
from reasoner.console import log
from reasoner.distributed.world import ALONE, LONG_TIME_LIMIT, World
from reasoner.evals.contamination import contamination_line
from reasoner.models.folder import model_fingerprint
from reasoner.models.loading import config_context, load_config, load_tokenizer
from reasoner.models.resolve import resolve_model
from reasoner.rl.algorithms import Algorithm, resolve_algorithm
from reasoner.rollouts.dataset import filter_prompts
from reasoner.rollouts.prompts import Template, load_template
from reasoner.rollouts.reward_functions import RewardFunction
from reasoner.runs import run_start
from reasoner.runs.json_files import write_json
from reasoner.runs.metric_names import Place
from reasoner.runs.reference import REFERENCE, read_reference, write_reference
from reasoner.runs.run_dir import read_settings
from reasoner.runs.sync_certificate import write_certificate
from reasoner.runtime import has_gpu, setup_torch
from reasoner.tools.names import with_tools
from reasoner.trainer import checkpoint, resume
from reasoner.trainer.checkpoint_writer import CheckpointWriter
from reasoner.trainer.components import build_trainer, open_generator
from reasoner.trainer.metrics_logger import MetricsLogger
from reasoner.trainer.run import TrainingRun
from reasoner.trainer.shutdown import GracefulShutdown
from reasoner.trainer.summary import model_line
from reasoner.trainer.sync_certificate import certify_sync
from reasoner.trainer.trackers import Tracking, tracker_names
from reasoner.trainer.trainer import Trainer
from reasoner.trainer.validation import Validator
from reasoner.types import Prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """What the data and the models of a run are loaded with."""

    resolved: RunSettings
    run_dir: Path
    resuming: bool
    world: World
    algorithm: Algorithm
    template: Template
    base: Path  # folder of the model before training
    start_from: Path  # folder of the model to load: a checkpoint, or `base`
    tokenizer: PreTrainedTokenizerBase
    context: int  # most tokens of prompt and completion together
    device: torch.device

    @property
    def cfg(self) -> Config:
        """The settings of the run."""
        return self.resolved.config

    def render(self, problems: Sequence[Problem]) -> list[Prompt]:
        """Render problems as prompts for the model; drop and report those that cannot be graded or are too long."""
        if not problems:
            return []
        limits = {"max_tokens": self.cfg.sampling.max_tokens, "max_prompt_tokens": self.cfg.data.max_prompt_tokens}
        return filter_prompts(problems, self.template, self.tokenizer, context=self.context, **limits)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageData:
    """What a run trains on."""

    examples: Any  # what the stage's loop takes
    resolved: RunSettings  # the settings with those that follow from the data, such as the number of steps
    fingerprints: Mapping[str, str]  # of the data by setting
    plan: Mapping[str, str]  # what the run is going to do, by subject; "steps": a step
    prompts: Sequence[Prompt] = ()  # to sample in training
    problems: Sequence[Problem] = ()  # that are trained on
    contents: Mapping[str, object] | None = None  # of data.json in the run folder


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingStage:
    """A stage of training: its data, its model, its loop, and the metrics that its console shows."""

    load_data: Callable[[RunContext], StageData]
    train: Callable[[TrainingRun, Any], None]  # takes the examples of the data
    place: Place
    build_trainer: Callable[..., Trainer] = build_trainer


@contextmanager
def open_training_run(
    stage: TrainingStage,
    resolved: RunSettings,
    run_dir: Path,
    *,
    resuming: bool = False,
    reward_functions: Sequence[RewardFunction] = (),
    world: World = ALONE,
) -> Iterator[tuple[TrainingRun, Any]]:
    """Open a run, its folder, engine, log and trackers: (the run, the examples for its loop). A collective operation:
    every rank of `world` builds the components, and the first alone changes the folder.

    ValueError, before anything is written, for settings or data that cannot be used or a run that cannot be resumed.
    """
    if (processes := resolved.config.processes) != world.size:
        raise ValueError(
            f"processes is {processes}, and the run is started as {world.size}; several processes are started by "
            "reasoner train --processes N, or by torchrun -m reasoner train"
        )
    context = load_context(resolved, run_dir, resuming=resuming, world=world)
    data = stage.load_data(context)
    context = replace(context, resolved=data.resolved)
    cfg = context.cfg
    folders = {"start_from": context.start_from, "base": context.base}
    validation, heldout_problems = evaluation_problems(cfg)
    validation_prompts, heldout = context.render(validation), context.render(heldout_problems)
    trainer = stage.build_trainer(cfg, context.tokenizer, **folders, device=context.device, world=world)
    with ExitStack() as stack:
        steps_done = _open_folder(stack, context, trainer, data, validation, reward_functions)
        sets = {"validation": [prompt.problem for prompt in validation_prompts]}
        sets["heldout"] = [prompt.problem for prompt in heldout]
        _log_plan(context, data, trainer.model, steps_done, sets)
        samples = bool(data.prompts or validation_prompts or heldout)
        own_group = world.with_own_group(LONG_TIME_LIMIT) if trainer.is_sharded else ALONE
        writer = stack.enter_context(CheckpointWriter(own_group))
        generation = open_generator(
            cfg,
            data.prompts,
            context.template,
            trainer,
            model_folder=context.base if cfg.lora.rank else context.start_from,
            reward_functions=reward_functions,
            evaluated=[*validation_prompts, *heldout],
            samples=samples,
            run_dir=run_dir,
        )
        generator = stack.enter_context(generation)
        if samples:
            certificate = certify_sync(trainer, generator)
            log(f"{'weight sync:':<15}{certificate}")
            if world.is_first and not steps_done:
                write_certificate(run_dir, certificate)
        length = {"steps": cfg.steps, "max_tokens": cfg.max_train_tokens, "start": steps_done}
        logger = stack.enter_context(MetricsLogger(run_dir, **length, world=world, place=stage.place))
        trackers = tracker_names(cfg.run.track) if world.is_first else ()
        tracking = stack.enter_context(Tracking(trackers, run_dir, to_dict(cfg), start=steps_done, log=logger.log))
        shutdown = stack.enter_context(GracefulShutdown(logger.log, world))
        logger.progress.check = shutdown.poll
        generator.progress = trainer.progress = logger.progress
        run = TrainingRun(
            cfg=cfg,
            run_dir=run_dir,
            base=context.base,
            tokenizer=context.tokenizer,
            trainer=trainer,
            generator=generator,
            validator=Validator(generator, validation_prompts, cfg, logger),
            heldout=heldout,
            logger=logger,
            tracking=tracking,
            shutdown=shutdown,
            start=steps_done,
            writer=writer,
        )
        yield run, data.examples


def load_context(resolved: RunSettings, run_dir: Path, *, resuming: bool = False, world: World = ALONE) -> RunContext:
    """Find the model or the newest checkpoint, and load the tokenizer, for settings that preflight() has checked.
    Nothing is written. A collective operation. ValueError for a run that cannot be resumed.
    """
    cfg = resolved.config
    device = setup_torch(threads=cfg.threads, seed=cfg.seed)
    if device.type == "cpu" and has_gpu():
        cuda = torch.version.cuda
        why = f"for CUDA {cuda}: is the driver older?" if cuda else "built for CPUs"
        log(
            "warning: there is a GPU, and this torch cannot use it: the run trains on the CPU "
            f"(torch {torch.__version__} is {why})"
        )
    template = with_tools(load_template(cfg.prompt.style), cfg.tools, cfg.prompt.style)
    base = start_from = resolve_model(cfg.model, runs=Path(cfg.run.dir))
    if resuming:
        point = world.from_first(lambda: resume.resume_point(run_dir, log), "the checkpoint to resume from")
        start_from = point or base
    return RunContext(
        resolved=resolved,
        run_dir=run_dir,
        resuming=resuming,
        world=world,
        algorithm=resolve_algorithm(cfg.algo),
        template=template,
        base=base,
        start_from=start_from,
        tokenizer=load_tokenizer(start_from),
        context=config_context(load_config(base)),
        device=device,
    )


def evaluation_problems(cfg: Config) -> list[list[Problem]]:
    """The problems of the validations and those held out for the end; none where the run does not use them."""
    sets = problem_sets(cfg)
    limits = {"validation.data": cfg.validation.problems, "eval.heldout": cfg.eval.heldout_problems}
    return [
        load(sets[key], limit=limit, memory_mib=cfg.verify.memory_mib) if key in sets else []
        for key, limit in limits.items()
    ]


def _open_folder(
    stack: ExitStack,
    context: RunContext,
    trainer: Trainer,
    data: StageData,
    validation: Sequence[Problem],
    reward_functions: Sequence[RewardFunction],
) -> int:
    """Lock the run's folder until the stack closes, and prepare it. Returns the number of steps done.

    ValueError, before anything is written, where a resumed run would learn from something else than it did.
    """
    cfg, run_dir, resuming = context.cfg, context.run_dir, context.resuming
    fingerprints = {"model": model_fingerprint(context.base), "prompt.style": context.template.fingerprint}
    fingerprints |= data.fingerprints
    if validation:
        fingerprints["validation.data"] = fingerprint(validation)
    if resuming:
        stored = read_settings(run_dir)
        resume.check_unchanged(stored, fingerprints, to_dict(cfg), log)
        fingerprints = stored.get("fingerprints", {}) | fingerprints
        if (before := int(stored["config"].get("processes", 1))) != cfg.processes:
            log(
                f"the run had {before} process{'es' * (before > 1)} so far and goes on with {cfg.processes}: sums are "
                "taken in another order, so its numbers are those of an unbroken run to rounding, not to the byte"
            )
    steps_done = checkpoint.load(context.start_from, trainer) if context.start_from != context.base else 0

    def open_own_folder() -> None:
        checkpoint.check_room(run_dir, trainer, keep=cfg.run.keep_last)
        checkpoint.check_saves(run_dir, trainer, context.tokenizer)
        stack.enter_context(run_start.lock_run_dir(run_dir))
        run_start.open_run(
            run_dir,
            to_dict(cfg),
            context.resolved.origin,
            resuming=resuming,
            fingerprints=fingerprints,
            reward_functions={function.name: function.weight for function in reward_functions},
            stage=cfg.stage,
        )
        resume.repair(run_dir, steps_done, log)
        checkpoint.prune(run_dir, steps_done, keep=cfg.run.keep_last, every=cfg.run.save_interval)
        context.tokenizer.backend_tokenizer.save(str(run_dir / "tokenizer.json"))
        if cfg.run.reference:
            write_reference(run_dir / REFERENCE, read_reference(Path(cfg.run.reference)))
        if data.contents is not None:
            write_json(run_dir / "data.json", data.contents)

    context.world.from_first(open_own_folder, "the run folder")
    return steps_done


def _log_plan(
    context: RunContext,
    data: StageData,
    model: PreTrainedModel,
    steps_done: int,
    evaluation: Mapping[str, Sequence[Problem]],
) -> None:
    """Log what the run is going to do, and which evaluation problems stand in its training set."""
    if context.resolved.note:
        log(context.resolved.note)
    lines = {"model": model_line(context.cfg, model), "run folder": str(context.run_dir), **data.plan}
    lines["steps"] = f"{steps_done} of {context.cfg.steps} done; {lines['steps']}"
    if data.problems and (shared := contamination_line(data.problems, evaluation)):
        lines["contamination"] = shared
    for name, line in lines.items():
        log(f"{name + ':':<15}{line}")
