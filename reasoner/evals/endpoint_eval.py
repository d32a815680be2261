"""Evaluate a model on a server with OpenAI's interface: `reasoner eval --model-url`. Neither its weights nor its
tokenizer are needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from data import Problem, load
from data.environments.spec import has_turns
from reasoner.console import log
from reasoner.evals.manifest import eval_folder, provenance
from reasoner.evals.model_eval import data_entries, evaluate_ways, problem_specs, sampled_manifest, sampling_ways
from reasoner.evals.request import EvalRequest
from reasoner.evals.sampling import SampleCall
from reasoner.evals.tables import Sets
from reasoner.inference.endpoint import Endpoint, EndpointClient, EndpointSpec
from reasoner.inference.model_spec import DEFAULTS
from reasoner.progress import OnDecodeStep
from reasoner.rollouts.dataset import filter_gradable
from reasoner.rollouts.prompts import check_text, load_template
from reasoner.rollouts.seeds import digest
from reasoner.types import Prompt, Response, SamplingParams
from verifiers import VerifierPool

_STYLES = {"chat": "boxed", "completions": "r1-zero"}  # the default of --prompt, by --api


def evaluate_endpoint(request: EvalRequest, pool: VerifierPool) -> tuple[dict[str, Any], Sets]:
    """Ask the endpoint for responses to the problems of `request.data` and grade: (the manifest, the metrics by set and
    way).

    Responses are cached by address and name of the model. ValueError before anything is asked for arguments that cannot
    be evaluated.
    """
    specs = problem_specs(request)
    spec = _endpoint_spec(request)
    ways = sampling_ways(request, spec)
    problems = {name: load(name, limit=request.max_problems(name)) for name in specs}
    if any(has_turns(one) for own in problems.values() for one in own):
        raise ValueError("an environment of several turns cannot be evaluated on a server (--model-url)")
    prompts = {name: [_render(one, spec) for one in filter_gradable(own)] for name, own in problems.items()}
    manifest = sampled_manifest(
        request,
        spec,
        ways,
        model=spec.endpoint.model,
        model_fingerprint=digest([spec.endpoint.url, spec.endpoint.model, asdict(spec.template)]),
        engine=f"{spec.endpoint.api} of {spec.endpoint.url}",
        data=data_entries(problems, prompts),
    )
    eval_folder(request, manifest)
    log(f"{provenance(manifest)}\nthe first prompt:\n{prompts[specs[0]][0].text}")
    client = EndpointClient(spec.endpoint)

    def sample(
        calls: Sequence[SampleCall], sampling: SamplingParams, on_decode_step: OnDecodeStep | None = None
    ) -> list[list[tuple[Response, ...]]]:
        return [client.respond(call.prompts, sampling, call.seeds, on_decode_step) for call in calls]

    return manifest, evaluate_ways(request, manifest, sample, pool, prompts, ways)


def _endpoint_spec(request: EvalRequest) -> EndpointSpec:
    """Resolve the arguments. ValueError for a prompt that the interface cannot take."""
    assert request.model_url is not None and request.model_name is not None, "EvalRequest.check was not called"
    endpoint = Endpoint(
        request.model_url.rstrip("/"),
        request.model_name,
        request.api or "chat",
        request.api_key_variable or "OPENAI_API_KEY",
        request.concurrency if request.concurrency is not None else 16,
    )
    endpoint.check()
    style = request.prompt or _STYLES[endpoint.api]
    template = load_template(style)
    if template.chat and endpoint.api == "completions":
        raise ValueError(f"the prompt {style!r} is a chat, which the server must render; use --api chat")
    if (template.prefill or template.system) and endpoint.api == "chat":
        raise ValueError(f"the prompt {style!r} has a prefill or a system message; use --api completions")
    template = replace(template, extract=request.extract or template.extract, stop=tuple(request.stop or template.stop))
    return EndpointSpec(
        endpoint=endpoint,
        template=template,
        prompt=style,
        temperature=_or_default(request.temperature, "sampling.temperature"),
        top_p=_or_default(request.top_p, "sampling.top_p"),
        max_tokens=int(_or_default(request.max_tokens, "sampling.max_tokens")),
    )


def _or_default(value: float | None, setting: str) -> float:
    return float(DEFAULTS[setting]) if value is None else value


def _render(problem: Problem, spec: EndpointSpec) -> Prompt:
    """The problem as text. There are no token ids: the tokenizer is the server's."""
    check_text(problem.question, f"the question of problem {problem.id!r}")
    text = spec.template.text.replace("{question}", problem.question) + spec.template.prefill
    return Prompt(problem, text, spec.template.prefill, (), spec.template.extract)
