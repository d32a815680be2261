"""Evaluate the responses in files of other programs: `reasoner eval --responses FILE`. No model is loaded."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from reasoner.evals import eval_log
from reasoner.evals.importers import read_responses
from reasoner.evals.manifest import check_set_names, make_manifest
from reasoner.evals.request import EvalRequest
from reasoner.evals.result import score_responses
from reasoner.evals.tables import Sets
from reasoner.rollouts.seeds import digest
from verifiers import VerifierPool


def grade_response_files(request: EvalRequest, pool: VerifierPool) -> tuple[dict[str, Any], Sets]:
    """Grade the responses of `request.responses`: (the manifest, the metrics by file)."""
    if request.data or request.model or request.greedy or request.regrade:
        raise ValueError("--responses grades what is in the files; it takes no --model, --data, --greedy or --regrade")
    extract = request.extract or _stored_extraction(request.responses[0])
    rows_of = {str(path): read_responses(path, cut=request.cut) for path in request.responses}
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


def _stored_extraction(path: Path) -> str:
    """The extraction for a file's responses: in our own eval log the one of its manifest, else "lenient"."""
    if not (path.parent / "evaluation.json").is_file():
        return "lenient"
    return str(eval_log.read_manifest(path.parent)["prompt"]["extract"])
