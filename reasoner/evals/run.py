"""Run an evaluation: sample a model on problem sets, or read responses from files; grade them; write the eval log."""

from __future__ import annotations

import hashlib
import json
import math
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from data import Problem, load
from data.registry import check as check_problems
from data.registry import evaluation_spec
from reasoner.config.resolve import DTYPES
from reasoner.evals import PROBLEMS
from reasoner.evals import eval_log as files
from reasoner.evals.importers import read_responses
from reasoner.evals.result import EvalResult, Ks, score_responses
from reasoner.evals.sampling import generate_responses, num_missing
from reasoner.evals.tables import Sets, details, table
from reasoner.inference.factory import check_engine
from reasoner.inference.model_spec import EngineFactory, ModelSpec, engine_identity, model_fingerprint
from reasoner.progress import shown_progress
from reasoner.rollouts.cache import ResponseCache, digest
from reasoner.rollouts.dataset import filter_prompts
from reasoner.runs.rollouts import versions, write_json
from reasoner.types import Prompt, SamplingParams
from verifiers import VerifierPool, grader_version

# The keys of evaluation.json that make it this evaluation and no other.
_IDENTITY = ("model_fingerprint", "engine", "prompt", "sampling", "seed", "data", "responses")


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalRequest:
    """The arguments of an evaluation. None means "the model's own value", as Subject.of resolves it."""

    ks: Ks  # the K of pass@K, pass^K and cons@K
    greedy: bool = False  # evaluate greedy decoding too; alone where `ks` is empty
    num_samples: int | None = None  # of each problem; None: the largest K
    # A model on problem sets:
    model: str | None = None
    step: str | None = None  # of a run's checkpoint
    data: Sequence[str] = ()
    problems: int | None = None  # the first N of each set; 0: all; None: PROBLEMS of a generated set, all of others
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    prompt: str | None = None
    stop: Sequence[str] = ()
    engine: str = "auto"
    dtype: str | None = None
    seed: int = 0
    regrade: bool = False  # refuse to sample: only grade the cached responses again
    # Responses of files:
    responses: Sequence[Path] = ()
    cut: Sequence[str] = ()  # texts that end a response
    # Both:
    extract: str | None = None
    runs: Path = Path("runs")
    out: Path = Path("evals")
    name: str | None = None


@dataclass(frozen=True, slots=True)
class EvalRun:
    """A finished evaluation."""

    folder: Path
    about: dict[str, Any]  # the content of evaluation.json
    sets: Sets
    text: str  # the printed tables

    @property
    def provenance(self) -> str:
        """Data, model, engine, prompt and grader in three lines or more."""
        return _provenance(self.about)

    def figures(self) -> dict[str, dict[str, dict[str, Any]]]:
        """The numbers by problem set and by way of sampling."""
        return {spec: {way: result.figures() for way, result in ways.items()} for spec, ways in self.sets.items()}


def evaluate(request: EvalRequest) -> EvalRun:
    """Run the evaluation and write its folder (evals.eval_log). Progress goes to standard error.

    ValueError, before anything is sampled, for arguments that cannot be evaluated.
    """
    start = time.monotonic()
    _check_values(request)
    with VerifierPool(workers=min(8, max(1, (os.cpu_count() or 1) - 1))) as pool:
        about, sets = _of_responses(request, pool) if request.responses else _of_model(request, pool)
    folder = _folder(request, about)
    text = "\n\n".join([table(sets), *(details(spec, ways) for spec, ways in sets.items())])
    files.write(folder, about, sets, text)
    write_json(folder / "run.json", {"date": time.time(), "seconds": time.monotonic() - start, "versions": versions()})
    return EvalRun(folder, about, sets, text)


# ------------------------------------------------------------------------------------------------ foreign responses


def _of_responses(request: EvalRequest, pool: VerifierPool) -> tuple[dict[str, Any], Sets]:
    """Grade the responses of files."""
    if request.data or request.model or request.greedy or request.regrade:
        raise ValueError("--responses grades what is in the files; it takes no --model, --data, --greedy or --regrade")
    policy = request.extract or _policy_of(request.responses[0])
    rows_of = {str(path): read_responses(path, cut=request.cut) for path in request.responses}
    about = {
        "model": Path(request.responses[0]).stem,
        "model_fingerprint": "",
        "engine": "responses",
        "prompt": {
            "style": "responses",
            "extract": policy,
            "sha256": digest([prompt for rows in rows_of.values() for _, prompt, _ in rows]),
        },
        "sampling": {},
        "samples": min(len(responses) for rows in rows_of.values() for _, _, responses in rows),
        "seed": 0,
        "data": {spec: files.about_data([problem for problem, _, _ in rows]) for spec, rows in rows_of.items()},
        "responses": {spec: hashlib.sha256(Path(spec).read_bytes()).hexdigest() for spec in rows_of},
        "grader": grader_version(),
        "metrics": asdict(request.ks),
    }
    _check_names(list(rows_of))
    sets = {
        spec: {"sampled": score_responses(rows, pool, policy=policy, label=spec, temperature=None, ks=request.ks)}
        for spec, rows in rows_of.items()
    }
    return about, sets


