"""Our grader beside math-verify in one process, the same pairs: `python bench/grading.py FILE.jsonl ...`.

A file holds JSON lines with `answer` (the gold), as the problem sets do; each gold is graded against itself in another
spelling and against the gold of its neighbour.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from math_verify import parse, verify
from tables import table

from data.boxes import final_answer
from verifiers.answers.evaluation import is_zero
from verifiers.answers.layer import read
from verifiers.answers.rationals import rational
from verifiers.answers.values import names
from verifiers.equivalence import judge
from verifiers.normalise import canonical, numeral
from verifiers.peer import in_box
from verifiers.symbolic import expression

Pairs = list[tuple[str, str]]  # prediction, gold
ROUNDS = 3
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
    main([Path(argument) for argument in sys.argv[1:]])
