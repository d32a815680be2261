"""The folder of an evaluation: write it, and read it for `reasoner compare` and the dashboard.

EVALS/NAME/evaluation.json      the specification: model, prompt, sampling, problems, grader
EVALS/NAME/results.json         all metrics by set and by way of sampling ("sampled", "greedy")
EVALS/NAME/samples_SET.jsonl    lm-eval's samples: one line per problem and filter ("none" for sampled, or "greedy")
EVALS/NAME/samples.parquet      one flat table, one row per response
EVALS/NAME/table.txt            the printed table
EVALS/NAME/sha256.json          checksums of all files but run.json (reasoner.models.checksums)
EVALS/NAME/run.json             time, duration and hardware: everything that differs between two equal evaluations

All files but run.json are byte-identical when the same evaluation is repeated, interrupted or not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from data import Problem
from data.registry import fingerprint
from reasoner.console import first_line
from reasoner.evals.tables import Sets, Ways, to_dicts
from reasoner.models.checksums import CHECKSUMS, check_file, write_checksums
from reasoner.runs.io import write_text
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
    iter_lines,
    json_line,
    read_object,
    write_json,
)
from reasoner.runs.parquet_files import read_table, write_table

EvalManifest = Mapping[str, Any]  # evaluation.json; reasoner.evals.manifest.make_manifest puts it together


def task_name(spec: str) -> str:
    """The name of a data set as a part of file names."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", Path(spec.partition("?")[0]).name).strip("_.") or "set"


def data_entry(problems: Sequence[Problem], *, left_out: int = 0) -> dict[str, Any]:
    """The entry of a data set in evaluation.json: its size, its fingerprint, and the number of problems left out
    because their prompts are too long or they cannot be graded.
    """
    return {"rows": len(problems), "sha256": fingerprint(problems), "left_out": left_out}


def model_name(model: str) -> str:
    """The name of a model as a part of file names: org/name becomes org__name."""
    return re.sub(r"[^A-Za-z0-9._-]+", "__", model).strip("_.") or "model"


def write(folder: Path, manifest: EvalManifest, sets: Sets, table: str) -> None:
    """Write all files but run.json. Each file is replaced as a whole, and their checksums come last."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / CHECKSUMS).unlink(missing_ok=True)
    write_json(folder / "evaluation.json", manifest)
    for spec, ways in sets.items():
        lines = [json_line(row, ensure_ascii=False) for row in _sample_rows(manifest, ways)]
        write_text(folder / f"samples_{task_name(spec)}.jsonl", "".join(lines))
    write_table(folder / "samples.parquet", pa.Table.from_pylist(list(_response_rows(sets)), RESPONSE_SCHEMA))
    write_json(folder / "results.json", {task_name(spec): to_dicts(ways) for spec, ways in sets.items()})
    write_text(folder / "table.txt", table + "\n")
    write_checksums(folder, leave_out=["run.json"])


_DOC = ("id", "question", "answer", "subject", "level", "verifier")  # fields of a problem in samples_SET.jsonl


def _sample_rows(manifest: EvalManifest, ways: Ways) -> Iterator[dict[str, Any]]:
    """The rows of samples_SET.jsonl: one per problem and way, with the value of every metric on that problem."""
    for way, evaluation in ways.items():
        per_problem = evaluation.per_problem
        for number, one in enumerate(evaluation.samples):
            values = {"greedy" if way == "greedy" else name: v[number] for name, v in per_problem.items()}
            yield {
                "doc_id": number,
                "doc": {name: getattr(one.problem, name) for name in _DOC},
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


_TEXT, _NUMBER, _FLAG = pa.string(), pa.int32(), pa.bool_()
RESPONSE_SCHEMA = pa.schema(
    [
        ("set", _TEXT), ("way", _TEXT), ("problem_id", _TEXT), ("sample", _NUMBER), ("seed", pa.int64()),
        ("text", _TEXT), ("answer", _TEXT), ("gold", _TEXT), ("verdict", _TEXT), ("layer", _TEXT), ("correct", _FLAG),
        ("correct_lenient", _FLAG), ("well_formed", _FLAG), ("class", _NUMBER), ("finish", _TEXT), ("tokens", _NUMBER),
    ]
)  # fmt: skip
_NULLABLE = ("seed", "answer", "layer", "correct_lenient", "well_formed", "class", "finish", "tokens")


def _response_rows(sets: Sets) -> Iterator[dict[str, Any]]:
    """The rows of samples.parquet: one per response."""
    graded = ((spec, way, one) for spec, ways in sets.items() for way, one in ways.items())
    for spec, way, evaluation in graded:
        for number, one in enumerate(evaluation.samples):
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
                    "correct": score.correct,
                    "correct_lenient": score.lenient,
                    "well_formed": score.well_formed,
                    "class": classes[sample],  # 0 is the correct one; None abstains, or there was no vote
                    "finish": response.finish,
                    "tokens": response.tokens,
                }


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read evaluation.json. ValueError for a folder without an evaluation, and for a damaged one."""
    path = folder / "evaluation.json"
    if not is_file(path):
        raise ValueError(f"{folder} holds no evaluation: it has no evaluation.json")
    check_file(path)
    needs = {"model": TEXT, "data": OBJECT, "grader": TEXT, "prompt": OBJECT}
    manifest = read_object(path, needs, {"samples": _SAMPLES, "sampling": OBJECT})
    check_each(manifest.get("sampling", {}), path, {})
    if not manifest["data"]:
        raise ValueError(f"{path} is damaged: it lists no data set")
    check_each(manifest["data"], path, {"rows": COUNT, "sha256": TEXT})
    return manifest


