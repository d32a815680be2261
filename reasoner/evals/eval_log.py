"""The folder of an evaluation: write it, and read it for `reasoner compare` and the dashboard.

EVALS/NAME/evaluation.json      the specification: model, prompt, sampling, problems, grader
EVALS/NAME/results.json         the metrics in lm-eval's format (lm_eval.utils.make_table prints it) and, under
                                "reasoner", all metrics of this project
EVALS/NAME/samples_SET.jsonl    lm-eval's samples: one line per problem and filter ("none" for sampled, or "greedy")
EVALS/NAME/details_SET.parquet  lighteval's details: columns doc, metric, model_response
EVALS/NAME/samples.parquet      one flat table, one row per response
EVALS/NAME/table.txt            the printed table
EVALS/NAME/run.json             time, duration and hardware: everything that differs between two equal evaluations

All files but run.json are byte-identical when the same evaluation is repeated, interrupted or not.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from data import Problem
from data.registry import fingerprint
from reasoner.evals.result import EvalResult
from reasoner.evals.tables import Sets
from reasoner.runs.io import atomic_path, write_text
from reasoner.runs.json_files import (
    COUNT,
    NUMBER,
    OBJECT,
    TEXT,
    TEXTS,
    Kind,
    check,
    check_each,
    is_count,
    is_file,
    json_line,
    read_lines,
    read_object,
)
from reasoner.runs.migrate import EVAL_COLUMNS
from reasoner.runs.rollouts import write_json
from reasoner.types import EvalSample

EvalManifest = Mapping[str, Any]  # evaluation.json; see reasoner.cli.eval

FLAT = pa.schema(
    [
        ("set", pa.string()),
        ("way", pa.string()),
        ("problem_id", pa.string()),
        ("sample", pa.int32()),
        ("seed", pa.int64()),
        ("text", pa.string()),
        ("answer", pa.string()),
        ("gold", pa.string()),
        ("verdict", pa.string()),
        ("layer", pa.string()),
        ("right", pa.bool_()),
        ("right_lenient", pa.bool_()),
        ("well_formed", pa.bool_()),
        ("class", pa.int32()),  # of the vote: 0 is the correct one; null abstains, or there was no vote
        ("finish", pa.string()),
        ("tokens", pa.int32()),
    ]
)


def task_name(spec: str) -> str:
    """The name of a data set as a part of file names."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", Path(spec.partition("?")[0]).name).strip("_.") or "set"


def about_data(problems: Sequence[Problem], *, left_out: int = 0) -> dict[str, Any]:
    """The entry of a data set in evaluation.json: its size, its fingerprint, and the number of problems left out
    because their prompts are too long or they cannot be graded.
    """
    return {"rows": len(problems), "sha256": fingerprint(problems), "left_out": left_out}


def model_name(model: str) -> str:
    """The name of a model as a part of file names: org/name becomes org__name."""
    return re.sub(r"[^A-Za-z0-9._-]+", "__", model).strip("_.") or "model"


def write(folder: Path, about: EvalManifest, sets: Sets, table: str) -> None:
    """Write all files but run.json. Each file is replaced as a whole."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "evaluation.json", about)
    write_json(folder / "results.json", results(about, sets))
    for spec, ways in sets.items():
        name = task_name(spec)
        write_text(folder / f"samples_{name}.jsonl", _json_lines(sample_rows(about, spec, ways)))
        _write_table(folder / f"details_{name}.parquet", pa.Table.from_pylist(list(_details(spec, ways))))
    _write_table(folder / "samples.parquet", pa.Table.from_pylist(list(_flat(sets)), FLAT))
    write_text(folder / "table.txt", table + "\n")


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read evaluation.json. ValueError for a folder without an evaluation, and for a damaged one."""
    path = folder / "evaluation.json"
    if not is_file(path):
        raise ValueError(f"{folder} holds no evaluation: it has no evaluation.json")
    needs = {"model": TEXT, "data": OBJECT, "grader": TEXT, "prompt": OBJECT}
    about = read_object(path, needs, {"samples": _SAMPLES})
    if not about["data"]:
        raise ValueError(f"{path} is damaged: it lists no data set")
    check_each(about["data"], path, {"rows": COUNT, "sha256": TEXT})
    return about


