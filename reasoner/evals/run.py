"""Run an evaluation from Python: evaluate a model or the responses in files, and write the evaluation's folder."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reasoner.distributed.world import ALONE, World
from reasoner.evals import eval_log
from reasoner.evals.estimators import Estimate
from reasoner.evals.manifest import eval_folder, provenance
from reasoner.evals.model_eval import evaluate_model
from reasoner.evals.request import EvalRequest
from reasoner.evals.response_files import grade_response_files
from reasoner.evals.result import EvalResult
from reasoner.evals.tables import Sets, details, table, to_dicts
from reasoner.runs.json_files import write_json
from reasoner.runs.run_start import versions
from verifiers import VerifierPool

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, slots=True)
class EvalResults:
    """The results of an evaluation, by problem set and by way of sampling ("sampled" or "greedy").

    `str(results)` is the table that `reasoner eval` prints.
    """

    folder: Path  # the eval log, as `reasoner compare` and the dashboard read it
    manifest: Mapping[str, Any] = field(repr=False)  # the content of evaluation.json
    sets: Sets = field(repr=False)
    text: str = field(repr=False)

    def __str__(self) -> str:
        return self.text

    @property
    def provenance(self) -> str:
        """Data, model, engine, sampling, prompt and grader in three lines or more."""
        return provenance(self.manifest)

    def to_dict(self) -> dict[str, dict[str, dict[str, Any]]]:
        """The metrics by problem set and by way of sampling, as JSON objects."""
        return {spec: to_dicts(ways) for spec, ways in self.sets.items()}

    def metric(self, name: str = "pass@1", *, data: str | None = None, greedy: bool = False) -> Estimate:
        """A metric with its 95 % confidence interval: `value`, `low`, `high`.

        `data` is the problem set, by default the only one. ValueError for a metric or a set that was not evaluated.
        """
        result = self._result(data, greedy=greedy)
        if name not in result.metrics:
            raise ValueError(f"no metric {name!r} was evaluated; there are {', '.join(result.metrics)}")
        return result.metrics[name]

    def responses(self, *, data: str | None = None, greedy: bool = False) -> list[dict[str, Any]]:
        """The graded responses, one row each: id, question, gold answer, response, verdict and more."""
        return [
            {
                "id": sample.problem.id,
                "question": sample.problem.question,
                "answer": sample.problem.answer,
                "prompt": sample.prompt,
                "response": response.text,
                "tokens": response.tokens,
                "finish": response.finish,
                "extracted": score.extracted,
                "verdict": str(score.verdict),
                "correct": score.correct,
                "well_formed": score.well_formed,
            }
            for sample in self._result(data, greedy=greedy).samples
            for response, score in zip(sample.responses, sample.scores, strict=True)
        ]

    def to_pandas(self) -> pandas.DataFrame:
        """The metrics as a pandas DataFrame: one row per problem set, way of sampling and metric."""
        import pandas

        columns = ["data", "sampling", "metric", "value", "low", "high", "problems", "samples"]
        rows = [
            (data, way, name, one.value, one.low, one.high, result.num_problems, result.num_samples)
            for data, ways in self.sets.items()
            for way, result in ways.items()
            for name, one in result.metrics.items()
        ]
        return pandas.DataFrame(rows, columns=columns)

    def _result(self, data: str | None, *, greedy: bool) -> EvalResult:
        """The result on a problem set, by default the only one."""
        if data is None and len(self.sets) == 1:
            (data,) = self.sets
        if data is None or data not in self.sets:
            raise ValueError(f"data is {data!r}; evaluated were {', '.join(map(repr, self.sets))}")
        ways = self.sets[data]
        if greedy or len(ways) > 1:
            way = "greedy" if greedy else "sampled"
        else:
            (way,) = ways
        if way not in ways:
            raise ValueError(f"greedy is {greedy}; evaluated was only {', '.join(ways)}")
        return ways[way]


def evaluate(request: EvalRequest, world: World = ALONE) -> EvalResults:
    """Run the evaluation and write its folder (evals.eval_log). Progress goes to standard error. Of several ranks this
    is the first; the others are in sampling.serve_first.

    ValueError, before anything is sampled, for arguments that cannot be evaluated.
    """
    start = time.monotonic()
    request.check()
    with VerifierPool(workers=min(8, max(1, (os.cpu_count() or 1) - 1))) as pool:
        manifest, sets = (
            grade_response_files(request, pool) if request.responses else evaluate_model(request, pool, world)
        )
    folder = eval_folder(request, manifest)
    text = "\n\n".join([table(sets), *(details(spec, ways) for spec, ways in sets.items())])
    eval_log.write(folder, manifest, sets, text)
    write_json(folder / "run.json", {"date": time.time(), "seconds": time.monotonic() - start, "versions": versions()})
    return EvalResults(folder, manifest, sets, text)
