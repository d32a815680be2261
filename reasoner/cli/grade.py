"""`reasoner grade`: the verdict on one answer, or on a file of them. No torch, and no sympy where the easy layers
decide.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from data import Problem
from reasoner.console import shortened, visible
from reasoner.evals.estimators import estimate
from verifiers import Score, VerifierPool, grade
from verifiers.rules import known

_AT_ONCE = 256  # rows between two signs of progress
_WIDTH = 28  # of an answer in the table


def grade_one(gold: str, answer: str, rule: str, out: Path | None) -> None:
    """Print the verdict, the layer that decided, what was compared and how long it took."""
    found = grade(answer, gold, rule)
    row = {"verdict": str(found.verdict), "layer": found.layer, "gold": found.gold_form, "answer": found.answer_form}
    for name, value in row.items():
        print(f"{name:<8} {visible(value)}")
    print(f"{'time':<8} {1000 * found.seconds:.1f} ms")
    _write(out, [row | {"seconds": found.seconds}])


def grade_file(path: Path, rule: str, out: Path | None) -> None:
    """Grade a file of JSON lines: `gold` with `response` (a whole response in the strict form) or `answer` (the answer
    alone); a table of all, and a summary.

    Model output is graded in processes of their own. ValueError naming the line that cannot be used.
    """
    items = []
    try:
        lines = path.read_text("utf-8").split("\n")  # a text may hold other line ends
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error
    for number, line in enumerate(lines, 1):
        if line.strip():
            items.append(_item(path, number, line, rule))
    if not items:
        raise ValueError(f"{path} has no rows")
    print(f"{'line':>6}  {'verdict':<10}  {'decided by':<13}  {'gold':<{_WIDTH}}  answer")
    scores: list[Score] = []
    with VerifierPool(workers=min(os.cpu_count() or 1, 8)) as pool:
        for start in range(0, len(items), _AT_ONCE):
            part = items[start : start + _AT_ONCE]
            graded = pool.score(part)
            for (_, problem), score in zip(part, graded, strict=True):
                gold, answer = shortened(problem.answer, _WIDTH), shortened(score.extracted or "", _WIDTH)
                print(f"{problem.id:>6}  {score.verdict:<10}  {score.layer[:13]:<13}  {gold:<{_WIDTH}}  {answer}")
            scores += graded
            if len(items) > _AT_ONCE:
                print(f"graded {len(scores):,} of {len(items):,}", file=sys.stderr, flush=True)
    print(f"\n{summary(scores)}")
    _write(out, [_row(problem, score) for (_, problem), score in zip(items, scores, strict=True)])


def summary(scores: Sequence[Score]) -> str:
    """How many are right, with a 95 % interval; the verdicts, and the layers that decided; the slowest."""
    right = [float(score.correct) for score in scores]
    lines = [f"{len(scores):,} graded, {sum(right):,.0f} right: {str(estimate(right)).strip()}"]
    for title, names in (
        ("verdicts", [str(score.verdict) for score in scores]),
        ("decided by", [score.layer for score in scores if score.layer]),
    ):
        lines.append(f"{title}: " + ", ".join(f"{count:,} {name}" for name, count in Counter(names).most_common(12)))
    lines.append(f"slowest: {max(score.seconds for score in scores):.2f} s")
    return "\n".join(lines)


def _item(path: Path, number: int, line: str, rule: str) -> tuple[str, Problem]:
    try:
        row = json.loads(line, parse_int=str, parse_float=str)  # the digits as written, however many
        gold, response, answer = row["gold"], row.get("response"), row.get("answer")
    except (json.JSONDecodeError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{path}, line {number}: not a JSON object with gold and answer or response") from error
    if response is None and answer is None:
        raise ValueError(f"{path}, line {number}: neither answer nor response")
    text = response if response is not None else f"<think>-</think><answer>{answer}</answer>"
    try:
        verifier = known(str(row.get("verifier", rule)))
    except ValueError as error:
        raise ValueError(f"{path}, line {number}: {error}") from error
    return str(text), Problem(str(number), "", str(gold), str(path), "file", verifier=verifier)


def _row(problem: Problem, score: Score) -> dict[str, object]:
    return {
        "line": int(problem.id),
        "verdict": str(score.verdict),
        "layer": score.layer,
        "gold": problem.answer,
        "extracted": score.extracted,
        "seconds": score.seconds,
    }


def _write(out: Path | None, rows: list[dict[str, object]]) -> None:
    if out is not None:
        # A lone surrogate, which UTF-8 has no bytes for, becomes JSON's own escape: \\udcff.
        out.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", "utf-8", errors="backslashreplace")
