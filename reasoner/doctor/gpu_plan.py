"""`reasoner doctor --gpu KIND`: a run on N GPUs of a kind, predicted from its settings and the model's shape alone.

No GPU is needed and no weights are loaded: memory by the formula of doctor.memory, time by doctor.step_model.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from math import ceil
from typing import Any

from transformers import PreTrainedModel

from reasoner.config.presets import HEADROOM
from reasoner.config.recipes import RECIPES
from reasoner.config.schema import Config
from reasoner.doctor.findings import Finding, Severity
from reasoner.doctor.gpus import Gpu
from reasoner.doctor.memory import MemoryEstimate, model_sizes, num_parameters
from reasoner.doctor.preset_fit import LONGEST_PROMPT, MOST_PROMPT, meta_model
from reasoner.doctor.rank_memory import STRATEGIES, RankMemory, first_that_fits
from reasoner.doctor.step_model import (
    LATENCY_LIMIT,
    ModelShape,
    StepTime,
    StepWork,
    latency_share,
    servers_from,
    step_time,
)
from reasoner.models.loading import context_length, load_meta_model
from reasoner.models.lora import num_adapter_parameters
from reasoner.rl.algorithms import Algorithm, critic_passes, resolve_algorithm
from reasoner.trainer.preflight import ResolvedNames

_GIB = 2**30


@dataclass(frozen=True, slots=True)
class GpuPlan:
    """The predictions for a run on `cfg.processes` GPUs of a kind."""

    name: str  # of the kind
    gpu: Gpu
    cfg: Config
    model: PreTrainedModel  # on the meta device
    algorithm: Algorithm

    @property
    def available(self) -> float:
        """Bytes of a GPU that a prediction may use."""
        return (1 - HEADROOM) * self.gpu.memory

    def memory(self) -> RankMemory:
        """The memory of each rank."""
        prompts = ceil(self.cfg.data.prompts_per_step / self.cfg.processes)
        cfg = replace(self.cfg, data=replace(self.cfg.data, prompts_per_step=prompts))
        estimate = MemoryEstimate(self.model, self.algorithm, cfg, self._longest_prompt(), "cuda", self.gpu.memory)
        return RankMemory(estimate, cfg.processes)

    def shape(self) -> ModelShape:
        """What decides the time of the model's passes."""
        total, sizes = num_parameters(self.model), model_sizes(self.model)
        lora = self.cfg.lora
        trained = num_adapter_parameters(self.model, lora) if lora.rank else total
        return ModelShape(total, trained, 2 * sizes.keys * sizes.layers)

    def work(self) -> StepWork:
        """A step with completions of half of sampling.max_tokens on average, and one of all of them."""
        cfg = self.cfg
        algorithm = self.algorithm
        old = algorithm.updates > 1 or algorithm.trust != "none"
        has_own_critic = algorithm.critic and algorithm.critic_backbone == "separate"
        critic_epochs, critic_minibatches = critic_passes(algorithm, cfg.critic)
        return StepWork(
            prompts=cfg.data.prompts_per_step,
            group_size=cfg.algo.group_size,
            prompt_tokens=self._longest_prompt(),
            mean_tokens=cfg.sampling.max_tokens / 2,
            longest=cfg.sampling.max_tokens,
            epochs=algorithm.epochs,
            minibatches=algorithm.minibatches,
            critic_epochs=critic_epochs if has_own_critic else 0,
            critic_minibatches=critic_minibatches,
            token_values=cfg.run.token_stats * (2 + (cfg.algo.beta > 0) + cfg.run.importance_ratio),
            forward_passes=(cfg.algo.beta > 0) + old + algorithm.critic,
            recompute=cfg.optim.recompute,
            micro_batch_tokens=cfg.optim.micro_batch_tokens,
        )

    def _longest_prompt(self) -> int:
        most = LONGEST_PROMPT.get(self.cfg.data.train, MOST_PROMPT)
        return min(most, context_length(self.model) - self.cfg.sampling.max_tokens)