def _policy_of(path: Path) -> str:
    """The extraction policy for a file of responses: of our own eval logs the one they were graded by, else lenient."""
    beside = path.parent / "evaluation.json"
    if not beside.is_file():
        return "lenient"
    return str(json.loads(beside.read_text("utf-8"))["prompt"]["extract"])


# ------------------------------------------------------------------------------------------------ a model


def _of_model(request: EvalRequest, pool: VerifierPool) -> tuple[dict[str, Any], Sets]:
    """Sample a model on problem sets and grade its responses. Responses are cached: an interrupted run continues."""
    specs = [evaluation_spec(spec) for spec in request.data or ["generated"]]
    _check_names(specs)
    for spec in specs:
        check_problems(spec)
    check_engine(request.engine)
    subject = ModelSpec.of(
        request.model or "base",
        runs=request.runs,
        step=request.step,
        prompt=request.prompt,
        extract=request.extract,
        stop=request.stop,
        temperature=request.temperature,
        top_p=request.top_p,
        max_tokens=request.max_tokens,
    )
    ways = _ways(request, subject)
    problems = {spec: load(spec, limit=_limit(request, spec)) for spec in specs}
    engine_config = subject.engine_config(request.engine, request.dtype)
    about: dict[str, Any] = {
        "model": subject.name,
        "model_fingerprint": model_fingerprint(subject.folder),
        "engine": engine_identity(engine_config),
        "prompt": {"style": subject.prompt, **asdict(subject.template)},
        "sampling": {way: _identity(sampling) for way, sampling in ways.items()},
        "samples": max(sampling.num_samples for sampling in ways.values()),
        "seed": request.seed,
        "data": {},
        "grader": grader_version(),
        "metrics": asdict(request.ks),
    }
    _folder(request, about, [name for name in _IDENTITY if name != "data"])  # refuse a used name before loading
    prompts = _prompts(subject, problems)
    about["data"] = {
        spec: files.about_data([prompt.problem for prompt in own], left_out=len(problems[spec]) - len(own))
        for spec, own in prompts.items()
    }
    _folder(request, about)  # and before anything is sampled
    _log(f"{_provenance(about)}\nthe first prompt:\n{prompts[specs[0]][0].text}")
    longest = max(len(prompt.token_ids) for own in prompts.values() for prompt in own)
    engine = EngineFactory(subject, engine_config, seed=request.seed, longest_prompt=longest)
    sets: dict[str, dict[str, EvalResult]] = {spec: {} for spec in specs}
    for way, sampling in ways.items():
        identity = {"model": about["model_fingerprint"], "engine": about["engine"], "sampling": _identity(sampling)}
        path = request.out / "cache" / str(about["model_fingerprint"]) / f"{digest(identity)}.jsonl"
        with ResponseCache(path, identity) as cache, shown_progress() as progress:
            for spec in specs:
                _report_missing(request, f"{spec}, {way}", prompts[spec], sampling, cache)
                progress.begin(f"{spec}, {way}")
                responses = generate_responses(
                    engine, prompts[spec], sampling, seed=request.seed, cache=cache, progress=progress
                )
                sets[spec][way] = score_responses(
                    [(p.problem, p.text, own) for p, own in zip(prompts[spec], responses, strict=True)],
                    pool,
                    policy=subject.template.extract,
                    label=spec,
                    temperature=sampling.temperature,
                    ks=request.ks if way == "sampled" else Ks(),
                    progress=progress,
                )
    engine.close()
    return about, sets


