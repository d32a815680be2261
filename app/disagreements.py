"""Page of disagreements between graders; verdicts by hand become grading cases, which `reasoner grade` reads."""

from __future__ import annotations

from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

from app.run_library import RunLibrary
from reasoner.analysis.disagreements import Pair, math_verify
from reasoner.analysis.disagreements import disagreements as find
from reasoner.runs.filters import MOST_STEP, read_filter
from reasoner.runs.json_files import FLAG, TEXT, append_line, read_lines
from verifiers.equivalence import check_verifier

CASES = "grading_cases.jsonl"
_FIELDS = {"id": TEXT, "gold": TEXT, "answer": TEXT, "correct": FLAG, "why": TEXT, "question": TEXT, "verifier": TEXT}
_COLUMNS = ("group", "sample", "question", "gold", "extracted", "verdict", "verifier")
_MOST_ROLLOUTS = 5_000
_LONGEST = 1_000  # characters of a reason
_NAMES = 8  # rollouts named per answer


def disagreements(library: RunLibrary, run: str, steps: str = "") -> dict[str, Any]:
    """The answers of some steps on which graders disagree, each with its verdict by hand if it has one.

    `steps`: a step or LOW:HIGH, by default the last one. ValueError for more than 5,000 rollouts.
    """
    first, last = read_filter({"step": steps}).step or (None, None)
    # of several cases on the same answer the last one
    cases = {(case["question"], case["gold"], case["answer"]): case for case in _lines(library.run(run))}
    table = library.rollouts(run)
    lines = table.steps
    chosen = range(first or 0, MOST_STEP + 1 if last is None else last + 1)
    own = [one for one in lines if one["step"] in chosen] if steps else lines[-1:]
    if (total := sum(one["rollouts"] for one in own)) > _MOST_ROLLOUTS:
        raise ValueError(f"steps is {steps!r}: these are {total:,} rollouts; the limit is {_MOST_ROLLOUTS:,}")
    rows = [
        row | {"step": one["step"], "name": table.name(number), "verifier": row["verifier"] or "maths"}
        for one in own
        for number, row in table.shard(one["step"]).read(_COLUMNS)
    ]
    items = [
        asdict(one)
        | {"rollouts": one.rollouts[:_NAMES], "count": len(one.rollouts)}
        | {"case": cases.get((one.question, one.gold, one.answer))}
        for one in find(rows, lambda pairs: _judged(tuple(pairs)))
    ]
    return {"steps": [own[0]["step"], own[-1]["step"]] if own else None, "rollouts": total, "items": items}


def judge_answer(
    library: RunLibrary,
    run: str,
    question: str,
    gold: str,
    answer: str,
    correct: bool,
    verifier: str = "maths",
    why: str = "",
) -> dict[str, Any]:
    """Write a verdict by hand on an answer as a grading case of the run; a later one on the same answer replaces it."""
    if len(why) > _LONGEST:
        raise ValueError(f"the reason has {len(why):,} characters; the limit is {_LONGEST:,}")
    run_dir = library.run(run)
    number = len(_lines(run_dir)) + 1
    texts = {"gold": gold, "answer": answer, "why": why, "question": question}
    readable = {name: text.encode("utf-8", "replace").decode() for name, text in texts.items()}
    case = {"id": f"{run}-{number:03}", "correct": correct, "verifier": check_verifier(verifier), **readable}
    append_line(run_dir / CASES, case)
    return case


@lru_cache(maxsize=32)
def _judged(pairs: tuple[Pair, ...]) -> list[bool | None]:
    return math_verify(pairs)


def _lines(run_dir: Path) -> list[dict[str, Any]]:
    return read_lines(run_dir / CASES, _FIELDS, torn="any")
