"""`reasoner eval`: a model on problem sets, or responses that are there already, with intervals."""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from data import Problem, load
from data.registry import check as check_problems
from data.registry import measured_on
from reasoner.config.resolve import DTYPES
from reasoner.evals import PROBLEMS
from reasoner.evals import eval_log as files
from reasoner.evals.importers import read_responses
from reasoner.evals.result import Evaluation, Ks, judged
from reasoner.evals.sampling import num_missing, respond
from reasoner.evals.tables import Sets, details, table
from reasoner.inference.model_spec import LazyEngine, Subject, model_fingerprint
from reasoner.progress import shown_progress
from reasoner.rollouts.cache import ResponseCache, digest
from reasoner.rollouts.dataset import askable
from reasoner.runs.rollouts import versions, write_json
from reasoner.types import Prompt, Sampling
from verifiers import VerifierPool, grader_version

# What makes it this evaluation and no other.
_OWN = ("model_fingerprint", "engine", "prompt", "sampling", "seed", "data", "responses")


def run_eval(args: argparse.Namespace) -> None:
    """Print a table and write the evaluation (evals.eval_log). ValueError, before sampling, for bad arguments."""
    began = time.monotonic()
    _check_arguments(args)
    ks = Ks(tuple(args.pass_at), tuple(args.pass_hat), tuple(args.cons_at))
    with VerifierPool(workers=min(8, max(1, (os.cpu_count() or 1) - 1))) as pool:
        about, sets = _of_responses(args, ks, pool) if args.responses else _of_model(args, ks, pool)
    folder = _folder(args, about)
    text = "\n\n".join([table(sets), *(details(spec, ways) for spec, ways in sets.items())])
    files.write(folder, about, sets, text)
    write_json(folder / "run.json", {"date": time.time(), "seconds": time.monotonic() - began, "versions": versions()})
    print(f"\n{text}\n\n{_provenance(about)}\nfiles: {folder}", flush=True)
    if args.json:
        figures = {spec: {way: found.figures() for way, found in ways.items()} for spec, ways in sets.items()}
        write_json(args.json, {"about": about, "versions": versions(), "results": figures})


# ------------------------------------------------------------------------------------------------ foreign responses


def _of_responses(args: argparse.Namespace, ks: Ks, pool: VerifierPool) -> tuple[dict[str, Any], Sets]:
    if args.data or args.model or args.greedy or args.regrade:
        raise ValueError("--responses grades what is in the files; it takes no --model, --data, --greedy or --regrade")
    policy = args.extract or _policy_of(args.responses[0])
    read = {str(path): read_responses(path, cut=args.cut) for path in args.responses}
    about = {
        "model": Path(args.responses[0]).stem,
        "model_fingerprint": "",
        "engine": "responses",
        "prompt": {
            "style": "responses",
            "extract": policy,
            "sha256": digest([prompt for asked in read.values() for _, prompt, _ in asked]),
        },
        "sampling": {},
        "samples": min(len(responses) for asked in read.values() for _, _, responses in asked),
        "seed": 0,
        "data": {spec: files.about_data([problem for problem, _, _ in asked]) for spec, asked in read.items()},
        "responses": {spec: hashlib.sha256(Path(spec).read_bytes()).hexdigest() for spec in read},
        "grader": grader_version(),
        "metrics": asdict(ks),
    }
    _check_names(list(read))
    sets = {
        spec: {"sampled": judged(asked, pool, policy=policy, label=spec, temperature=None, ks=ks)}
        for spec, asked in read.items()
    }
    return about, sets


def _policy_of(path: Path) -> str:
    """Of our own files, the policy that they were graded by; else the lenient one."""
    beside = path.parent / "evaluation.json"
    if not beside.is_file():
        return "lenient"
    return str(json.loads(beside.read_text("utf-8"))["prompt"]["extract"])


# ------------------------------------------------------------------------------------------------ a model


