"""Build the components of a training run from its settings, and close them whatever happens.

`reasoner train`, `reasoner doctor` and the benchmarks build them here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from transformers import PreTrainedTokenizerBase

from data import Problem, load
from data.registry import fingerprint
from reasoner.config.resolve import RunSettings, to_dict
from reasoner.config.schema import Config
from reasoner.console import log
from reasoner.distributed.world import ALONE, World
from reasoner.evals.contamination import contamination_line
from reasoner.inference.factory import make_engine
from reasoner.inference.reward_model import load_reward_models
from reasoner.models.folder import BaseModel, is_adapter, model_fingerprint
from reasoner.models.loading import context_length, load_policy, load_tokenizer
from reasoner.models.lora import add_adapter, load_weights
from reasoner.models.resolve import resolve_model
from reasoner.models.reward_model import load_reward_model
from reasoner.progress import Progress
from reasoner.rl.algorithms import Algorithm
from reasoner.rollouts.dataset import filter_prompts
from reasoner.rollouts.prefetch import RolloutPrefetcher
from reasoner.rollouts.prompts import Template
from reasoner.rollouts.reward_functions import RewardFunction, check_columns, columns_of
from reasoner.rollouts.reward_models import parse_reward_models
from reasoner.rollouts.reward_process import RewardProcess
from reasoner.rollouts.reward_sources import load_reward_functions
from reasoner.runs import rollouts as store
from reasoner.runs.metric_names import Place
from reasoner.runs.run_dir import read_settings
from reasoner.runtime import setup_torch
from reasoner.trainer import checkpoint, resume
from reasoner.trainer.fingerprints import check_unchanged, fingerprints_of, learning_fingerprints
from reasoner.trainer.metrics_logger import MetricsLogger
from reasoner.trainer.policy_trainer import PolicyTrainer
from reasoner.trainer.preflight import Parts, preflight
from reasoner.trainer.pretraining_mix import load_pretraining_mix
from reasoner.trainer.rollout_generator import RolloutGenerator, StepRollouts
from reasoner.trainer.run import TrainingRun
from reasoner.trainer.shutdown import GracefulShutdown
from reasoner.trainer.summary import run_summary
from reasoner.trainer.trackers import TrackedRun, Tracking
from reasoner.trainer.validation import Validator
from reasoner.trainer.weights import resolve_weights
from reasoner.types import Prompt, SamplingParams
from verifiers import VerifierPool


def build_trainer(
    cfg: Config,
    algorithm: Algorithm,
    tokenizer: PreTrainedTokenizerBase,
    *,
    start_from: Path,
    base: Path,
    device: torch.device,
    world: World = ALONE,
) -> PolicyTrainer:
    """Load the policy from `start_from`, and with a KL penalty the reference from `base`, the initial model.

    With LoRA the policy is the initial model with an adapter, that of `start_from` if it is another folder, and the
    reference is the policy without it.
    """
    if cfg.lora.rank:
        policy = load_policy(base, device=device, dtype=getattr(torch, cfg.lora.base_dtype))
        add_adapter(policy, cfg.lora, seed=cfg.seed)
        if start_from != base:
            load_weights(policy, start_from)
        cfg = resolve_weights(cfg, algorithm, policy)
        trainer = PolicyTrainer(policy, policy if cfg.algo.beta > 0 else None, algorithm, cfg, tokenizer, world)
        trainer.base_model = BaseModel(cfg.model, str(base.resolve()), model_fingerprint(base))
        return _completed(trainer, tokenizer)
    policy = load_policy(start_from, device=device)
    cfg = resolve_weights(cfg, algorithm, policy)
    reference = None
    if cfg.algo.beta > 0:
        dtype = getattr(torch, cfg.algo.reference_dtype)
        reference = load_policy(base, device=device).to(dtype).requires_grad_(False)
    return _completed(PolicyTrainer(policy, reference, algorithm, cfg, tokenizer, world), tokenizer)


def _completed(trainer: PolicyTrainer, tokenizer: PreTrainedTokenizerBase) -> PolicyTrainer:
    """The trainer with what the settings add to it: the pretraining mix, and a reward model's weights in the critic."""
    cfg = trainer.cfg
    trainer.pretraining_mix = load_pretraining_mix(cfg, tokenizer, context_length(trainer.policy))
    if trainer.critic is not None and cfg.critic.init:
        folder = resolve_model(cfg.critic.init, runs=Path(cfg.run.dir))
        weight = parse_reward_models(cfg.reward.model).get(cfg.critic.init, 1.0)
        trainer.critic.start_from(load_reward_model(folder, device=trainer.policy.device), weight=weight)
    return trainer


def sampling_params(cfg: Config, template: Template) -> SamplingParams:
    """The sampling parameters of training: algo.group_size completions for each prompt."""
    sampling = cfg.sampling
    return SamplingParams(
        cfg.algo.group_size, sampling.temperature, sampling.top_p, 0, sampling.max_tokens, template.stop
    )