def _prompts(subject: ModelSpec, problems: Mapping[str, Sequence[Problem]]) -> dict[str, list[Prompt]]:
    """Render each set's prompts. A prompt must leave room for `max_tokens` of completion, or for half the context."""
    from reasoner.models.loading import load_tokenizer  # imports torch: some seconds, after everything is checked

    tokenizer = load_tokenizer(subject.folder)
    room = min(subject.max_tokens, max(1, subject.context // 2))
    return {
        spec: filter_prompts(own, subject.template, tokenizer, context=subject.context, max_tokens=room)
        for spec, own in problems.items()
    }


def _report_missing(
    request: EvalRequest, what: str, prompts: Sequence[Prompt], sampling: SamplingParams, cache: ResponseCache
) -> None:
    """Print how many responses are cached. ValueError where some are missing and `regrade` forbids sampling."""
    missing, total = num_missing(prompts, sampling, seed=request.seed, cache=cache), sampling.num_samples * len(prompts)
    _log(f"{what}: {total - missing:,} of {total:,} responses are there")
    if request.regrade and missing:
        raise ValueError(f"--regrade samples nothing, and {missing:,} of {total:,} responses ({what}) are not stored")


def _ways(request: EvalRequest, subject: ModelSpec) -> dict[str, SamplingParams]:
    """The sampling parameters of each way to answer: "sampled", "greedy", or both."""
    ways = {}
    ks = request.ks
    sampled = bool(ks.pass_at or ks.pass_hat or ks.cons_at) or not request.greedy
    n = request.num_samples or ks.largest
    if n < ks.largest:
        raise ValueError(f"--n is {n}; the largest K asked for needs {ks.largest} samples of each problem")
    if sampled:
        if not subject.temperature > 0:
            raise ValueError(
                f"--temperature is {subject.temperature:g}; it must be above 0 (the likeliest answer is --greedy)"
            )
        ways["sampled"] = SamplingParams(
            n, subject.temperature, subject.top_p, 0, subject.max_tokens, subject.template.stop
        )
    if request.greedy:
        ways["greedy"] = SamplingParams(1, 0.0, 1.0, 0, subject.max_tokens, subject.template.stop)
    return ways


def _identity(sampling: SamplingParams) -> dict[str, Any]:
    """The sampling parameters that change a response: all but the number of samples."""
    return {name: value for name, value in asdict(sampling).items() if name != "num_samples"}


def _check_values(request: EvalRequest) -> None:
    """ValueError for a value outside its range."""
    for flag, value, least in (
        ("--n", request.num_samples, 1),
        ("--problems", request.problems, 0),
        ("--max-tokens", request.max_tokens, 1),
    ):
        if value is not None and value < least:
            raise ValueError(f"{flag} is {value}; it must be at least {least}")
    if request.top_p is not None and not 0 < request.top_p <= 1:
        raise ValueError(f"--top-p is {request.top_p:g}; it must be above 0 and at most 1")
    if request.temperature is not None and not 0 <= request.temperature < math.inf:
        raise ValueError(f"--temperature is {request.temperature:g}; it must be at least 0")
    if request.dtype not in (None, *DTYPES):
        raise ValueError(f"--dtype is {request.dtype!r}; known are {', '.join(DTYPES)}")


def _limit(request: EvalRequest, spec: str) -> int | None:
    """The number of problems to load of a set; None: all."""
    if request.problems is None:
        return PROBLEMS if spec.startswith(("generated", "reasoning-gym")) else None
    return request.problems or None


# ------------------------------------------------------------------------------------------------ both


def _folder(request: EvalRequest, about: Mapping[str, Any], compared: Sequence[str] = _IDENTITY) -> Path:
    """The evaluation's folder. ValueError where it holds an evaluation that differs in one of the `compared` keys."""
    own = {name: about.get(name) for name in _IDENTITY}
    folder = request.out / (request.name or f"{files.model_name(str(about['model']))}-{digest(own, 8)}")
    if (folder / "evaluation.json").is_file():
        known = files.read_manifest(folder)
        differing = [name for name in compared if json.dumps(known.get(name)) != json.dumps(about.get(name))]
        if differing:
            raise ValueError(
                f"{folder} holds another evaluation ({', '.join(differing)} differ); choose another --name"
            )
    elif folder.exists() and any(folder.iterdir()):
        raise ValueError(f"{folder} is in use by something else; choose another --name")
    return folder


def _check_names(specs: Sequence[str]) -> None:
    """ValueError for two sets whose files would have the same name."""
    names: dict[str, str] = {}
    for spec in specs:
        other = names.setdefault(files.task_name(spec), spec)
        if other != spec or specs.count(spec) > 1:
            raise ValueError(f"sets {other!r} and {spec!r} would have the same files; evaluate them one by one")


def _provenance(about: Mapping[str, Any]) -> str:
    prompt = about["prompt"]
    return "\n".join(
        [
            *(f"data: {spec}, {_set(entry)}" for spec, entry in about["data"].items()),
            f"model: {about['model']} {about['model_fingerprint']}, engine: {about['engine']}, seed {about['seed']}",
            f"prompt: {prompt['style']}, answers read by {prompt['extract']!r}, grader {about['grader']}",
        ]
    )


def _set(entry: Mapping[str, Any]) -> str:
    left_out = f" ({entry['left_out']:,} left out)" if entry["left_out"] else ""
    return f"{entry['rows']:,} problems{left_out}, sha256 {entry['sha256']}"


def _log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
