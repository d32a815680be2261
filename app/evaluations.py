"""Pages of evaluations: tables with intervals, curves of pass@k and cons@k, and the vote on each problem."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from app.arguments import Count
from app.run_library import RunLibrary
from reasoner.evals import eval_log
from reasoner.evals.estimators import class_sizes, cons_at_k, estimate, is_tied, pass_at_k, vote_labels
from reasoner.evals.result import VOTING
from reasoner.models.checksums import check_file
from reasoner.runs.json_files import NUMBER, OBJECT, check, check_each, is_file, read_object

_CHECKPOINT = re.compile(r"([^/]+)/(?:best|step-[0-9]{6})")  # how reasoner.inference.model_spec names a run's model
_SHOWN = 4  # responses to a problem
_INTERVAL = ("value", "low", "high")  # of a metric, and its 95 % interval
_SHOWS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "all": lambda p: True,
    "correct": lambda p: p["winner"] == "correct",
    "confident and wrong": lambda p: p["winner"] == "wrong" and p["share"] > 0.5,
    "correct in the minority": lambda p: 0 < p["correct"] < p["classes"][0]["votes"],
    "tied": lambda p: p["is_tied"],
    "never correct": lambda p: p["correct"] == 0,
}


def evals(library: RunLibrary) -> dict[str, Any]:
    """List the evaluations: one row per evaluation and data set, with the run it belongs to, if any, and every metric
    with its 95 % interval. `faults` lists the evaluations that cannot be read, with the reason.
    """
    rows: list[dict[str, Any]] = []
    faults = []
    for name in library.evals():
        try:
            rows += _rows(name, library.evaluation(name))
        except (ValueError, OSError) as error:
            faults.append({"name": name, "fault": str(error)})
    return {"folder": str(library.evals_dir), "rows": rows, "faults": faults}


def _rows(name: str, folder: Path) -> list[dict[str, Any]]:
    manifest = eval_log.read_manifest(folder)
    path = folder / "results.json"
    check_file(path)
    results = read_object(path)
    rows = []
    for spec, data in manifest["data"].items():
        ways = results.get(eval_log.task_name(spec), {})
        check_each(check(ways, path, {}), path, {"metrics": OBJECT})
        metrics = {}
        for way, result in ways.items():
            check_each(result["metrics"], path, dict.fromkeys(_INTERVAL, NUMBER))
            for metric, value in result["metrics"].items():
                metrics["greedy" if way == "greedy" else metric] = {key: value[key] for key in _INTERVAL}
        shared = {"model": manifest["model"], "problems": data["rows"], "samples": manifest.get("samples")}
        rows.append({"name": name, "run": _run_of(name, manifest["model"]), "set": spec, **shared, "metrics": metrics})
    return rows


def _run_of(name: str, model: str) -> str | None:
    """The run whose model was evaluated: in RUN/before and RUN/after, and by `reasoner eval --model RUN`."""
    owner, slash, _ = name.partition("/")
    if slash:
        return owner
    checkpoint = _CHECKPOINT.fullmatch(model)
    return checkpoint[1] if checkpoint else None


def evaluation(
    library: RunLibrary, name: str, set: str = "", show: str = "all", offset: Count = 0, limit: Count = 50
) -> dict[str, Any]:
    """One data set of an evaluation: metrics with intervals, curves for k = 1 ... n, and a page of its problems with
    their votes. `show` selects problems (a key of _SHOWS).

    ValueError for an unknown evaluation, set or selection.
    """
    if show not in _SHOWS:
        raise ValueError(f"unknown choice {show!r}; known are {', '.join(_SHOWS)}")
    folder = library.evaluation(name)
    manifest = eval_log.read_manifest(folder)
    spec = set or next(iter(manifest["data"]))
    if spec not in manifest["data"]:
        raise ValueError(f"evaluation {name} has no set {spec!r}; it has {', '.join(manifest['data'])}")
    samples = folder / "samples.parquet"
    content = _problems(folder, spec, samples.stat().st_mtime_ns if is_file(samples) else 0)
    selection = [problem for problem in content["problems"] if _SHOWS[show](problem)]
    return {
        "name": name,
        "set": spec,
        "metrics": next(row["metrics"] for row in _rows(name, folder) if row["set"] == spec),
        "curves": content["curves"],
        "selections": {key: sum(holds(problem) for problem in content["problems"]) for key, holds in _SHOWS.items()},
        "total": len(selection),
        "problems": selection[offset : offset + limit],
    }


@lru_cache(maxsize=2)
def _problems(folder: Path, spec: str, _changed: int) -> dict[str, Any]:
    table = eval_log.read_flat(folder)
    table = table.filter(pc.field("set") == spec)
    rows = table.drop_columns(["text"]).to_pylist()
    docs = {line["doc"]["id"]: line["doc"] for line in eval_log.read_samples(folder, spec) if line["filter"] == "none"}
    by_problem: dict[str, list[dict[str, Any]]] = {}
    for place, row in enumerate(rows):
        if row["way"] != "greedy":
            by_problem.setdefault(row["problem_id"], []).append(row | {"place": place})
    greedy = {row["problem_id"]: row for row in rows if row["way"] == "greedy"}
    votes = [_vote(key, own, docs.get(key, {}), greedy.get(key)) for key, own in by_problem.items()]
    for vote, own in zip(votes, by_problem.values(), strict=True):  # all texts, as Python's, may be gigabytes
        shown = ((row, table["text"][row["place"]].as_py()) for row in own[:_SHOWN])
        vote["texts"] = [{"text": text, "is_correct": row["correct"], "answer": row["answer"]} for row, text in shown]
    return {"problems": votes, "curves": _curves(list(by_problem.values()))}


def _vote(
    key: str, rows: list[dict[str, Any]], doc: Mapping[str, Any], greedy: dict[str, Any] | None
) -> dict[str, Any]:
    """The vote on a problem: classes of equal answers with their votes; class 0 is the correct one
    (estimators.vote_labels).
    """
    labels = _labels(rows)
    votes = Counter(label for label in labels if label is not None)
    spellings: dict[int, Counter[str]] = {}
    for label, row in zip(labels, rows, strict=True):
        if label is not None:
            spellings.setdefault(label, Counter())[row["answer"] or ""] += 1
    num_correct, others, num_abstentions = class_sizes(labels)
    most = max([num_correct, *others], default=0)
    tie = is_tied(num_correct, others)
    return {
        "problem": key,
        "question": doc.get("question", ""),
        "verifier": str(doc.get("verifier", "maths")),
        "gold": rows[0]["gold"],
        "n": len(rows),
        "correct": num_correct,
        "abstentions": num_abstentions,
        "is_tied": tie,
        "winner": "nobody" if most == 0 else "tie" if tie else "correct" if num_correct == most else "wrong",
        "share": most / len(rows),
        "greedy": None if greedy is None else {"answer": greedy["answer"], "is_correct": greedy["correct"]},
        "classes": [
            {
                "is_correct": label == 0,
                "votes": count,
                "spellings": [text for text, _ in spellings[label].most_common(5)],
            }
            for label, count in sorted(votes.items(), key=lambda item: (-item[1], item[0]))
        ],
    }


def _labels(rows: list[dict[str, Any]]) -> list[int | None]:
    """The class of each response. Without cons@k, no classes are stored: wrong answers are then compared as texts."""
    classes = [row["class"] for row in rows]
    if any(label is not None for label in classes):
        return classes
    answers = [row["answer"] if row["verdict"] in VOTING else None for row in rows]
    is_correct = [row["correct"] for row in rows]
    return vote_labels(answers, is_correct, same=lambda pairs: [False] * len(pairs))


def _curves(problems: list[list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """pass@k (unbiased) and cons@k (exact, ties split) for k = 1, 2, 3, 4, 6, 8, ... up to the fewest samples."""
    if not problems:
        return {}
    fewest = min(map(len, problems))
    ks = sorted({k for base in (1, 3) for k in (base * 2**i for i in range(20)) if k <= fewest} | {fewest})
    counts = [(len(own), sum(row["correct"] for row in own)) for own in problems]
    curves = {"pass@k": [{"k": k} | asdict(estimate([float(pass_at_k(n, c, k)) for n, c in counts])) for k in ks]}
    if any(row["class"] is not None for own in problems for row in own):
        sizes = [class_sizes(_labels(own)) for own in problems]
        curves["cons@k"] = [{"k": k} | asdict(estimate([float(cons_at_k(*vote, k)) for vote in sizes])) for k in ks]
    return curves
