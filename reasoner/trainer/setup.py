"""Open a training run from its settings, or from its newest checkpoint, and close it whatever happens."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import torch
from transformers import PreTrainedTokenizerBase

from data import Problem, load
from data.registry import fingerprint
from reasoner.config.resolve import RunSettings, to_dict
from reasoner.config.schema import Config
from reasoner.console import log
from reasoner.distributed.world import ALONE, World
from reasoner.evals.contamination import contamination_line
from reasoner.models.loading import context_length, load_tokenizer
from reasoner.rollouts.control_rewards import with_wrong_golds
from reasoner.rollouts.reward_functions import RewardFunction
from reasoner.runs.metric_names import Place
from reasoner.runs.run_dir import read_settings
from reasoner.runs.run_start import lock_run_dir, open_run
from reasoner.runtime import has_gpu, setup_torch
from reasoner.trainer import checkpoint, resume
from reasoner.trainer.components import build_trainer, open_generator, render_prompts, sampling_params
from reasoner.trainer.fingerprints import check_unchanged, fingerprints_of, learning_fingerprints
from reasoner.trainer.metrics_logger import MetricsLogger
from reasoner.trainer.model_trainer import ModelTrainer
from reasoner.trainer.policy_run import PolicyRun
from reasoner.trainer.policy_trainer import PolicyTrainer
from reasoner.trainer.preflight import ResolvedNames, preflight
from reasoner.trainer.shutdown import GracefulShutdown
from reasoner.trainer.summary import run_summary
from reasoner.trainer.trackers import TrackedRun, Tracking
from reasoner.trainer.validation import Validator
from reasoner.types import Prompt

Summary = Callable[[int], Mapping[str, str]]  # after how many steps -> what the run is going to do, by subject
# By stage: the place whose metrics its console shows.
_PLACES: dict[str, Place] = {"rl": "console", "sft": "sft", "reward-model": "reward-model"}

TrainerT = TypeVar("TrainerT", bound=ModelTrainer)


@dataclass(frozen=True, slots=True)
class RunStart(Generic[TrainerT]):
    """What every stage of training starts from: checked settings, the tokenizer, and the model with its optimiser."""

    resolved: RunSettings
    run_dir: Path
    checked: ResolvedNames
    base: Path  # folder of the model before training
    resume_from: Path | None  # a checkpoint; None: from the model before training
    resuming: bool
    tokenizer: PreTrainedTokenizerBase
    trainer: TrainerT

    @property
    def cfg(self) -> Config:
        """The settings of the run."""
        return self.resolved.config

    def render(self, problems: Sequence[Problem]) -> list[Prompt]:
        """Render problems as prompts for the model."""
        if not problems:
            return []
        return render_prompts(
            problems, self.cfg, self.checked.template, self.tokenizer, context_length(self.trainer.model)
        )


def start_run(
    resolved: RunSettings,
    run_dir: Path,
    *,
    resuming: bool,
    build: Callable[..., TrainerT],
    world: World = ALONE,
) -> RunStart[TrainerT]:
    """Check the settings and load the model, or the newest checkpoint. Nothing is written. A collective operation.

    `build` loads the model and makes its trainer, with the arguments of build_trainer(). ValueError for settings that
    cannot be run or a run that cannot be resumed.
    """
    cfg = resolved.config
    check_processes(cfg, world)
    device = setup_torch(threads=cfg.threads, seed=cfg.seed)
    if device.type == "cpu" and has_gpu():
        log(f"warning: there is a GPU, and this torch cannot use it: the run trains on the CPU ({_why_no_cuda()})")
    checked = preflight(cfg, run_dir, with_problems=False)
    base = checked.model_folder
    assert base is not None  # it has been downloaded
    resume_from = None
    if resuming:
        resume_from = world.from_first(lambda: resume.resume_point(run_dir, log), "the checkpoint to resume from")
    tokenizer = load_tokenizer(resume_from or base)
    folders = {"start_from": resume_from or base, "base": base}
    trainer = build(cfg, tokenizer, **folders, device=device, world=world)
    return RunStart(resolved, run_dir, checked, base, resume_from, resuming, tokenizer, trainer)


@dataclass(frozen=True, slots=True)
class RunLog:
    """Where a run reports to, and what interrupts it."""

    logger: MetricsLogger
    tracking: Tracking
    shutdown: GracefulShutdown


@contextmanager
def open_training_run(
    resolved: RunSettings,
    run_dir: Path,
    *,
    resuming: bool = False,
    reward_functions: Sequence[RewardFunction] = (),
    world: World = ALONE,
) -> Iterator[PolicyRun]:
    """Build a run of reinforcement learning from its settings, or from its newest checkpoint, and lock its folder. A
    collective operation: every rank of `world` builds the components, and the first alone changes the folder.

    ValueError, before anything is written, for settings that cannot be run or a run that cannot be resumed.
    """
    start = start_run(resolved, run_dir, resuming=resuming, build=build_trainer, world=world)
    training = load(start.cfg.data.train, memory_mib=start.cfg.verify.memory_mib)
    prompts = with_wrong_golds(start.render(training), start.cfg.data.wrong_golds, start.cfg.seed)
    fingerprints = {"data.train": fingerprint(training)} | learning_fingerprints(start.cfg)

    def summary(steps_done: int) -> Mapping[str, str]:
        return run_summary(resolved, start.checked.algorithm, start.trainer.policy, prompts, run_dir, steps_done)

    with open_policy_run(start, prompts, fingerprints, summary, reward_functions) as run:
        yield run


@contextmanager
def open_policy_run(
    start: RunStart[PolicyTrainer],
    prompts: Sequence[Prompt],
    training: Mapping[str, str],
    summary: Summary,
    reward_functions: Sequence[RewardFunction] = (),
) -> Iterator[PolicyRun]:
    """Open the run folder, the engine, the log and the trackers of a run that trains a policy; close them whatever
    happens.

    `prompts` are those to sample in training, `training` the fingerprints of the training data by setting.
    """
    cfg, trainer = start.cfg, start.trainer
    memory = cfg.verify.memory_mib
    validation, heldout = [], []
    if cfg.validation.interval:
        validation = load(cfg.validation.data, limit=cfg.validation.problems, memory_mib=memory)
    if cfg.eval.heldout_problems:
        heldout = load(cfg.eval.heldout, limit=cfg.eval.heldout_problems, memory_mib=memory)
    validation_prompts, heldout_prompts = start.render(validation), start.render(heldout)
    evaluation = {"validation": validation_prompts, "heldout": heldout_prompts}

    def whole_summary(steps_done: int) -> Mapping[str, str]:
        return {**summary(steps_done), **_contamination(prompts, evaluation)}

    with (
        open_folder(
            start, training, whole_summary, validation=validation, reward_functions=reward_functions
        ) as steps_done,
        open_generator(
            cfg,
            prompts,
            sampling_params(cfg, start.checked.template),
            trainer,
            model_folder=start.base if cfg.lora.rank else start.resume_from or start.base,
            reward_functions=reward_functions,
            samples=bool(prompts or validation_prompts or heldout_prompts),
        ) as generator,
        open_log(start, steps_done) as run_log,
    ):
        generator.progress = run_log.logger.progress
        yield PolicyRun(
            cfg=cfg,
            run_dir=start.run_dir,
            tokenizer=start.tokenizer,
            trainer=trainer,
            logger=run_log.logger,
            tracking=run_log.tracking,
            shutdown=run_log.shutdown,
            start=steps_done,
            template=start.checked.template,
            base=start.base,
            generator=generator,
            validator=Validator(generator, validation_prompts, cfg, run_log.logger),
            heldout=heldout_prompts,
        )


@contextmanager
def open_folder(
    start: RunStart[TrainerT],
    training: Mapping[str, str],
    summary: Summary,
    *,
    validation: Sequence[Problem] = (),
    reward_functions: Sequence[RewardFunction] = (),
) -> Iterator[int]:
    """Lock the run's folder, prepare it, and log what the run is going to do. Yields the number of steps done.

    `training`: fingerprints of the training data by setting. ValueError, before anything is written, where a resumed
    run would learn from something else than it did.
    """
    cfg, run_dir, trainer, resuming = start.cfg, start.run_dir, start.trainer, start.resuming
    fingerprints = fingerprints_of(start.base, start.checked.template, training, validation)
    if resuming:
        stored = read_settings(run_dir)
        check_unchanged(stored, fingerprints, to_dict(cfg), log)
        fingerprints = stored.get("fingerprints", {}) | fingerprints
        report_processes(int(stored["config"].get("processes", 1)), trainer.world)
    steps_done = checkpoint.load(start.resume_from, trainer) if start.resume_from else 0
    with ExitStack() as stack:

        def open_own_folder() -> None:
            checkpoint.check_room(run_dir, trainer, keep=cfg.run.keep_last)
            checkpoint.check_saves(run_dir, trainer, start.tokenizer)
            stack.enter_context(lock_run_dir(run_dir))
            if resuming:
                resume.repair(run_dir, steps_done, log)
                checkpoint.prune(run_dir, steps_done, keep=cfg.run.keep_last, every=cfg.run.save_interval)
            open_run(
                run_dir,
                to_dict(cfg),
                start.resolved.origin,
                resuming=resuming,
                fingerprints=fingerprints,
                reward_functions={function.name: function.weight for function in reward_functions},
                stage=cfg.stage,
            )
            start.tokenizer.backend_tokenizer.save(str(run_dir / "tokenizer.json"))

        trainer.world.from_first(open_own_folder, "the run folder")
        if start.resolved.note:
            log(start.resolved.note)
        for name, line in summary(steps_done).items():
            log(f"{name + ':':<15}{line}")
        yield steps_done


@contextmanager
def open_log(start: RunStart[TrainerT], steps_done: int) -> Iterator[RunLog]:
    """Open the log, the trackers and the handlers of signals of a run of any stage."""
    cfg, run_dir, trainer = start.cfg, start.run_dir, start.trainer
    world, place = trainer.world, _PLACES[cfg.stage]
    with ExitStack() as stack:
        logger = stack.enter_context(
            MetricsLogger(
                run_dir,
                steps=cfg.steps,
                max_tokens=cfg.max_train_tokens,
                start=steps_done,
                world=world,
                place=place,
            )
        )
        trainer.on_microbatch = logger.progress.count
        tracked = TrackedRun(run_dir.name, "reasoner", to_dict(cfg), run_dir, steps_done)
        trackers = start.checked.trackers if world.is_first else ()
        tracking = stack.enter_context(Tracking(trackers, tracked, log=logger.log))
        shutdown = stack.enter_context(GracefulShutdown(logger.log, world))
        logger.progress.check = shutdown.poll
        yield RunLog(logger, tracking, shutdown)


def _contamination(training: Sequence[Prompt], evaluation: Mapping[str, Sequence[Prompt]]) -> dict[str, str]:
    """The line of the summary on evaluation problems that stand in the training set; none without both."""
    sets = {name: [prompt.problem for prompt in prompts] for name, prompts in evaluation.items()}
    line = contamination_line([prompt.problem for prompt in training], sets) if training else ""
    return {"contamination": line} if line else {}


def _why_no_cuda() -> str:
    """A clause on torch's build: without CUDA, or for a version of CUDA that the driver may be too old for."""
    cuda = torch.version.cuda
    return f"torch {torch.__version__} is " + (f"for CUDA {cuda}: is the driver older?" if cuda else "built for CPUs")


def check_processes(cfg: Config, world: World) -> None:
    """Raise ValueError where the settings ask for another number of processes than there are."""
    if cfg.processes != world.size:
        raise ValueError(
            f"processes is {cfg.processes}, and the run is started as {world.size}; several processes are started by "
            "reasoner train --processes N, or by torchrun -m reasoner train"
        )


def report_processes(before: int, world: World) -> None:
    """Log what a resumed run's other number of processes means for its numbers."""
    if before != world.size:
        log(
            f"the run had {before} process{'es' * (before > 1)} so far and goes on with {world.size}: sums are taken "
            "in another order, so its numbers are those of an unbroken run to rounding, not to the byte"
        )