def gpu_plan(cfg: Config, resolved: ResolvedNames, name: str, gpu: Gpu) -> GpuPlan:
    """The plan of a run. ValueError for a model that is neither on this machine nor the model of a preset."""
    recipe = next((recipe for recipe in RECIPES.values() if cfg.model in recipe.models), None)
    if resolved.model_folder is not None:
        model = load_meta_model(resolved.model_folder)
    elif recipe is not None:
        model = meta_model(recipe.shape)
    else:
        raise ValueError(f"{cfg.model} is not in the cache and no preset has its shape: download it first")
    if cfg.engine.name == "auto" and not cfg.engine.urls:  # what a machine with GPUs samples with
        cfg = replace(cfg, engine=replace(cfg.engine, name="vllm"))
    return GpuPlan(name, gpu, cfg, model, resolve_algorithm(cfg.algo))


def plan_findings(plan: GpuPlan, measurements: dict[str, Any]) -> Iterator[Finding]:
    """The findings: memory of each way to hold the weights, the way to take, time of a step, and servers. Fills
    `measurements` with the predictions.
    """
    count, work = plan.cfg.processes, plan.work()
    yield Finding(
        Severity.OK,
        "prediction",
        f"{count} x {plan.name} of {plan.gpu.memory / _GIB:.0f} GiB, by formulas and data sheets, not measured; "
        f"completions of {work.mean_tokens:,.0f} tokens on average and of {work.longest:,} at most, prompts of "
        f"{work.prompt_tokens:,}",
    )
    memory = plan.memory()
    peaks = {sharding: memory.peak(sharding) for sharding in (STRATEGIES if count > 1 else STRATEGIES[:1])}
    for sharding, peak in peaks.items():
        sizes = {name.replace("_", " "): size / _GIB for name, size in memory.parts(sharding).items()}
        parts = ", ".join(f"{name} {size:.1f}" for name, size in sizes.items() if size >= 0.05)
        fit = "fits" if peak <= plan.available else "does not fit"
        text = f"{sharding}: {peak / _GIB:,.1f} of {plan.available / _GIB:.1f} GiB on each GPU, {fit} ({parts})"
        yield Finding(Severity.OK, "memory", text)
    fitting = first_that_fits(peaks, plan.available)
    yield _sharding_finding(fitting)
    sharding = fitting or STRATEGIES[-1]
    time = step_time(plan.shape(), plan.gpu, work, count, sharding)
    measurements |= {"predicted_peak": peaks, "predicted_sharding": fitting, "predicted_seconds": asdict(time)}
    yield _time_finding(time, work)
    yield _servers_finding(plan, sharding)


def _sharding_finding(sharding: str | None) -> Finding:
    if sharding is not None:
        why = "the fastest that fits" if sharding != STRATEGIES[0] else "every GPU holds the whole model"
        suggestion = "" if sharding == STRATEGIES[0] else f"--optim.sharding {sharding}"
        return Finding(Severity.OK, "sharding", f"{sharding}: {why}", suggestion)
    text = "no way to hold the weights fits: take more GPUs, lower optim.micro_batch_tokens or engine.gpu_memory, use "
    return Finding(Severity.ERROR, "sharding", f"{text}optim.recompute or lora.rank")


def _time_finding(time: StepTime, work: StepWork) -> Finding:
    parts = ", ".join(f"{name} {seconds:.1f}" for name, seconds in asdict(time).items() if seconds >= 0.05)
    tokens = work.prompts * work.group_size * work.mean_tokens / time.total
    return Finding(
        Severity.OK, "time", f"{time.total:,.1f} s a step ({parts}): {tokens:,.0f} completion tokens a second"
    )


def _servers_finding(plan: GpuPlan, sharding: str) -> Finding:
    """Whether vLLM servers apart (engine.urls) pay, or from how many GPUs on."""
    shape, work = plan.shape(), plan.work()
    share = latency_share(shape, plan.gpu, work, plan.cfg.processes, sharding)
    text = f"the longest completion alone takes {share:.0%} of a step"
    if plan.cfg.engine.urls:
        return Finding(Severity.OK, "servers", "engine.urls is set: the sampling above is that of as many GPUs apart")
    if share > LATENCY_LIMIT:
        advice = "more GPUs hardly help: sample on servers apart (engine.urls, max_off_policy_steps), or take fewer"
        return Finding(Severity.WARNING, "servers", f"{text}, {advice}")
    start = servers_from(shape, plan.gpu, work, sharding)
    later = f"over {LATENCY_LIMIT:.0%} from {start} GPUs on" if start else f"{LATENCY_LIMIT:.0%} at most up to 1,024"
    return Finding(Severity.OK, "servers", f"engines in the ranks: {text}, {later}")
