"""Evaluate the responses in files of other programs: `reasoner eval --responses FILE`. No model is loaded.

    samples_*.jsonl     of lm-eval (and of this project): doc_id, doc, target, resps; the rows of the file's first
                        filter are read, and each doc needs an id of its own
    *.jsonl, *.parquet  lines with gold (or answer, target) and responses, or response; lines with the same id are
                        responses to one problem. Optional: id, question, prompt, subject, level, verifier, tokens,
                        finish

A response is cut off at the first end-of-turn marker in its text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from data import Problem
from data.boxes import final_answer
from data.files import read_files
from reasoner.console import log
from reasoner.evals import eval_log
from reasoner.evals.manifest import check_set_names, eval_folder, make_manifest
from reasoner.evals.request import EvalRequest
from reasoner.evals.result import score_responses
from reasoner.evals.tables import Sets
from reasoner.models.checksums import check_file, sha256
from reasoner.rollouts.prompts import opened_thinking, without_prefill
from reasoner.rollouts.seeds import digest
from reasoner.runs.row_files import check_ending
from reasoner.types import Response
from verifiers import VerifierPool

ProblemResponses = tuple[Problem, str, tuple[Response, ...]]  # problem, prompt, responses

ENDS = ("<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|end_of_text|>", "</s>")


def grade_response_files(request: EvalRequest, pool: VerifierPool) -> tuple[dict[str, Any], Sets]:
    """Grade the responses of `request.responses`: (the manifest, the metrics by file)."""
    extract = request.extract or _stored_extraction(request.responses)
    rows_of = {str(path): read_responses(path) for path in request.responses}
    for spec, rows in rows_of.items():
        _report_unequal_counts(spec, rows)
    all_rows = [row for rows in rows_of.values() for row in rows]
    num_samples = min(len(responses) for _, _, responses in all_rows)
    manifest = make_manifest(
        model=Path(request.responses[0]).stem,
        engine="responses",
        prompt={"style": "responses", "extract": extract, "sha256": digest([prompt for _, prompt, _ in all_rows])},
        sampling={},
        num_samples=num_samples,
        seed=0,
        ks=request.ks,
        data={spec: eval_log.data_entry([problem for problem, _, _ in rows]) for spec, rows in rows_of.items()},
        response_files={spec: sha256(Path(spec)) for spec in rows_of},
    )
    check_set_names(list(rows_of))
    request.ks.check(num_samples)
    eval_folder(request, manifest)  # refuse a used name before grading
    sets = {
        spec: {_way(spec): score_responses(rows, pool, extract=extract, label=spec, temperature=None, ks=request.ks)}
        for spec, rows in rows_of.items()
    }
    return manifest, sets


def _way(spec: str) -> str:
    """How the responses of a file were sampled: greedily where it is one of our own that says so."""
    _, first = next(read_files(Path(spec)))
    return "greedy" if first.get("filter") == "greedy" else "sampled"


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


# ------------------------------------------------------------------------------------------------ readers


def read_responses(path: Path) -> list[ProblemResponses]:
    """Read problems with their responses, in the file's order. ValueError that names the file, the line and the missing
    field.
    """
    check_ending(path)
    if not path.is_file():
        raise ValueError(f"{path}: there is no such file")
    check_file(path)
    by_id: dict[str, ProblemResponses] = {}
    filters: dict[object, None] = {}  # of lm-eval
    for where, row in read_files(path):
        filters.setdefault(row.get("filter"))
        if row.get("filter") != next(iter(filters)):
            continue
        problem, prompt, responses = _read(where, row, len(by_id), path.stem)
        if "resps" in row and problem.id in by_id:
            raise ValueError(f"{where}: the doc {problem.id!r} stands twice under the filter {row.get('filter')!r}")
        responses = tuple(map(_up_to_end, responses))
        if problem.id in by_id:
            first, first_prompt, earlier = by_id[problem.id]
            if first.answer != problem.answer:
                raise ValueError(f"{where}: problem {problem.id!r} had the gold answer {first.answer!r} before")
            by_id[problem.id] = first, first_prompt, earlier + responses
        else:
            by_id[problem.id] = problem, prompt, responses
    if not by_id:
        raise ValueError(f"{path}: the file holds no responses")
    return list(by_id.values())


def _read(where: str, row: Mapping[str, Any], number: int, source: str) -> ProblemResponses:
    """The problem, the prompt and the responses of a row. `number`: the id of a problem without one. ValueError that
    names the place and the missing field.
    """
    try:
        return _read_fields(row, number, source)
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        reason = f"no {error}" if isinstance(error, KeyError) else str(error) or type(error).__name__
        fields = ", ".join(map(repr, row)) or "nothing"
        known = "(known: lm-eval's samples, or gold and response)"
        raise ValueError(f"{where}: {reason}; it has {fields} {known}") from error
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error


def _read_fields(row: Mapping[str, Any], number: int, source: str) -> ProblemResponses:
    if "resps" in row:
        doc, texts = row["doc"], [text for request in row["resps"] for text in request]
        prompt = row["arguments"]["gen_args_0"]["arg_0"] if "arguments" in row else ""
        problem = _problem(_name(doc, ("id",), row["doc_id"]), doc, str(row["target"]), source)
        return problem, prompt, _responses(texts, row, prompt)
    golds = [row[name] for name in ("gold", "answer", "target") if row.get(name) is not None]
    if not golds:
        raise KeyError("gold")
    texts = row["responses"] if "responses" in row else [row["response"]]
    problem = _problem(_name(row, ("id", "question"), number), row, str(golds[0]), source)
    prompt = str(row.get("prompt") or "")
    return problem, prompt, _responses(texts, row, prompt)


def _name(row: Mapping[str, Any], fields: Sequence[str], otherwise: object) -> str:
    """The first of the fields that has a value, such as the id 0; else `otherwise`."""
    return str(next((row[field] for field in fields if row.get(field) not in (None, "")), otherwise))


def _problem(name: str, row: Mapping[str, Any], gold: str, source: str) -> Problem:
    level = row.get("level")
    return Problem(
        id=name,
        question=str(row.get("question") or row.get("problem") or ""),
        answer=final_answer(gold),
        source=source,
        split="responses",
        level=level if isinstance(level, int) else None,
        subject=str(row["subject"]) if row.get("subject") else None,
        verifier=str(row.get("verifier") or "maths"),
    )


def _responses(texts: Sequence[Any], row: Mapping[str, Any], prompt: str) -> tuple[Response, ...]:
    """The responses, each with the <think> that the prompt opens. None is an empty one: of a server that keeps thinking
    apart, where all tokens went into it.
    """
    if not texts or not all(isinstance(text, str | None) for text in texts):
        raise ValueError("its responses must be texts, at least one")
    opened = opened_thinking(str(prompt))
    own = [row.get(name) for name in ("tokens", "finish")]  # one of each response, or of the only one
    lists = [one if isinstance(one, list) else [one if len(texts) == 1 else None] * len(texts) for one in own]
    if any(len(one) != len(texts) for one in lists):
        raise ValueError("its tokens and finish must be as many as its responses")
    rows = zip(texts, *lists, strict=True)
    return tuple(Response(opened + without_prefill(text or "", opened), *values) for text, *values in rows)


def _up_to_end(response: Response) -> Response:
    ends = [at for mark in ENDS if (at := response.text.find(mark)) >= 0]
    return Response(response.text[: min(ends)], response.tokens, response.finish) if ends else response