# The number of samples of each problem: one number, or one by file where responses were read from files.
_SAMPLES = Kind(
    "a whole number, or an object of them",
    lambda value: is_count(value) or (isinstance(value, dict) and all(map(is_count, value.values()))),
)
_LINE = {"doc": OBJECT, "filter": TEXT, "metrics": TEXTS}
_LONG = ("arguments", "resps")  # prompts and responses: nearly all of the file's bytes


def read_samples(folder: Path, spec: str) -> list[dict[str, Any]]:
    """Read the lines of samples_SET.jsonl, without prompts and responses. ValueError when the file is missing or
    damaged.
    """
    path = folder / f"samples_{task_name(spec)}.jsonl"
    if not is_file(path):
        raise ValueError(f"{folder} has no {path.name}")
    check_file(path)
    lines = []
    for number, line in enumerate(iter_lines(path, _LINE, torn="never"), 1):
        where = f"{path}, line {number}"
        check(line["doc"], where, {"id": TEXT, "question": TEXT, "answer": TEXT})
        check(line, where, dict.fromkeys(line["metrics"], NUMBER))
        lines.append({name: value for name, value in line.items() if name not in _LONG})
    return lines


def read_flat(folder: Path, columns: Sequence[str] = RESPONSE_SCHEMA.names) -> pa.Table:
    """Read these columns of samples.parquet. ValueError when the file is missing or damaged."""
    path = folder / "samples.parquet"
    if not is_file(path):
        raise ValueError(f"{folder} has no {path.name}")
    table = read_table(path, columns)
    try:
        if missing := [name for name in columns if name not in table.column_names]:
            raise ValueError(f"it has no column {missing[0]!r}")
        table = table.select(columns).cast(pa.schema([RESPONSE_SCHEMA.field(name) for name in columns]))
        if holes := [name for name in columns if name not in _NULLABLE and table[name].null_count]:
            raise ValueError(f"column {holes[0]!r} has empty cells")
        return table
    except (OSError, ValueError, pa.ArrowException) as error:
        raise ValueError(f"{path} is damaged: {first_line(error)}") from error
