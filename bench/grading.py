"""Our grader beside math-verify in one process, the same pairs: `python bench/grading.py FILE.jsonl ...`.

A file holds JSON lines with `answer` (the gold), as the problem sets do; each gold is graded against itself in another
spelling and against the gold of its neighbour.

`python bench/grading.py --last-lines [FOLDER]` grades the last line of the graded solutions in ../shared/graded_outputs
against the solution's own final answer ("A: 12" or the last box): how many are accepted, how many have it as their last
number, and the lines of which the rule of prose states another value.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

from math_verify import parse, verify
from tables import table

from data.boxes import final_boxes
from data.gold_answers import final_answer
from verifiers.answer_text import texts_of
from verifiers.answers.evaluation import is_zero
from verifiers.answers.layer import read
from verifiers.answers.rationals import rational
from verifiers.answers.values import names
from verifiers.equivalence import judge
from verifiers.extract import last_number
from verifiers.normalise import canonical
from verifiers.numbers import numeral
from verifiers.peer import in_box
from verifiers.symbolic import expression

Pairs = list[tuple[str, str]]  # prediction, gold
ROUNDS = 3
GRADED = Path(__file__).parents[2] / "shared" / "graded_outputs"
CACHES = (canonical, numeral, expression, read, rational, is_zero, names)


def from_file(path: Path, limit: int = 500) -> Pairs:
    golds = [final_answer(str(json.loads(line)["answer"])) for line in path.read_text().splitlines()[:limit]]
    kept = [gold for gold in golds if gold]
    pairs: Pairs = []
    for gold, neighbour in zip(kept, kept[1:] + kept[:1], strict=True):  # a gold's answers together, as in training
        pairs += [(rf"$\boxed{{{gold}}}$".replace("frac", "dfrac"), gold), (neighbour, gold)]
    return pairs


def ours(pairs: Pairs) -> int:
    return sum(bool(judge(prediction, gold)) for prediction, gold in pairs)


def theirs(pairs: Pairs) -> int:
    return sum(
        verify(
            parse(in_box(gold), parsing_timeout=None),
            parse(in_box(prediction), parsing_timeout=None),
            timeout_seconds=None,
        )
        for prediction, gold in pairs
    )


def rate(run: Callable[[Pairs], int], pairs: Pairs) -> tuple[float, int]:
    """Pairs a second of processor time, the best of some rounds (3,000 pairs at least) after one to warm up; how many
    it calls right.
    """
    right = run(pairs)
    best = 0.0
    for _ in range(max(ROUNDS, 3000 // len(pairs))):
        for cached in CACHES:
            cached.cache_clear()  # every answer is new to us
        began = time.process_time()
        run(pairs)
        best = max(best, len(pairs) / (time.process_time() - began))
    return best, right


def last_lines(folder: Path) -> Pairs:
    """The last line before "A: 12", or with the last box, and the final answer of each solution."""
    pairs: Pairs = []
    for line in (folder / "gsm8k_gpt3_solutions.jsonl").read_text("utf-8").splitlines():
        response = re.sub(r"<<.*?>>", "", json.loads(line)["response"])  # the calculator's notes
        *lines, final = [part for part in response.split("\n") if part.strip()] or [""]
        if lines and final.startswith("A: "):
            pairs.append((lines[-1], final.removeprefix("A: ")))
    for line in (folder / "qwen25math_math100x8.jsonl").read_text("utf-8").splitlines():
        for response in json.loads(line)["responses"]:
            lines = [part for part in response.split("\n") if part.strip()]
            pairs.append((lines[-1], final_boxes(response) or ""))
    return pairs


def sentences(folder: Path) -> None:
    """Print how many last lines are accepted, and those whose stated value is not the final answer."""
    pairs = last_lines(folder)
    accepted = [bool(judge(line, final)) for line, final in pairs]
    last = sum(bool(judge(last_number(line) or "", final)) for line, final in pairs)
    refused = [pair for pair, is_right in zip(pairs, accepted, strict=True) if not is_right]
    others = [(value, line, final) for line, final in refused if (value := texts_of(line)[1]) != line]
    print(f"{len(pairs)} last lines: {sum(accepted)} accepted, {last} by their last number")
    print(f"{len(others)} state another value:")
    for value, line, final in others:
        print(f"{value!r}, not {final!r}: {line!r}")


def main(paths: list[Path]) -> None:
    """Print pairs a second of both graders for the golds of each file."""
    rows = []
    for path in paths:
        pairs = from_file(path)
        (mine, my_right), (other, other_right) = rate(ours, pairs), rate(theirs, pairs)
        cells = (f"{mine:,.0f} ({my_right})", f"{other:,.0f} ({other_right})", f"{mine / other:.1f}")
        rows.append([path.stem, str(len(pairs)), *cells])
    print(table(["answers", "pairs", "ours a second (right)", "math-verify a second (right)", "ratio"], rows), end="")


if __name__ == "__main__":
    if "--last-lines" in sys.argv:
        folder = Path(sys.argv[2]) if len(sys.argv) > 2 else GRADED
        sentences(folder) if folder.is_dir() else print(f"{folder} is not there")
    else:
        main([Path(argument) for argument in sys.argv[1:]])
