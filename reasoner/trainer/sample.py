"""Graded samples of a model as a run folder: rollouts and their metrics, without training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from pathlib import Path

from data import Problem
from data.registry import fingerprint
from reasoner.config.schema import EngineConfig
from reasoner.console import log
from reasoner.inference.model_spec import EngineFactory, ModelSpec
from reasoner.models.loading import load_tokenizer
from reasoner.rollouts.dataset import filter_prompts
from reasoner.rollouts.generate import generate_groups, num_repeats
from reasoner.rollouts.reward_functions import source_fingerprint
from reasoner.runs import rollouts as store
from reasoner.runs.metrics import metrics_prefix, truncate_logs
from reasoner.runs.run_dir import check_free, read_settings, stage_of
from reasoner.runs.run_start import lock_run_dir, open_run
from reasoner.tools.names import environments_of, function_tools
from reasoner.trainer.metrics_logger import MetricsLogger
from reasoner.trainer.resume import check_unchanged
from reasoner.trainer.step_metrics import StepTimer, grading_times, rollout_metrics, tool_metrics
from reasoner.types import Prompt, SamplingParams
from verifiers import RewardWeights, VerifierPool

PROMPTS_PER_STEP = 32  # of a shard of rollouts, which is written when its last completion is graded


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRequest:
    """What is sampled: the model, the problems, the number of completions of each."""

    model: ModelSpec
    problems: Sequence[Problem]
    data: str  # name of the problems
    num_skipped: int = 0  # problems of that name before the first one
    num_samples: int
    seed: int = 0
    engine: EngineConfig
    workers: int = 1  # grading processes

    def settings(self) -> dict[str, object]:
        """The settings of the run folder, by the names of a training run's where there are some."""
        tools = self.model.tools
        return {
            "model": self.model.name,
            "algo.name": "sample",
            "steps": -(-len(self.problems) // PROMPTS_PER_STEP),
            "data.train": self.data,
            "data.problems": len(self.problems),
            **({"data.skip": self.num_skipped} if self.num_skipped else {}),
            "data.prompts_per_step": PROMPTS_PER_STEP,
            "algo.group_size": self.num_samples,
            "sampling.temperature": self.model.temperature,
            "sampling.top_p": self.model.top_p,
            "sampling.max_tokens": self.model.max_tokens,
            "prompt.style": self.model.prompt,
            **({f"tools.{key}": value for key, value in asdict(tools).items()} if tools.names else {}),
            "seed": self.seed,
        }


def sample(request: SampleRequest, run_dir: Path) -> None:
    """Sample and grade completions of each problem into a run folder. A folder that was begun by the same request is
    completed. The seed of a completion is a function of (seed, problem, sample), so more samples extend earlier ones.

    ValueError for a folder that is in use by anything else, and where model, prompt or problems have changed since.
    """
    settings, model = request.settings(), request.model
    resuming = (run_dir / "config.json").is_file()
    if not resuming:
        check_free(run_dir)
    fingerprints = {"model": model.fingerprint, "prompt.style": model.template.fingerprint}
    fingerprints["data.train"] = fingerprint(request.problems)
    if model.tools.names:
        fingerprints["tools.names"] = source_fingerprint(function_tools(model.tools.names).values())
    start = _num_done(run_dir, settings, fingerprints) if resuming else 0
    tokenizer = load_tokenizer(model.folder)
    prompts = filter_prompts(
        request.problems, model.template, tokenizer, context=model.context, max_tokens=model.completion_room
    )
    numbered = list(zip(prompts, num_repeats(prompts), strict=True))  # a part of a mixture may come several times
    steps = [numbered[i : i + PROMPTS_PER_STEP] for i in range(0, len(prompts), PROMPTS_PER_STEP)]
    longest = max(len(prompt.token_ids) for prompt in prompts)
    with ExitStack() as stack:
        pool = stack.enter_context(VerifierPool(request.workers))
        environments = environments_of(request.problems, pool, model.tools, model.prompt)
        stack.enter_context(lock_run_dir(run_dir))
        open_run(run_dir, settings, {}, resuming=resuming, fingerprints=fingerprints, stage="sample")
        store.delete_from(run_dir, start)
        truncate_logs(run_dir, start)
        tokenizer.backend_tokenizer.save(str(run_dir / "tokenizer.json"))
        limits = {"seed": request.seed, "longest_prompt": longest}
        factory = EngineFactory(model, request.engine, **limits, environments=environments)
        stack.enter_context(closing(factory))
        if start < len(steps):
            factory()  # before the clock of the run: the start of an engine is no time of sampling, in training either
        logger = stack.enter_context(MetricsLogger(run_dir, steps=len(steps), start=start))
        timer = None
        for step in range(start, len(steps)):
            timer = StepTimer(previous=timer)
            _sample_step(request, factory, pool, logger, timer, step, steps[step])


def _sample_step(
    request: SampleRequest,
    factory: EngineFactory,
    pool: VerifierPool,
    logger: MetricsLogger,
    timer: StepTimer,
    step: int,
    prompts: Sequence[tuple[Prompt, int]],
) -> None:
    """Sample a shard, and record it: rollouts first, then metrics."""
    model, num = request.model, request.num_samples
    sampling = SamplingParams(
        num_samples=num,
        temperature=model.temperature,
        top_p=model.top_p,
        max_tokens=model.max_tokens,
        stop=model.template.stop,
    )
    logger.progress.begin(f"shard {step}")
    with timer.phase("time/generate"):
        groups = generate_groups(
            factory(),
            pool,
            [prompt for prompt, _ in prompts],
            sampling,
            RewardWeights(),
            run_seed=request.seed,
            step="sample",
            repeats=[number for _, number in prompts],
            progress=logger.progress,
        )
    store.write_step(logger.run_dir, step, groups, [0.0] * num * len(groups))
    num_tokens = sum(group.num_tokens for group in groups)
    metrics = {"step": step, "num_tokens": logger.num_tokens() + num_tokens, **rollout_metrics(groups)}
    if model.tools.names:
        metrics |= tool_metrics(groups)
    logger.write(metrics, timer.times(num_tokens) | grading_times(groups), example=groups[0].completions[0].text)


def _num_done(run_dir: Path, settings: Mapping[str, object], fingerprints: Mapping[str, str]) -> int:
    """The number of shards that the folder holds. ValueError for a folder of anything else."""
    stored = read_settings(run_dir)
    if stage_of(stored) != "sample" or stored["config"] != settings:
        raise ValueError(f"{run_dir} is in use by another run, or by samples with other settings; choose another name")
    check_unchanged(stored, fingerprints, settings, log)
    num = len(metrics_prefix(run_dir))
    return next((step for step in range(num) if not store.readable(store.shard_path(run_dir, step))), num)
