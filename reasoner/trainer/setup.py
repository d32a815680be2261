"""Build the components of a training run from its settings, and close them whatever happens.

`reasoner train`, `reasoner doctor` and the benchmarks build them here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import torch
from transformers import PreTrainedTokenizerBase

from data import Problem, load
from reasoner.config.resolve import RunSettings, to_dict
from reasoner.config.schema import Config
from reasoner.console import log
from reasoner.distributed.world import ALONE, World
from reasoner.inference.factory import make_engine
from reasoner.models.folder import BaseModel, is_adapter, model_fingerprint
from reasoner.models.loading import context_length, load_policy, load_tokenizer
from reasoner.models.lora import add_adapter, load_weights
from reasoner.progress import Progress
from reasoner.rl.algorithms import Algorithm
from reasoner.rollouts.dataset import filter_prompts
from reasoner.rollouts.prefetch import RolloutPrefetcher
from reasoner.rollouts.prompts import Template
from reasoner.rollouts.reward_functions import RewardFunction
from reasoner.runs import rollouts as store
from reasoner.runs.run_dir import read_settings
from reasoner.runtime import setup_torch
from reasoner.trainer import checkpoint, resume
from reasoner.trainer.fingerprints import check_unchanged, fingerprints_of
from reasoner.trainer.metrics_logger import MetricsLogger
from reasoner.trainer.policy_trainer import PolicyTrainer
from reasoner.trainer.preflight import preflight
from reasoner.trainer.rollout_generator import RolloutGenerator, StepRollouts
from reasoner.trainer.run import TrainingRun
from reasoner.trainer.shutdown import GracefulShutdown
from reasoner.trainer.summary import log_run_summary
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
        return trainer
    policy = load_policy(start_from, device=device)
    cfg = resolve_weights(cfg, algorithm, policy)
    reference = None
    if cfg.algo.beta > 0:
        dtype = getattr(torch, cfg.algo.reference_dtype)
        reference = load_policy(base, device=device).to(dtype).requires_grad_(False)
    return PolicyTrainer(policy, reference, algorithm, cfg, tokenizer, world)


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
        world = trainer.world
        context = context_length(trainer.policy)
        # An adapter of an adapter's base cannot be sent alone: vLLM would need both.
        is_sent = cfg.lora.sync == "adapter" and not is_adapter(model_folder)
        rank = cfg.lora.rank if is_sent else 0
        engine = make_engine(cfg.engine, model_folder, max_model_len=context, seed=cfg.seed, adapter_rank=rank)
        stack.enter_context(closing(engine))
        trainer.sends_adapter = engine.accepts_adapter
        workers = -(-cfg.verify.workers // world.local_size)  # rounded up
        pool = stack.enter_context(VerifierPool(workers, cfg.verify.seconds, cfg.verify.memory_mib))
        prefetcher = stack.enter_context(RolloutPrefetcher[StepRollouts]())
        generator = RolloutGenerator(
            engine,
            pool,
            prompts,
            sampling,
            cfg,
            dynamic_sampling=algorithm.dynamic_sampling,
            reward_functions=reward_functions,
            prefetcher=prefetcher,
            progress=progress,
            world=world,
        )
        generator.attempt = trainer.attempt
        generator.update_weights(trainer.policy_state(), version=trainer.steps_done)
        yield generator


@contextmanager
def open_training_run(
    resolved: RunSettings,
    run_dir: Path,
    *,
    resuming: bool = False,
    reward_functions: Sequence[RewardFunction] = (),
    world: World = ALONE,
) -> Iterator[TrainingRun]:
    """Build a run from its settings, or from its newest checkpoint, and lock its folder. A collective operation: every
    rank of `world` builds the components, and the first alone changes the folder.

    ValueError, before anything is written, for settings that cannot be run or a run that cannot be resumed.
    """
    cfg = resolved.config
    check_processes(cfg, world)
    device = setup_torch(threads=cfg.threads, seed=cfg.seed)
    checked = preflight(cfg, run_dir)
    algorithm, template, base = checked.algorithm, checked.template, checked.model_folder
    assert base is not None  # it has been downloaded
    resume_from = None
    if resuming:
        resume_from = world.from_first(lambda: resume.resume_point(run_dir, log), "the checkpoint to resume from")
    tokenizer = load_tokenizer(resume_from or base)
    folders = {"start_from": resume_from or base, "base": base}
    trainer = build_trainer(cfg, algorithm, tokenizer, **folders, device=device, world=world)
    context = context_length(trainer.policy)

    training = load(cfg.data.train)
    validation = load(cfg.validation.data, limit=cfg.validation.problems) if cfg.validation.interval else []
    heldout = load(cfg.eval.heldout, limit=cfg.eval.heldout_problems) if cfg.eval.heldout_problems else []
    fingerprints = fingerprints_of(base, template, training, validation)
    if resuming:
        stored = read_settings(run_dir)
        check_unchanged(stored, fingerprints, to_dict(cfg), log)
        fingerprints = stored.get("fingerprints", {}) | fingerprints
        report_processes(int(stored["config"].get("processes", 1)), world)
    prompts, validation_prompts, heldout_prompts = (
        render_prompts(problems, cfg, template, tokenizer, context) if problems else []
        for problems in (training, validation, heldout)
    )
    start = checkpoint.load(resume_from, trainer) if resume_from else 0

    with ExitStack() as stack:

        def open_folder() -> None:
            checkpoint.check_room(run_dir, trainer, keep=cfg.run.keep_last)
            stack.enter_context(store.lock_run_dir(run_dir))
            if resuming:
                resume.repair(run_dir, start, log)
            store.open_run(
                run_dir,
                to_dict(cfg),
                resolved.origin,
                resuming=resuming,
                fingerprints=fingerprints,
                reward_functions={function.name: function.weight for function in reward_functions},
            )
            tokenizer.backend_tokenizer.save(str(run_dir / "tokenizer.json"))

        world.from_first(open_folder, "the run folder")
        if resolved.note:
            log(resolved.note)
        log_run_summary(cfg, algorithm, trainer.policy, prompts, run_dir, start)
        generator = stack.enter_context(
            open_generator(
                cfg,
                algorithm,
                prompts,
                sampling_params(cfg, template),
                trainer,
                model_folder=base if cfg.lora.rank else resume_from or base,
                reward_functions=reward_functions,
            )
        )
        logger = stack.enter_context(MetricsLogger(run_dir, steps=cfg.steps, start=start, world=world))
        generator.progress, trainer.on_microbatch = logger.progress, logger.progress.count
        tracked = TrackedRun(run_dir.name, "reasoner", to_dict(cfg), run_dir, start)
        trackers = checked.trackers if world.is_first else ()
        tracking = stack.enter_context(Tracking(trackers, tracked, log=logger.log))
        shutdown = stack.enter_context(GracefulShutdown(logger.log, world))
        logger.progress.check = shutdown.poll
        yield TrainingRun(
            cfg=cfg,
            run_dir=run_dir,
            base=base,
            tokenizer=tokenizer,
            trainer=trainer,
            generator=generator,
            validator=Validator(generator, validation_prompts, cfg, logger),
            heldout=heldout_prompts,
            logger=logger,
            tracking=tracking,
            shutdown=shutdown,
            start=start,
            world=world,
        )


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
