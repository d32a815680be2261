"""Evaluate a model on problem sets: sample responses, or take them from the cache, and grade them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from itertools import chain
from typing import Any

from data import Problem, load
from data.registry import check as check_problems
from data.registry import evaluation_spec
from reasoner.console import log
from reasoner.distributed.world import ALONE, World
from reasoner.evals import eval_log
from reasoner.evals.contamination import contamination_of_model
from reasoner.evals.manifest import IDENTITY, check_set_names, eval_folder, make_manifest, provenance
from reasoner.evals.request import EvalRequest
from reasoner.evals.response_cache import ResponseCache
from reasoner.evals.result import EvalResult, MetricKs, sample_and_score
from reasoner.evals.sampling import Sampler, num_missing
from reasoner.evals.tables import Sets
from reasoner.inference.factory import check_engine
from reasoner.inference.model_spec import EngineFactory, ModelSpec, engine_identity
from reasoner.progress import shown_progress
from reasoner.rollouts.dataset import filter_prompts
from reasoner.rollouts.seeds import digest
from reasoner.tools.names import environments_of
from reasoner.types import Prompt, SamplingParams
from verifiers import VerifierPool

PromptsBySet = Mapping[str, Sequence[Prompt]]

_MODEL_OPTIONS = ("runs", "step", "prompt", "extract", "stop", "temperature", "top_p", "max_tokens", "tools")


def evaluate_model(request: EvalRequest, pool: VerifierPool, world: World = ALONE) -> tuple[dict[str, Any], Sets]:
    """Sample the model on the problem sets of `request.data` and grade: (the manifest, the metrics by set and way).

    Responses are cached, so that an interrupted evaluation continues. ValueError before anything is sampled for
    arguments that cannot be evaluated. Of several ranks this is the first; the others are in serve_first.
    """
    specs = [evaluation_spec(spec) for spec in request.data or ["generated"]]
    check_set_names(specs)
    for spec in specs:
        check_problems(spec, download=True)  # before the model, which is larger
    engine_name = request.engine or "auto"
    check_engine(engine_name)
    model = ModelSpec.of(request.model or "base", **{name: getattr(request, name) for name in _MODEL_OPTIONS})
    ways = _sampling_ways(request, model)
    problems = {spec: load(spec, limit=request.max_problems(spec)) for spec in specs}
    engine_config = model.engine_config(engine_name, request.dtype)
    manifest = make_manifest(
        model=model.name,
        model_fingerprint=model.fingerprint,
        engine=engine_identity(engine_config, model.tools),
        prompt={"style": model.prompt, **asdict(model.template)},
        sampling={way: _sampling_identity(sampling) for way, sampling in ways.items()},
        num_samples=max(sampling.num_samples for sampling in ways.values()),
        seed=request.sampling_seed,
        ks=request.ks,
    )
    # Refuse a used name before loading. The prompts, which decide the data's entry, are not rendered yet.
    eval_folder(request, manifest, [name for name in IDENTITY if name != "data"])
    prompts = _render_prompts(model, problems)
    manifest["data"] = {
        spec: eval_log.data_entry([prompt.problem for prompt in own], left_out=len(problems[spec]) - len(own))
        for spec, own in prompts.items()
    }
    eval_folder(request, manifest)  # and before anything is sampled
    log(f"{provenance(manifest)}\nthe first prompt:\n{prompts[specs[0]][0].text}")
    if line := contamination_of_model(model.folder, problems):
        log(line)
    longest = max(len(prompt.token_ids) for own in prompts.values() for prompt in own)
    environments = environments_of(chain.from_iterable(problems.values()), pool, model.tools, model.prompt)
    if environments and world.size > 1:
        raise ValueError("an environment of several turns is evaluated by one process")
    limits = {"seed": request.sampling_seed, "longest_prompt": longest}
    with closing(EngineFactory(model, engine_config, **limits, environments=environments)) as engine:
        return manifest, _evaluate_ways(request, manifest, Sampler(engine, world), pool, prompts, ways)


def _evaluate_ways(
    request: EvalRequest,
    manifest: Mapping[str, Any],
    sampler: Sampler,
    pool: VerifierPool,
    prompts: PromptsBySet,
    ways: Mapping[str, SamplingParams],
) -> Sets:
    """The metrics of every problem set for each way of sampling: "sampled", "greedy" or both."""
    sets: dict[str, dict[str, EvalResult]] = {spec: {} for spec in prompts}
    fingerprint = str(manifest["model_fingerprint"])
    for way, sampling in ways.items():
        identity = {"model": fingerprint, "engine": manifest["engine"], "sampling": manifest["sampling"][way]}
        path = request.out / "cache" / fingerprint / f"{digest(identity)}.jsonl"
        with closing(ResponseCache(path, identity)) as cache, shown_progress() as progress:
            for spec, own in prompts.items():
                _report_missing(request, f"{spec}, {way}", own, sampling, cache)
                progress.begin(f"{spec}, {way}")
                sets[spec][way] = sample_and_score(
                    sampler,
                    pool,
                    own,
                    sampling,
                    seed=request.sampling_seed,
                    label=spec,
                    ks=request.ks if way == "sampled" else MetricKs(),
                    cache=cache,
                    progress=progress,
                )
    return sets


def _render_prompts(model: ModelSpec, problems: Mapping[str, Sequence[Problem]]) -> dict[str, list[Prompt]]:
    """Render each set's prompts."""
    from reasoner.models.loading import load_tokenizer  # imports torch: some seconds, after everything is checked

    tokenizer = load_tokenizer(model.folder)
    context, room = model.context, model.completion_room
    return {
        spec: filter_prompts(own, model.template, tokenizer, context=context, max_tokens=room)
        for spec, own in problems.items()
    }


def _report_missing(
    request: EvalRequest, title: str, prompts: Sequence[Prompt], sampling: SamplingParams, cache: ResponseCache
) -> None:
    """Log how many responses are cached. ValueError where some are missing and `regrade` forbids sampling."""
    missing = num_missing(prompts, sampling, seed=request.sampling_seed, cache=cache)
    total = sampling.num_samples * len(prompts)
    log(f"{title}: {total - missing:,} of {total:,} responses are cached")
    if request.regrade and missing:
        raise ValueError(
            f"--regrade samples nothing, and {missing:,} of {total:,} responses ({title}) are not stored for this "
            "model, engine, version and device; --responses grades the samples in an evaluation's folder"
        )


def _sampling_ways(request: EvalRequest, model: ModelSpec) -> dict[str, SamplingParams]:
    """The sampling parameters of each way to answer: "sampled", "greedy", or both."""
    ways = {}
    ks = request.ks
    limits: dict[str, Any] = {"max_tokens": model.max_tokens, "stop": model.template.stop}
    n = request.num_samples or ks.largest
    if n < ks.largest:
        raise ValueError(f"--num-samples is {n}; the largest K asked for needs {ks.largest} samples of each problem")
    if request.is_sampled:
        if not model.temperature > 0:
            raise ValueError(
                f"--temperature is {model.temperature:g}; it must be above 0 (the likeliest answer is --greedy)"
            )
        ways["sampled"] = SamplingParams(num_samples=n, temperature=model.temperature, top_p=model.top_p, **limits)
    if request.greedy:
        ways["greedy"] = SamplingParams(num_samples=1, temperature=0.0, **limits)
    return ways


def _sampling_identity(sampling: SamplingParams) -> dict[str, Any]:
    """The sampling parameters that change a response: all but the number of samples."""
    return {name: value for name, value in asdict(sampling).items() if name != "num_samples"}