# The number of samples of each problem: one number, or one by file where responses were read from files.
_SAMPLES = Kind(
    "a whole number, or an object of them",
    lambda value: is_count(value) or (isinstance(value, dict) and all(map(is_count, value.values()))),
)
_LINE = {"doc": OBJECT, "filter": TEXT, "metrics": TEXTS}


def read_samples(folder: Path, spec: str) -> list[dict[str, Any]]:
    """Read the lines of samples_SET.jsonl. ValueError when the file is missing or damaged."""
    path = folder / f"samples_{task_name(spec)}.jsonl"
    if not is_file(path):
        raise ValueError(f"{folder} has no {path.name}")
    lines = read_lines(path, _LINE, torn="never")
    for number, line in enumerate(lines, 1):
        where = f"{path}, line {number}"
        check(line["doc"], where, {"id": TEXT, "question": TEXT, "answer": TEXT})
        check(line, where, dict.fromkeys(line["metrics"], NUMBER))
    return lines


_NULLABLE = ("seed", "answer", "layer", "right_lenient", "well_formed", "class", "finish", "tokens")


def read_flat(folder: Path) -> list[dict[str, Any]]:
    """Read the rows of samples.parquet. ValueError when the file is missing or damaged."""
    path = folder / "samples.parquet"
    if not is_file(path):
        raise ValueError(f"{folder} has no {path.name}")
    try:
        table = pq.read_table(path)
        table = table.rename_columns([EVAL_COLUMNS.get(name, name) for name in table.column_names])
        if missing := [name for name in FLAT.names if name not in table.column_names]:
            raise ValueError(f"it has no column {missing[0]!r}")
        table = table.select(FLAT.names).cast(FLAT)
        if holes := [name for name in FLAT.names if name not in _NULLABLE and table[name].null_count]:
            raise ValueError(f"column {holes[0]!r} has empty cells")
        return table.to_pylist()  # type: ignore[no-any-return]
    except (OSError, ValueError, pa.ArrowException) as error:
        raise ValueError(f"{path} is damaged: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def results(about: EvalManifest, sets: Sets) -> dict[str, Any]:
    """The contents of results.json in lm-eval's format. Metric names are "pass@1,none" and "greedy,none", with their
    standard errors under "pass@1_stderr,none" and "greedy_stderr,none".
    """
    tasks = {task_name(spec): (spec, ways) for spec, ways in sets.items()}
    metrics = {name: [metric for metric, _, _ in _metrics(ways)] for name, (_, ways) in tasks.items()}
    return {
        "results": {name: {"alias": name, **_values(ways)} for name, (_, ways) in tasks.items()},
        "group_subtasks": {name: [] for name in tasks},
        "configs": {
            name: {"task": name, "dataset_path": spec, "num_fewshot": 0, "metadata": about["data"][spec]}
            for name, (spec, _) in tasks.items()
        },
        "versions": dict.fromkeys(tasks, about["grader"]),
        "n-shot": dict.fromkeys(tasks, 0),
        "higher_is_better": {name: dict.fromkeys(metrics[name], True) for name in tasks},
        "n-samples": {
            name: {"original": data["rows"] + data["left_out"], "effective": data["rows"]}
            for name, data in ((name, about["data"][spec]) for name, (spec, _) in tasks.items())
        },
        "config": {"model": about["engine"], "model_args": about["sampling"], "seed": about["seed"]},
        "model_name": about["model"],
        "model_name_sanitized": model_name(about["model"]),
        "task_hashes": {name: about["data"][spec]["sha256"] for name, (spec, _) in tasks.items()},
        "reasoner": {
            name: {way: evaluation.figures() for way, evaluation in ways.items()} for name, (_, ways) in tasks.items()
        },
    }


def _metrics(ways: Mapping[str, EvalResult]) -> Iterator[tuple[str, float, float]]:
    """(metric, value, standard error) of each metric; the one of greedy answers is called "greedy"."""
    for way, evaluation in ways.items():
        for metric, value in evaluation.metrics.items():
            yield "greedy" if way == "greedy" else metric, value.value, value.se


def _values(ways: Mapping[str, EvalResult]) -> dict[str, float]:
    values: dict[str, float] = {}
    for name, value, se in _metrics(ways):
        values |= {f"{name},none": value, f"{name}_stderr,none": se}
    return values


def sample_rows(about: EvalManifest, spec: str, ways: Mapping[str, EvalResult]) -> Iterator[dict[str, Any]]:
    """The rows of samples_SET.jsonl: one per problem and way, with the value of every metric on that problem."""
    for way, evaluation in ways.items():
        per_problem = evaluation.per_problem
        for number, one in enumerate(evaluation.answered):
            values = {"greedy" if way == "greedy" else name: v[number] for name, v in per_problem.items()}
            doc = _doc(one)
            yield {
                "doc_id": number,
                "doc": doc,
                "target": one.problem.answer,
                "arguments": {"gen_args_0": {"arg_0": one.prompt, "arg_1": about["sampling"].get(way, {})}},
                "resps": [[response.text for response in one.responses]],
                "filtered_resps": [score.extracted for score in one.scores],
                "filter": "greedy" if way == "greedy" else "none",
                "metrics": list(values),
                "doc_hash": _sha(json.dumps(doc, ensure_ascii=False)),
                "prompt_hash": _sha(one.prompt),
                "target_hash": _sha(one.problem.answer),
                **values,
                "lenient": sum(score.lenient for score in one.scores) / len(one.scores),
                "right": [score.correct for score in one.scores],
                "tokens": [response.tokens for response in one.responses],
                "finish": [response.finish for response in one.responses],
            }


def _doc(one: EvalSample) -> dict[str, Any]:
    problem = one.problem
    return {
        "id": problem.id,
        "question": problem.question,
        "answer": problem.answer,
        "subject": problem.subject,
        "level": problem.level,
        "verifier": problem.verifier,
    }


def _details(spec: str, ways: Mapping[str, EvalResult]) -> Iterator[dict[str, Any]]:
    for way, evaluation in ways.items():
        per_problem = evaluation.per_problem
        for number, one in enumerate(evaluation.answered):
            yield {
                "doc": {
                    "choices": [one.problem.answer],
                    "gold_index": 0,
                    "id": one.problem.id,
                    "query": one.prompt,
                    "question": one.problem.question,
                    "task_name": task_name(spec),
                    "verifier": one.problem.verifier,
                },
                "metric": {"greedy" if way == "greedy" else name: v[number] for name, v in per_problem.items()},
                "model_response": {
                    "output_tokens_count": [response.tokens for response in one.responses],
                    "text": [response.text for response in one.responses],
                    "text_post_processed": [score.extracted for score in one.scores],
                    "truncated_count": sum(response.finish == "length" for response in one.responses),
                },
            }


def _flat(sets: Sets) -> Iterator[dict[str, Any]]:
    for spec, ways in sets.items():
        for way, evaluation in ways.items():
            for number, one in enumerate(evaluation.answered):
                classes = evaluation.classes[number] if evaluation.classes else (None,) * len(one.responses)
                for sample, (response, score) in enumerate(zip(one.responses, one.scores, strict=True)):
                    yield {
                        "set": spec,
                        "way": way,
                        "problem_id": one.problem.id,
                        "sample": sample,
                        "seed": response.seed,
                        "text": response.text,
                        "answer": score.extracted,
                        "gold": one.problem.answer,
                        "verdict": str(score.verdict),
                        "layer": score.layer,
                        "right": score.correct,
                        "right_lenient": score.lenient,
                        "well_formed": score.well_formed,
                        "class": classes[sample],
                        "finish": response.finish,
                        "tokens": response.tokens,
                    }


def _json_lines(rows: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json_line(row, ensure_ascii=False) for row in rows)


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _write_table(path: Path, rows: pa.Table) -> None:
    with atomic_path(path) as partial:
        pq.write_table(rows, partial, compression="zstd")
