"""The manifest of an evaluation (evaluation.json): what was evaluated, and the folder that belongs to it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from reasoner.evals import eval_log
from reasoner.evals.request import EvalRequest
from reasoner.evals.result import MetricKs
from reasoner.rollouts.seeds import digest
from verifiers import grader_version

# The keys that make an evaluation this one and no other.
IDENTITY = ("model_fingerprint", "engine", "prompt", "sampling", "seed", "data", "responses")


def make_manifest(
    *,
    model: str,
    engine: str,
    prompt: Mapping[str, Any],
    sampling: Mapping[str, Any],
    num_samples: int,
    seed: int,
    ks: MetricKs,
    model_fingerprint: str = "",
    data: Mapping[str, Any] | None = None,
    response_files: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Put together the manifest, with the version of the grader.

    `prompt`: the template and its name as "style". `sampling`: the parameters of "sampled" and of "greedy". `data`: an
    eval_log.data_entry for each problem set. `response_files`: path -> SHA-256 of the files that responses were read
    from, if they were.
    """
    return {
        "model": model,
        "model_fingerprint": model_fingerprint,
        "engine": engine,
        "prompt": dict(prompt),
        "sampling": dict(sampling),
        "samples": num_samples,
        "seed": seed,
        "data": dict(data or {}),
        **({} if response_files is None else {"responses": dict(response_files)}),
        "grader": grader_version(),
        "metrics": asdict(ks),
    }


def eval_folder(request: EvalRequest, manifest: Mapping[str, Any], keys: Sequence[str] = IDENTITY) -> Path:
    """The evaluation's folder: `request.name`, or a name made of the model and a hash of the manifest.

    ValueError where the folder holds an evaluation that differs in one of the `keys`.
    """
    identity = {name: manifest.get(name) for name in (*IDENTITY, "samples", "metrics")}
    model = eval_log.model_name(str(manifest["model"]))
    folder = request.out / (request.name or f"{model}-{digest(identity, 8)}")
    if (folder / "evaluation.json").is_file():
        known = eval_log.read_manifest(folder)
        differing = [name for name in keys if json.dumps(known.get(name)) != json.dumps(manifest.get(name))]
        if differing:
            raise ValueError(
                f"{folder} holds another evaluation ({', '.join(differing)} differ); choose another --name"
            )
    elif folder.exists() and any(folder.iterdir()):
        raise ValueError(f"{folder} is in use by something else; choose another --name")
    return folder


def check_set_names(specs: Sequence[str]) -> None:
    """Raise ValueError for two problem sets whose files would have the same name."""
    names: dict[str, str] = {}
    for spec in specs:
        other = names.setdefault(eval_log.task_name(spec), spec)
        if other != spec or specs.count(spec) > 1:
            raise ValueError(f"sets {other!r} and {spec!r} would have the same files; evaluate them one by one")


def provenance(manifest: Mapping[str, Any]) -> str:
    """Format data, model, engine, sampling, prompt and grader as lines of text."""
    prompt = manifest["prompt"]
    model = f"{manifest['model']} {manifest['model_fingerprint']}"
    sets = []
    for spec, entry in manifest["data"].items():
        left_out = f" ({entry['left_out']:,} left out)" if entry["left_out"] else ""
        sets.append(f"data: {spec}, {entry['rows']:,} problems{left_out}, sha256 {entry['sha256']}")
    engine = f"model: {model}, engine: {manifest['engine']}, seed {manifest['seed']}"
    sampling = [
        f"{way}: temperature {own['temperature']:g}, top-p {own['top_p']:g}, up to {own['max_tokens']:,} tokens"
        for way, own in manifest["sampling"].items()
    ]
    grading = f"prompt: {prompt['style']}, answers read by {prompt['extract']!r}, grader {manifest['grader']}"
    return "\n".join([*sets, engine, *sampling, grading])
