"""Run an evaluation from Python: evaluate a model or the responses in files, and write the evaluation's folder."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from reasoner.distributed.world import ALONE, World
from reasoner.evals import eval_log
from reasoner.evals.endpoint_eval import evaluate_endpoint
from reasoner.evals.manifest import eval_folder, provenance
from reasoner.evals.model_eval import evaluate_model
from reasoner.evals.request import EvalRequest
from reasoner.evals.response_files import grade_response_files
from reasoner.evals.tables import Sets, details, table
from reasoner.runs.json_files import write_json
from reasoner.runs.run_start import versions
from verifiers import VerifierPool


@dataclass(frozen=True, slots=True)
class EvalRun:
    """A finished evaluation."""

    folder: Path
    manifest: dict[str, Any]  # the content of evaluation.json
    sets: Sets
    text: str  # the printed tables

    @property
    def provenance(self) -> str:
        """Data, model, engine, prompt and grader in three lines or more."""
        return provenance(self.manifest)

    def to_dict(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Return the metrics by problem set and by way of sampling ("sampled", "greedy")."""
        return {spec: {way: result.to_dict() for way, result in ways.items()} for spec, ways in self.sets.items()}


def _evaluation(
    request: EvalRequest, world: World
) -> Callable[[EvalRequest, VerifierPool], tuple[dict[str, Any], Sets]]:
    """What is evaluated: the responses of files, a server, or a model."""
    if request.responses:
        return grade_response_files
    return partial(evaluate_model, world=world) if request.model_url is None else evaluate_endpoint


def evaluate(request: EvalRequest, world: World = ALONE) -> EvalRun:
    """Run the evaluation and write its folder (evals.eval_log). Progress goes to standard error. Of several ranks this
    is the first; the others are in rank_responses.serve_first.

    ValueError, before anything is sampled, for arguments that cannot be evaluated.
    """
    start = time.monotonic()
    request.check()
    with VerifierPool(workers=min(8, max(1, (os.cpu_count() or 1) - 1))) as pool:
        manifest, sets = _evaluation(request, world)(request, pool)
    folder = eval_folder(request, manifest)
    text = "\n\n".join([table(sets), *(details(spec, ways) for spec, ways in sets.items())])
    eval_log.write(folder, manifest, sets, text)
    write_json(folder / "run.json", {"date": time.time(), "seconds": time.monotonic() - start, "versions": versions()})
    return EvalRun(folder, manifest, sets, text)
