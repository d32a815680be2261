"""The rows of an evaluation's files: lm-eval's samples, and one flat row per response."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from data import Problem
from reasoner.evals.result import EvalResult
from reasoner.evals.tables import Sets
from reasoner.types import Response
from verifiers import Score


@dataclass(frozen=True, slots=True)
class _GradedResponse:
    """A response of an evaluation with its score."""

    spec: str  # the data set
    way: str
    problem: Problem
    sample: int
    response: Response
    score: Score
    vote_class: int | None  # 0 is the correct one; None abstains, or there was no vote


# The columns of samples.parquet: their types, and their values for a graded response.
_COLUMNS: dict[str, tuple[pa.DataType, Callable[[_GradedResponse], object]]] = {
    "set": (pa.string(), lambda one: one.spec),
    "way": (pa.string(), lambda one: one.way),
    "problem_id": (pa.string(), lambda one: one.problem.id),
    "sample": (pa.int32(), lambda one: one.sample),
    "seed": (pa.int64(), lambda one: one.response.seed),
    "text": (pa.string(), lambda one: one.response.text),
    "answer": (pa.string(), lambda one: one.score.extracted),
    "gold": (pa.string(), lambda one: one.problem.answer),
    "verdict": (pa.string(), lambda one: str(one.score.verdict)),
    "layer": (pa.string(), lambda one: one.score.layer),
    "correct": (pa.bool_(), lambda one: one.score.correct),
    "correct_lenient": (pa.bool_(), lambda one: one.score.lenient),
    "well_formed": (pa.bool_(), lambda one: one.score.well_formed),
    "class": (pa.int32(), lambda one: one.vote_class),
    "finish": (pa.string(), lambda one: one.response.finish),
    "tokens": (pa.int32(), lambda one: one.response.tokens),
}
RESPONSE_SCHEMA = pa.schema([(name, kind) for name, (kind, _) in _COLUMNS.items()])


_DOC = ("id", "question", "answer", "subject", "level", "verifier")  # fields of a problem in samples_SET.jsonl


def sample_rows(manifest: Mapping[str, Any], ways: Mapping[str, EvalResult]) -> Iterator[dict[str, Any]]:
    """The rows of samples_SET.jsonl: one per problem and way, with the value of every metric on that problem."""
    for way, evaluation in ways.items():
        per_problem = evaluation.per_problem
        for number, one in enumerate(evaluation.samples):
            values = {"greedy" if way == "greedy" else name: v[number] for name, v in per_problem.items()}
            doc = {name: getattr(one.problem, name) for name in _DOC}
            yield {
                "doc_id": number,
                "doc": doc,
                "target": one.problem.answer,
                "arguments": {"gen_args_0": {"arg_0": one.prompt, "arg_1": manifest["sampling"].get(way, {})}},
                "resps": [[response.own_text for response in one.responses]],
                "filtered_resps": [score.extracted for score in one.scores],
                "filter": "greedy" if way == "greedy" else "none",
                "metrics": list(values),
                **values,
                "lenient": sum(score.lenient for score in one.scores) / len(one.scores),
                "correct": [score.correct for score in one.scores],
                "tokens": [response.tokens for response in one.responses],
                "finish": [response.finish for response in one.responses],
            }


def response_rows(sets: Sets) -> Iterator[dict[str, Any]]:
    """The rows of samples.parquet: one per response, with the columns of RESPONSE_SCHEMA."""
    for spec, ways in sets.items():
        for way, evaluation in ways.items():
            for number, one in enumerate(evaluation.samples):
                classes = evaluation.classes[number] if evaluation.classes else (None,) * len(one.responses)
                for sample, (response, score) in enumerate(zip(one.responses, one.scores, strict=True)):
                    graded = _GradedResponse(spec, way, one.problem, sample, response, score, classes[sample])
                    yield {name: value(graded) for name, (_, value) in _COLUMNS.items()}