def render_prompts(
    problems: Sequence[Problem], cfg: Config, template: Template, tokenizer: PreTrainedTokenizerBase, context: int
) -> list[Prompt]:
    """Render problems as prompts; drop and report those that cannot be graded or are too long."""
    limits = {"max_tokens": cfg.sampling.max_tokens, "max_prompt_tokens": cfg.data.max_prompt_tokens}
    return filter_prompts(problems, template, tokenizer, context=context, **limits)


@contextmanager
def open_generator(
    cfg: Config,
    algorithm: Algorithm,
    prompts: Sequence[Prompt],
    sampling: SamplingParams,
    trainer: PolicyTrainer,
    *,
    model_folder: Path,
    reward_functions: Sequence[RewardFunction] = (),
    progress: Progress | None = None,
) -> Iterator[RolloutGenerator]:
    """Start engine and verifier pool, with the trainer's weights; stop both at the end, whatever happens. Each rank of
    the trainer's world has an engine and its share of the grading processes.
    """
    with ExitStack() as stack:
        world = trainer.world.with_own_group()  # rollouts may be generated in a thread, while the trainer exchanges too
        context = context_length(trainer.policy)
        # An adapter of an adapter's base cannot be sent alone: vLLM would need both.
        is_sent = cfg.lora.sync == "adapter" and not is_adapter(model_folder)
        rank = cfg.lora.rank if is_sent else 0
        engine = make_engine(
            cfg.engine, model_folder, max_model_len=context, seed=cfg.seed, adapter_rank=rank, world=world
        )
        stack.enter_context(closing(engine))
        trainer.sends_adapter = engine.accepts_adapter
        workers = -(-cfg.verify.workers // world.local_size)  # rounded up
        pool = stack.enter_context(VerifierPool(workers, cfg.verify.seconds, cfg.verify.memory_mib))
        prefetcher = stack.enter_context(RolloutPrefetcher[StepRollouts]())
        functions = [*reward_functions, *_isolated_functions(cfg, stack)]
        if len({function.name for function in functions}) < len(functions):
            raise ValueError(f"reward.functions {cfg.reward.functions!r} has the name of another reward function")
        check_columns(functions, columns_of(prompt.problem for prompt in prompts))
        generator = RolloutGenerator(
            engine,
            pool,
            prompts,
            sampling,
            cfg,
            dynamic_sampling=algorithm.dynamic_sampling,
            reward_functions=functions,
            reward_models=load_reward_models(cfg, prompts, trainer.policy.device),
            prefetcher=prefetcher,
            progress=progress,
            world=world,
        )
        generator.attempt = trainer.attempt
        generator.update_weights(trainer.policy_state(), version=trainer.steps_done)
        yield generator


def _isolated_functions(cfg: Config, stack: ExitStack) -> list[RewardFunction]:
    """The functions of reward.functions, to be called in a process that ends with the stack."""
    functions = load_reward_functions(cfg.reward.functions)
    if not functions:
        return []
    spec, limits = cfg.reward.functions, cfg.verify
    process = stack.enter_context(RewardProcess(spec, seconds=limits.seconds, memory_mib=limits.memory_mib))
    return [replace(function, process=process) for function in functions]


@dataclass(frozen=True, slots=True)
class RunStart:
    """What every stage of training starts from: checked settings, the tokenizer, and the model with its optimiser."""

    resolved: RunSettings
    run_dir: Path
    checked: Parts
    base: Path  # folder of the model before training
    resume_from: Path | None  # a checkpoint; None: from the model before training
    resuming: bool
    tokenizer: PreTrainedTokenizerBase
    trainer: PolicyTrainer

    @property
    def cfg(self) -> Config:
        """The settings of the run."""
        return self.resolved.config

    def render(self, problems: Sequence[Problem]) -> list[Prompt]:
        """Render problems as prompts for the model."""
        if not problems:
            return []
        return render_prompts(
            problems, self.cfg, self.checked.template, self.tokenizer, context_length(self.trainer.policy)
        )


def start_run(resolved: RunSettings, run_dir: Path, *, resuming: bool, world: World) -> RunStart:
    """Check the settings and load the model, or the newest checkpoint. Nothing is written. A collective operation.

    ValueError for settings that cannot be run or a run that cannot be resumed.
    """
    cfg = resolved.config
    check_processes(cfg, world)
    device = setup_torch(threads=cfg.threads, seed=cfg.seed)
    checked = preflight(cfg, run_dir)
    base = checked.model_folder
    assert base is not None  # it has been downloaded
    resume_from = None
    if resuming:
        resume_from = world.from_first(lambda: resume.resume_point(run_dir, log), "the checkpoint to resume from")
    tokenizer = load_tokenizer(resume_from or base)
    folders = {"start_from": resume_from or base, "base": base}
    trainer = build_trainer(cfg, checked.algorithm, tokenizer, **folders, device=device, world=world)
    return RunStart(resolved, run_dir, checked, base, resume_from, resuming, tokenizer, trainer)


@contextmanager
def open_training_run(
    resolved: RunSettings,
    run_dir: Path,
    *,
    resuming: bool = False,
    reward_functions: Sequence[RewardFunction] = (),
    world: World = ALONE,
) -> Iterator[TrainingRun]:
    """Build a run of reinforcement learning from its settings, or from its newest checkpoint, and lock its folder. A
    collective operation: every rank of `world` builds the components, and the first alone changes the folder.

    ValueError, before anything is written, for settings that cannot be run or a run that cannot be resumed.
    """
    start = start_run(resolved, run_dir, resuming=resuming, world=world)
    training = load(start.cfg.data.train)
    prompts = start.render(training)
    fingerprints = {"data.train": fingerprint(training)} | learning_fingerprints(start.cfg)

    def summary(steps_done: int) -> dict[str, str]:
        return run_summary(start.cfg, start.checked.algorithm, start.trainer.policy, prompts, run_dir, steps_done)

    with open_components(start, prompts, fingerprints, summary, reward_functions) as run:
        yield run


@contextmanager
def open_components(
    start: RunStart,
    prompts: Sequence[Prompt],
    training: Mapping[str, str],
    summary: Callable[[int], dict[str, str]],
    reward_functions: Sequence[RewardFunction] = (),
) -> Iterator[TrainingRun]:
    """Open the run folder, the engine, the log and the trackers of a run of any stage; close them whatever happens.

    `prompts` are those to sample in training, `training` the fingerprints of the training data by setting; `summary`
    says after how many steps what the run is going to do.
    """
    cfg, run_dir, trainer, tokenizer = start.cfg, start.run_dir, start.trainer, start.tokenizer
    world, resuming, resume_from = trainer.world, start.resuming, start.resume_from
    validation = load(cfg.validation.data, limit=cfg.validation.problems) if cfg.validation.interval else []
    heldout = load(cfg.eval.heldout, limit=cfg.eval.heldout_problems) if cfg.eval.heldout_problems else []
    fingerprints = fingerprints_of(start.base, start.checked.template, training, validation)
    if resuming:
        stored = read_settings(run_dir)
        check_unchanged(stored, fingerprints, to_dict(cfg), log)
        fingerprints = stored.get("fingerprints", {}) | fingerprints
        report_processes(int(stored["config"].get("processes", 1)), world)
    validation_prompts, heldout_prompts = start.render(validation), start.render(heldout)
    steps_done = checkpoint.load(resume_from, trainer) if resume_from else 0

    with ExitStack() as stack:

        def open_folder() -> None:
            checkpoint.check_room(run_dir, trainer, keep=cfg.run.keep_last)
            stack.enter_context(store.lock_run_dir(run_dir))
            if resuming:
                resume.repair(run_dir, steps_done, log)
            store.open_run(
                run_dir,
                to_dict(cfg),
                start.resolved.origin,
                resuming=resuming,
                fingerprints=fingerprints,
                reward_functions={function.name: function.weight for function in reward_functions},
                stage=cfg.stage,
            )
            tokenizer.backend_tokenizer.save(str(run_dir / "tokenizer.json"))

        world.from_first(open_folder, "the run folder")
        if start.resolved.note:
            log(start.resolved.note)
        evaluation = {"validation": validation_prompts, "heldout": heldout_prompts}
        for name, line in (summary(steps_done) | _contamination(prompts, evaluation)).items():
            log(f"{name + ':':<15}{line}")
        generator = stack.enter_context(
            open_generator(
                cfg,
                start.checked.algorithm,
                prompts,
                sampling_params(cfg, start.checked.template),
                trainer,
                model_folder=start.base if cfg.lora.rank else resume_from or start.base,
                reward_functions=reward_functions,
            )
        )
        place: Place = "console" if cfg.stage == "rl" else "sft"
        logger = stack.enter_context(
            MetricsLogger(run_dir, steps=cfg.steps, start=steps_done, world=world, place=place)
        )
        generator.progress, trainer.on_microbatch = logger.progress, logger.progress.count
        tracked = TrackedRun(run_dir.name, "reasoner", to_dict(cfg), run_dir, steps_done)
        trackers = start.checked.trackers if world.is_first else ()
        tracking = stack.enter_context(Tracking(trackers, tracked, log=logger.log))
        shutdown = stack.enter_context(GracefulShutdown(logger.log, world))
        logger.progress.check = shutdown.poll
        yield TrainingRun(
            cfg=cfg,
            run_dir=run_dir,
            base=start.base,
            tokenizer=tokenizer,
            template=start.checked.template,
            trainer=trainer,
            generator=generator,
            validator=Validator(generator, validation_prompts, cfg, logger),
            heldout=heldout_prompts,
            logger=logger,
            tracking=tracking,
            shutdown=shutdown,
            start=steps_done,
            world=world,
        )


def _contamination(training: Sequence[Prompt], evaluation: Mapping[str, Sequence[Prompt]]) -> dict[str, str]:
    """The line of the summary on evaluation problems that stand in the training set; none without both."""
    sets = {name: [prompt.problem for prompt in prompts] for name, prompts in evaluation.items()}
    line = contamination_line([prompt.problem for prompt in training], sets) if training else ""
    return {"contamination": line} if line else {}


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
