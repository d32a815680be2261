"""The folder of an evaluation, for people, for `reasoner compare`, and for the readers of other harnesses.

EVALS/NAME/evaluation.json      what was asked, of which model, on which problems, with which grader
EVALS/NAME/results.json         the figures, in lm-eval's form (lm_eval.utils.make_table prints it) and, under
                                "reasoner", all of ours
EVALS/NAME/samples_SET.jsonl    lm-eval's samples: a line a problem and filter ("none" is sampled, or "greedy")
EVALS/NAME/details_SET.parquet  lighteval's details: columns doc, metric, model_response
EVALS/NAME/samples.parquet      one flat table, a row a response
EVALS/NAME/table.txt            what was printed
EVALS/NAME/run.json             when, how long, on what: everything that differs between two equal evaluations

All but run.json are the same bytes when the same evaluation is made again, interrupted or not.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from data import Problem
from data.registry import fingerprint
from reasoner.evals.result import Evaluation
from reasoner.evals.tables import Sets
from reasoner.runs.io import replacing, write_text
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
    read_lines,
    read_object,
)
from reasoner.runs.rollouts import write_json
from reasoner.types import Answered

About = Mapping[str, Any]  # evaluation.json; see reasoner.cli.eval

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
        ("in_form", pa.bool_()),
        ("class", pa.int32()),  # of the vote: 0 is the right one, null abstains or was not asked
        ("finish", pa.string()),
        ("tokens", pa.int32()),
    ]
)


def task_name(spec: str) -> str:
    """A data set as part of a file's name."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", Path(spec.partition("?")[0]).name).strip("_.") or "set"


def about_data(problems: Sequence[Problem], *, left_out: int = 0) -> dict[str, Any]:
    """Of a set: how many problems, and which; and how many could not be asked (too long) or graded."""
    return {"rows": len(problems), "sha256": fingerprint(problems), "left_out": left_out}


def model_name(model: str) -> str:
    """A model as part of a file's name: org/name is org__name."""
    return re.sub(r"[^A-Za-z0-9._-]+", "__", model).strip("_.") or "model"


def write(folder: Path, about: About, sets: Sets, table: str) -> None:
    """All files but run.json; each is written whole."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "evaluation.json", about)
    write_json(folder / "results.json", results(about, sets))
    for spec, ways in sets.items():
        name = task_name(spec)
        write_text(folder / f"samples_{name}.jsonl", "".join(_line(row) for row in sample_rows(about, spec, ways)))
        _write_table(folder / f"details_{name}.parquet", pa.Table.from_pylist(list(_details(spec, ways))))
    _write_table(folder / "samples.parquet", pa.Table.from_pylist(list(_flat(sets)), FLAT))
    write_text(folder / "table.txt", table + "\n")


def read_about(folder: Path) -> dict[str, Any]:
    """ValueError for a folder without an evaluation, and for a damaged one."""
    path = folder / "evaluation.json"
    if not is_file(path):
        raise ValueError(f"{folder} holds no evaluation: it has no evaluation.json")
    needs = {"model": TEXT, "data": OBJECT, "grader": TEXT, "prompt": OBJECT}
    about = read_object(path, needs, {"samples": _SAMPLES})
    if not about["data"]:
        raise ValueError(f"{path} is damaged: it names no data set")
    check_each(about["data"], path, {"rows": COUNT, "sha256": TEXT})
    return about


# How many of each problem: a number, or one by the file that the responses were read from.
_SAMPLES = Kind(
    "a whole number, or an object of them",
    lambda value: is_count(value) or (isinstance(value, dict) and all(map(is_count, value.values()))),
)
_LINE = {"doc": OBJECT, "filter": TEXT, "metrics": TEXTS}


def read_samples(folder: Path, spec: str) -> list[dict[str, Any]]:
    """The lines of samples_SET.jsonl. ValueError where there is none, and for a damaged one."""
    path = folder / f"samples_{task_name(spec)}.jsonl"
    if not is_file(path):
        raise ValueError(f"{folder} has no {path.name}")
    lines = read_lines(path, _LINE, torn="never")
    for number, line in enumerate(lines, 1):
        where = f"{path}, line {number}"
        check(line["doc"], where, {"id": TEXT, "question": TEXT, "answer": TEXT})
        check(line, where, dict.fromkeys(line["metrics"], NUMBER))
    return lines


_NULLABLE = ("seed", "answer", "layer", "right_lenient", "in_form", "class", "finish", "tokens")


def read_flat(folder: Path) -> list[dict[str, Any]]:
    """The rows of samples.parquet. ValueError where there is none, and for a damaged one."""
    path = folder / "samples.parquet"
    if not is_file(path):
        raise ValueError(f"{folder} has no {path.name}")
    try:
        table = pq.read_table(path)
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


def results(about: About, sets: Sets) -> dict[str, Any]:
    """lm-eval's results, for its own readers; metric names are "pass@1,none" and "greedy,none" with their stderr."""
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
            name: {"original": found["rows"] + found["left_out"], "effective": found["rows"]}
            for name, found in ((name, about["data"][spec]) for name, (spec, _) in tasks.items())
        },
        "config": {"model": about["engine"], "model_args": about["sampling"], "seed": about["seed"]},
        "model_name": about["model"],
        "model_name_sanitized": model_name(about["model"]),
        "task_hashes": {name: about["data"][spec]["sha256"] for name, (spec, _) in tasks.items()},
        "reasoner": {name: {way: found.figures() for way, found in ways.items()} for name, (_, ways) in tasks.items()},
    }


def _metrics(ways: Mapping[str, Evaluation]) -> Iterator[tuple[str, float, float]]:
    for way, found in ways.items():
        for metric, value in found.metrics.items():
            yield "greedy" if way == "greedy" else metric, value.value, value.se


def _values(ways: Mapping[str, Evaluation]) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, value, se in _metrics(ways):
        found |= {f"{name},none": value, f"{name}_stderr,none": se}
    return found


def sample_rows(about: About, spec: str, ways: Mapping[str, Evaluation]) -> Iterator[dict[str, Any]]:
    """A row a problem and way, with the value of every metric on that problem."""
    for way, found in ways.items():
        per_problem = found.per_problem
        for number, one in enumerate(found.answered):
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


def _doc(one: Answered) -> dict[str, Any]:
    problem = one.problem
    return {
        "id": problem.id,
        "question": problem.question,
        "answer": problem.answer,
        "subject": problem.subject,
        "level": problem.level,
        "verifier": problem.verifier,
    }


def _details(spec: str, ways: Mapping[str, Evaluation]) -> Iterator[dict[str, Any]]:
    for way, found in ways.items():
        per_problem = found.per_problem
        for number, one in enumerate(found.answered):
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
        for way, found in ways.items():
            for number, one in enumerate(found.answered):
                classes = found.classes[number] if found.classes else (None,) * len(one.responses)
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
                        "in_form": score.format_ok,
                        "class": classes[sample],
                        "finish": response.finish,
                        "tokens": response.tokens,
                    }


def _line(row: Mapping[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False) + "\n"


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _write_table(path: Path, rows: pa.Table) -> None:
    with replacing(path) as beside:
        pq.write_table(rows, beside, compression="zstd")
