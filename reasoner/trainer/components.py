"""The components that learn and sample: the trainer with its model, the prompts, and the engine with the verifier pool.

Training, `reasoner doctor` and the benchmarks build them here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import torch
from transformers import PreTrainedTokenizerBase

from reasoner.config.schema import Config
from reasoner.console import log
from reasoner.distributed.world import ALONE, LONG_TIME_LIMIT, World
from reasoner.inference.answers import AnswerLog
from reasoner.inference.decoding import check_decoding
from reasoner.inference.factory import NoEngine, Turns, make_engine, training_engine
from reasoner.inference.remote_teacher import RemoteTeacher
from reasoner.inference.reward_model import load_reward_models
from reasoner.models.folder import BaseModel, is_adapter, model_fingerprint
from reasoner.models.loading import check_supported, config_context, context_length, load_config, load_policy
from reasoner.models.lora import add_adapter, load_weights
from reasoner.models.resolve import resolve_model
from reasoner.models.reward_model import load_reward_model
from reasoner.models.shard_on_load import mesh_of_shards
from reasoner.models.sharding import reshard
from reasoner.rl.algorithms import resolve_algorithm
from reasoner.rollouts.dataset import prompt_token_limit
from reasoner.rollouts.generate import RolloutPrefetcher
from reasoner.rollouts.prompts import Template, with_teacher_prompt
from reasoner.rollouts.reward_functions import RewardFunction, load_reward_functions
from reasoner.rollouts.reward_models import parse_reward_models
from reasoner.rollouts.reward_process import RewardProcess
from reasoner.runtime import cuda_context
from reasoner.tools.names import environments_of
from reasoner.trainer.rollout_generator import RolloutGenerator, StepRollouts
from reasoner.trainer.sync_certificate import PROBE_LENGTH
from reasoner.trainer.trainer import Trainer
from reasoner.types import Engine, Prompt, SamplingParams
from verifiers import VerifierPool


def build_trainer(
    cfg: Config,
    tokenizer: PreTrainedTokenizerBase,
    *,
    start_from: Path,
    base: Path,
    device: torch.device,
    world: World = ALONE,
) -> Trainer:
    """Load the policy from `start_from`, and with a KL penalty the reference from `base`, the initial model.

    With LoRA the policy is the initial model with an adapter, that of `start_from` if it is another folder, and the
    reference is the policy without it. With optim.sharding each rank loads its shards alone.
    """
    algorithm, reference, base_model = resolve_algorithm(cfg.algo), None, None
    mesh = mesh_of_shards(cfg.optim.sharding, world, device)
    frozen = partial(load_policy, device=device, dtype=getattr(torch, cfg.optim.dtype), mesh=mesh)  # as passes cast it
    if cfg.lora.rank:
        policy = load_policy(base, device=device, dtype=getattr(torch, cfg.lora.base_dtype), mesh=mesh)
        add_adapter(policy, cfg.lora, seed=cfg.seed)
        if start_from != base:
            load_weights(policy, start_from)
        base_model = BaseModel(cfg.model, str(base.resolve()), model_fingerprint(base))
        reference = policy if cfg.algo.beta > 0 else None
    else:
        policy = load_policy(start_from, device=device, mesh=mesh)
        if cfg.algo.beta > 0:
            reference = frozen(base).requires_grad_(False)
    teacher, urls = None, cfg.teacher.urls
    if cfg.teacher.loaded:
        teacher = frozen(resolve_model(cfg.teacher.model, runs=Path(cfg.run.dir))).requires_grad_(False)
    remote_teacher = RemoteTeacher(urls, tokenizer, cfg.engine, world=world) if urls else None
    trainer = Trainer(
        policy,
        reference,
        algorithm,
        cfg,
        tokenizer,
        world,
        base_model=base_model,
        teacher=teacher,
        remote_teacher=remote_teacher,
    )
    if mesh is not None:
        check_supported(policy)
    if training_engine(cfg.engine, start_from) == "transformers":
        check_decoding(policy)  # before anything is written
        reshard(policy)
    if trainer.critic is not None and cfg.critic.init:
        folder = resolve_model(cfg.critic.init, runs=Path(cfg.run.dir))
        weights = {  # by folder: a run has several names
            resolve_model(name, runs=Path(cfg.run.dir)).resolve(): weight
            for name, weight in parse_reward_models(cfg.reward.model).items()
        }
        model = load_reward_model(folder, device=trainer.model.device)
        trainer.critic.start_from(model, weight=weights.get(folder.resolve(), 1.0))
    return trainer


def sampling_params(cfg: Config, template: Template) -> SamplingParams:
    """The sampling parameters of training: algo.group_size completions for each prompt."""
    return SamplingParams(
        num_samples=cfg.algo.group_size,
        temperature=cfg.sampling.temperature,
        max_tokens=cfg.sampling.max_tokens,
        stop=template.stop,
    )


def with_teacher_prompts(
    prompts: Sequence[Prompt], cfg: Config, template: Template, tokenizer: PreTrainedTokenizerBase
) -> list[Prompt]:
    """The prompts, with teacher.prompt each with the ids that the teacher reads in its place. Drops and reports those
    that are too long for the teacher. ValueError where none is left, or a problem lacks what teacher.prompt names.
    """
    if not cfg.teacher.prompt:
        return list(prompts)
    context = config_context(load_config(resolve_model(cfg.teacher.model, runs=Path(cfg.run.dir))))
    limit = prompt_token_limit(context=context, max_tokens=cfg.sampling.max_tokens)
    own = [with_teacher_prompt(prompt, cfg.teacher.prompt, template, tokenizer) for prompt in prompts]
    fitting = [prompt for prompt in own if len(prompt.teacher_ids) <= limit]
    if not fitting:
        raise ValueError(f"teacher.prompt: every one of {len(own)} prompts is longer than {limit} tokens")
    if len(fitting) < len(own):
        log(f"dropped {len(own) - len(fitting)} of {len(own)} prompts: longer than {limit} tokens for the teacher")
    return fitting


@contextmanager
def open_generator(
    cfg: Config,
    prompts: Sequence[Prompt],
    template: Template,
    trainer: Trainer,
    *,
    model_folder: Path,
    reward_functions: Sequence[RewardFunction] = (),
    evaluated: Sequence[Prompt] = (),
    samples: bool = True,
    run_dir: Path | None = None,
) -> Iterator[RolloutGenerator]:
    """Start engine and verifier pool, with the trainer's weights; stop both at the end, whatever happens. Each rank of
    the trainer's world has an engine and its share of the grading processes. `evaluated`: the prompts of evaluations.
    No engine is started for a run in which nothing `samples`. `run_dir`: where answers of tools and environments are
    logged.
    """
    sampling = sampling_params(cfg, template)
    if isinstance(trainer.teacher, RemoteTeacher):
        trainer.teacher.check_room(max(len(one.token_ids) for one in prompts) + cfg.sampling.max_tokens)
    with ExitStack() as stack:
        # Rollouts may be generated in a thread, while the trainer exchanges too; a rank may wait for servers meanwhile.
        seconds = timedelta(seconds=cfg.engine.timeout_seconds)
        world = trainer.world.with_own_group(trainer.world.time_limit + seconds)
        eval_world = trainer.world.with_own_group(LONG_TIME_LIMIT)
        # An adapter of an adapter's base cannot be sent alone: vLLM would need both.
        rank = 0 if is_adapter(model_folder) else cfg.lora.rank
        workers = -(-cfg.verify.workers // world.local_size)  # rounded up
        pool = stack.enter_context(VerifierPool(workers, cfg.verify.seconds, cfg.verify.memory_mib))
        log = AnswerLog(run_dir, trainer.steps_done, world.rank) if run_dir else None
        engine: Engine = NoEngine()
        if samples:
            sampled = (*prompts, *evaluated)
            environments = environments_of((one.problem for one in sampled), pool, cfg.tools, cfg.prompt.style)
            longest = max((len(one.token_ids) for one in sampled), default=0) + cfg.sampling.max_tokens
            engine = make_engine(
                cfg.engine,
                model_folder,
                # Not the whole context, which vLLM's cache has to hold once: 131,072 tokens of Llama 3.1 8B are 16 GiB.
                max_model_len=min(context_length(trainer.model), max(longest, PROBE_LENGTH)),
                seed=cfg.seed,
                adapter_rank=rank,
                is_updated=True,
                world=world,
                run=str(run_dir or ""),
                turns=Turns(cfg.tools, cfg.prompt.style, template, environments, log),
            )
        stack.enter_context(closing(engine))
        prefetcher = stack.enter_context(RolloutPrefetcher[StepRollouts](cuda_context(trainer.model.device)))
        functions, spec, limits = [*reward_functions], cfg.reward.functions, cfg.verify
        if own := load_reward_functions(spec):  # they are called in a process of their own
            process = RewardProcess(spec, seconds=limits.seconds, memory_mib=limits.memory_mib)
            stack.enter_context(process)
            functions += [replace(function, process=process) for function in own]
        generator = RolloutGenerator(
            engine,
            pool,
            prompts,
            sampling,
            cfg,
            reward_functions=functions,
            reward_models=load_reward_models(cfg, prompts, trainer.model.device),
            prefetcher=prefetcher,
            world=world,
            eval_world=eval_world,
            log=log,
        )
        generator.update_weights(trainer.model, version=trainer.steps_done)
        yield generator
