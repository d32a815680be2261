"""`reasoner grade`: the verdict on one answer, or on a file of them. No torch, and no sympy where the easy layers
decide.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from data import Problem
from verifiers import Score, VerifierPool, grade


def grade_one(gold: str, answer: str, rule: str, out: Path | None) -> None:
    """Print the verdict, the layer that decided, and what was compared."""
    found = grade(answer, gold, rule)
    row = {"verdict": str(found.verdict), "layer": found.layer, "gold": found.gold_form, "answer": found.answer_form}
    for name, value in row.items():
        print(f"{name:<8} {value}")
    _write(out, [row])


def grade_file(path: Path, rule: str, out: Path | None) -> None:
    """Grade a file of JSON lines: `gold` with `response` (a whole response in the strict form) or `answer` (the answer
    alone).

    Model output is graded in a process of its own. ValueError naming the line that cannot be used.
    """
    items = []
    try:
        lines = path.read_text().splitlines()
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror}") from error
    for number, line in enumerate(lines, 1):
        if line.strip():
            items.append(_item(path, number, line, rule))
    if not items:
        raise ValueError(f"{path} has no rows")
    with VerifierPool() as pool:
        scores = pool.score(items)
    for (_, problem), score in zip(items, scores, strict=True):
        print(f"{problem.id}  {score.verdict:<11} {score.layer:<12} {score.extracted!r}")
    counts = Counter(str(score.verdict) for score in scores)
    print(f"{len(scores)} graded: " + ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common()))
    _write(out, [_row(problem, score) for (_, problem), score in zip(items, scores, strict=True)])


def _item(path: Path, number: int, line: str, rule: str) -> tuple[str, Problem]:
    try:
        row = json.loads(line)
        gold, response, answer = row["gold"], row.get("response"), row.get("answer")
    except (json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path}, line {number}: not a JSON object with gold and answer or response") from error
    if response is None and answer is None:
        raise ValueError(f"{path}, line {number}: neither answer nor response")
    text = response if response is not None else f"<think>-</think><answer>{answer}</answer>"
    return str(text), Problem(
        f"line {number}", "", str(gold), str(path), "file", verifier=str(row.get("verifier", rule))
    )


def _row(problem: Problem, score: Score) -> dict[str, object]:
    return {
        "id": problem.id,
        "verdict": str(score.verdict),
        "layer": score.layer,
        "extracted": score.extracted,
        "seconds": score.seconds,
    }


def _write(out: Path | None, rows: list[dict[str, object]]) -> None:
    if out is not None:
        out.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n")