def _of_model(args: argparse.Namespace, ks: Ks, pool: VerifierPool) -> tuple[dict[str, Any], Sets]:
    specs = [measured_on(spec) for spec in args.data or ["generated"]]
    _check_names(specs)
    for spec in specs:
        check_problems(spec)
    subject = Subject.of(args)
    ways = _ways(args, ks, subject)
    problems = {spec: load(spec, limit=_limit(args, spec)) for spec in specs}
    about: dict[str, Any] = {
        "model": subject.name,
        "model_fingerprint": model_fingerprint(subject.folder),
        "engine": subject.engine_identity(args),
        "prompt": {"style": subject.prompt, **asdict(subject.template)},
        "sampling": {way: _identity(sampling) for way, sampling in ways.items()},
        "samples": max(sampling.num for sampling in ways.values()),
        "seed": args.seed,
        "data": {},
        "grader": grader_version(),
        "metrics": asdict(ks),
    }
    _folder(args, about, [name for name in _OWN if name != "data"])  # refuses a name in use before the model is loaded
    prompts = _prompts(subject, problems)
    about["data"] = {
        spec: files.about_data([prompt.problem for prompt in found], left_out=len(problems[spec]) - len(found))
        for spec, found in prompts.items()
    }
    _folder(args, about)  # and before anything is sampled
    _say(f"{_provenance(about)}\nthe first prompt:\n{prompts[specs[0]][0].text}")
    longest = max(len(prompt.token_ids) for found in prompts.values() for prompt in found)
    engine = LazyEngine(subject, args, longest_prompt=longest)
    sets: dict[str, dict[str, Evaluation]] = {spec: {} for spec in specs}
    for way, sampling in ways.items():
        identity = {"model": about["model_fingerprint"], "engine": about["engine"], "sampling": _identity(sampling)}
        path = args.out / "cache" / str(about["model_fingerprint"]) / f"{digest(identity)}.jsonl"
        with ResponseCache(path, identity) as cache, shown_progress() as progress:
            for spec in specs:
                _tell_missing(args, f"{spec}, {way}", prompts[spec], sampling, cache)
                progress.begin(f"{spec}, {way}")
                responses = respond(engine, prompts[spec], sampling, seed=args.seed, cache=cache, progress=progress)
                asked = [(p.problem, p.text, r) for p, r in zip(prompts[spec], responses, strict=True)]
                how = {"policy": subject.template.extract, "label": spec, "temperature": sampling.temperature}
                wanted = ks if way == "sampled" else Ks()
                sets[spec][way] = judged(asked, pool, **how, ks=wanted, progress=progress)
    engine.close()
    return about, sets


