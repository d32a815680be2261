"""Evaluate the responses in files of other programs: `reasoner eval --responses FILE`. No model is loaded."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reasoner.console import log
from reasoner.evals import eval_log
from reasoner.evals.importers import ProblemResponses, read_responses
from reasoner.evals.manifest import check_set_names, make_manifest
from reasoner.evals.request import EvalRequest
from reasoner.evals.result import score_responses
from reasoner.evals.tables import Sets
from reasoner.rollouts.seeds import digest
from verifiers import VerifierPool


def grade_response_files(request: EvalRequest, pool: VerifierPool) -> tuple[dict[str, Any], Sets]:
    """Grade the responses of `request.responses`: (the manifest, the metrics by file)."""
    extract = request.extract or _stored_extraction(request.responses)
    rows_of = {str(path): read_responses(path, cut=request.cut) for path in request.responses}
    for spec, rows in rows_of.items():
        _report_unequal_counts(spec, rows)
    all_rows = [row for rows in rows_of.values() for row in rows]
    manifest = make_manifest(
        model=Path(request.responses[0]).stem,
        engine="responses",
        prompt={"style": "responses", "extract": extract, "sha256": digest([prompt for _, prompt, _ in all_rows])},
        sampling={},
        num_samples=min(len(responses) for _, _, responses in all_rows),
        seed=0,
        ks=request.ks,
        data={spec: eval_log.data_entry([problem for problem, _, _ in rows]) for spec, rows in rows_of.items()},
        response_files={spec: hashlib.sha256(Path(spec).read_bytes()).hexdigest() for spec in rows_of},
    )
    check_set_names(list(rows_of))
    sets = {
        spec: {"sampled": score_responses(rows, pool, extract=extract, label=spec, temperature=None, ks=request.ks)}
        for spec, rows in rows_of.items()
    }
    return manifest, sets


def _report_unequal_counts(spec: str, rows: Sequence[ProblemResponses]) -> None:
    """Log that the problems of a file have different numbers of responses, and what that means for the metrics."""
    counts = {problem.id: len(responses) for problem, _, responses in rows}
    fewest, most = min(counts, key=counts.__getitem__), max(counts.values())
    if counts[fewest] < most:
        log(
            f"{spec}: the problems have {counts[fewest]} to {most} responses (the fewest: {fewest!r}). A metric uses "
            f"all responses of a problem, every problem counts alike, and K can be at most {counts[fewest]}"
        )


def _stored_extraction(paths: Sequence[Path]) -> str:
    """The extraction for the responses: in our own eval log the one of its manifest, else "lenient".

    ValueError where it differs between the files: an evaluation has one.
    """
    extractions = {path: _extraction_of(path) for path in paths}
    if len(set(extractions.values())) > 1:
        differing = ", ".join(f"{path} {extraction}" for path, extraction in extractions.items())
        raise ValueError(f"answers are extracted in different ways ({differing}); choose one of them by --extract")
    return extractions[paths[0]]


def _extraction_of(path: Path) -> str:
    if not (path.parent / "evaluation.json").is_file():
        return "lenient"
    return str(eval_log.read_manifest(path.parent)["prompt"]["extract"])