def _prompts(subject: Subject, problems: Mapping[str, Sequence[Problem]]) -> dict[str, list[Prompt]]:
    """What can be asked of each set: a question must leave room for a response of half the context, or of its limit."""
    from reasoner.models.loading import load_tokenizer  # with torch some seconds, after everything that can be refused

    tokenizer = load_tokenizer(subject.folder)
    room = min(subject.max_tokens, max(1, subject.context // 2))
    return {
        spec: askable(own, subject.template, tokenizer, context=subject.context, max_tokens=room)
        for spec, own in problems.items()
    }


def _tell_missing(
    args: argparse.Namespace, what: str, prompts: Sequence[Prompt], sampling: Sampling, cache: ResponseCache
) -> None:
    missing, total = num_missing(prompts, sampling, seed=args.seed, cache=cache), sampling.num * len(prompts)
    _say(f"{what}: {total - missing:,} of {total:,} responses are there")
    if args.regrade and missing:
        raise ValueError(f"--regrade samples nothing, and {missing:,} of {total:,} responses ({what}) are not stored")


def _ways(args: argparse.Namespace, ks: Ks, subject: Subject) -> dict[str, Sampling]:
    """How the problems are answered: sampled, greedily, or both."""
    ways = {}
    sampled = bool(ks.pass_at or ks.pass_hat or ks.cons_at) or not args.greedy
    n = args.n or ks.largest
    if n < ks.largest:
        raise ValueError(f"--n is {n}; the largest K asked for needs {ks.largest} samples of each problem")
    if sampled:
        if not subject.temperature > 0:
            raise ValueError(
                f"--temperature is {subject.temperature:g}; it must be above 0 (the likeliest answer is --greedy)"
            )
        ways["sampled"] = Sampling(n, subject.temperature, subject.top_p, 0, subject.max_tokens, subject.template.stop)
    if args.greedy:
        ways["greedy"] = Sampling(1, 0.0, 1.0, 0, subject.max_tokens, subject.template.stop)
    return ways


def _identity(sampling: Sampling) -> dict[str, Any]:
    """What changes a response: everything but how many there are."""
    return {name: value for name, value in asdict(sampling).items() if name != "num"}


_LEAST = {"n": 1, "problems": 0, "max_tokens": 1}


def _check_arguments(args: argparse.Namespace) -> None:
    """ValueError for a value that nothing can be sampled with."""
    for name, least in _LEAST.items():
        value = getattr(args, name)
        if value is not None and value < least:
            raise ValueError(f"--{name.replace('_', '-')} is {value}; it must be at least {least}")
    if args.top_p is not None and not 0 < args.top_p <= 1:
        raise ValueError(f"--top-p is {args.top_p:g}; it must be above 0 and at most 1")
    if args.temperature is not None and not 0 <= args.temperature < math.inf:
        raise ValueError(f"--temperature is {args.temperature:g}; it must be at least 0")
    if args.dtype not in (None, *DTYPES):
        raise ValueError(f"--dtype is {args.dtype!r}; known are {', '.join(DTYPES)}")


def _limit(args: argparse.Namespace, spec: str) -> int | None:
    if args.problems is None:
        return PROBLEMS if spec.startswith(("generated", "reasoning-gym")) else None
    return args.problems or None


# ------------------------------------------------------------------------------------------------ both


def _folder(args: argparse.Namespace, about: Mapping[str, Any], compared: Sequence[str] = _OWN) -> Path:
    """Where the evaluation goes. ValueError for a name that an evaluation has which differs in what is `compared`."""
    own = {name: about.get(name) for name in _OWN}
    folder = Path(args.out) / (args.name or f"{files.model_name(str(about['model']))}-{digest(own, 8)}")
    if (folder / "evaluation.json").is_file():
        known = files.read_about(folder)
        differing = [name for name in compared if json.dumps(known.get(name)) != json.dumps(about.get(name))]
        if differing:
            raise ValueError(
                f"{folder} holds another evaluation ({', '.join(differing)} differ); choose another --name"
            )
    elif folder.exists() and any(folder.iterdir()):
        raise ValueError(f"{folder} is in use by something else; choose another --name")
    return folder


def _check_names(specs: Sequence[str]) -> None:
    """Every set has files of its own name."""
    names: dict[str, str] = {}
    for spec in specs:
        other = names.setdefault(files.task_name(spec), spec)
        if other != spec or specs.count(spec) > 1:
            raise ValueError(f"sets {other!r} and {spec!r} would have the same files; evaluate them one by one")


def _provenance(about: Mapping[str, Any]) -> str:
    prompt = about["prompt"]
    return "\n".join(
        [
            *(f"data: {spec}, {_set(found)}" for spec, found in about["data"].items()),
            f"model: {about['model']} {about['model_fingerprint']}, engine: {about['engine']}, seed {about['seed']}",
            f"prompt: {prompt['style']}, answers read by {prompt['extract']!r}, grader {about['grader']}",
        ]
    )


def _set(found: Mapping[str, Any]) -> str:
    left_out = f" ({found['left_out']:,} left out)" if found["left_out"] else ""
    return f"{found['rows']:,} problems{left_out}, sha256 {found['sha256']}"


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
